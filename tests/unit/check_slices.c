/* The answers from a large set or list are made in slices, between which others have their turn. */
#include "collection/set/walk.h"
#include "serving.h"

enum { MEMBERS = 20000, NAME = 12, STEPS = 2000, SLICES = MEMBERS * WALK_STEPS / STEPS };

static const struct collection_options options = {
	.base_size = 1 << 20, .log_size = 4096, .table_size = 32768, .cache = 1 << 24, .merges = 1
};

static void setup(void)
{
	struct buf line = BUF_EMPTY;

	serving_setup(&options);
	BUF_ADD(&line, "sset k");
	for (int i = 0; i < MEMBERS; i++)
		buf_printf(&line, " user-%07d", i);
	BUF_ADD(&line, "\r\n\0");
	asks_and_hears(buf_slice(&line).p, "STORED\r\n");
	buf_free(&line);
	fake.slice = STEPS;
	fake_has_time(&fake);
}

/* Sends a query. Returns how often the proxy paused before it replied with all members. */
static size_t pauses(const char *request)
{
	size_t count = 0, n = 1;
	const char *reply = "";

	asks(&fake, request);
	while (n || *reply == '\0') {
		server_answer_all(&server);
		n = fake_pass(&fake, 0);
		count += n;
		if (!n)
			reply = fake_told(&fake);
	}
	ck_assert_uint_gt(strlen(reply), MEMBERS * (NAME + 1));
	ck_assert_ptr_nonnull(strstr(reply, "user-0019999\r\nEND\r\n"));
	return count;
}

/* This number of tables is checked at a time, and this amount of text is written. */
TEST(all_members)
{
	ck_assert_uint_ge(pauses("smembers k\r\n"), SLICES);
	/* The text is kept. */
	ck_assert_uint_eq(pauses("smembers k\r\n"), 0);
	/* It is computed once for all clients that wait for it. */
	client_asks("sadd k user-0019999\r\n");
	hears("STORED\r\n");
	ck_assert_uint_le(pauses("smembers k\r\n"), SLICES + 1);
}

/* Clients that request it during the computation wait for the same text. */
TEST(one_for_all)
{
	enum { READERS = 20 };
	size_t alone = pauses("smembers k\r\n"), together = 0, n = 1, replies = 0;
	const char *at;

	client_asks("sadd k user-0019999\r\n");
	hears("STORED\r\n");
	for (int i = 0; i < READERS; i++)
		asks(&fake, "smembers k\r\n");
	while (n) {
		server_answer_all(&server);
		n = fake_pass(&fake, 0);
		together += n;
	}
	for (at = fake_told(&fake); (at = strstr(at, "END\r\n")); at++)
		replies++;
	ck_assert_uint_eq(replies, READERS);
	ck_assert_uint_ge(alone, SLICES);
	ck_assert_uint_le(together, SLICES + READERS / 2);
}

/* Returns how often the proxy paused or sent a call before it replied with all members. */
static size_t turns(const char *request)
{
	size_t before = fake.count, paused = pauses(request);

	return fake.count - before + paused;
}

/*
 * A block of each set is computed from tables in memory. Before each block the server is asked
 * whether the set is unchanged.
 */
TEST(algebra)
{
	(void)pauses("smembers k\r\n");
	ck_assert_uint_ge(turns("sunion k other\r\n"), SLICES);
	ck_assert_uint_ge(turns("sinter k k\r\n"), SLICES);
	ck_assert_uint_ge(turns("sdiff k other\r\n"), SLICES);
}

TEST(a_range)
{
	ck_assert_uint_ge(pauses("srange k user user-0019999 1000000\r\n"), SLICES);
	ck_assert_uint_ge(pauses("sscan k 1000000\r\n"), SLICES);
	ck_assert_uint_ge(pauses("sscan k 1000000 match *0*\r\n"), SLICES);
}

static void asks_and_hears_later(const char *request, const char *reply)
{
	client_asks(request);
	do
		server_answer_all(&server);
	while (fake_pass(&fake, 0));
	client_is_told(reply);
}

/* A block of long members needs few tables, and no more are read, as they may not fit the cache. */
TEST(long_members)
{
	enum { COUNT = 2000, TABLES = COUNT * 200 / 32768 + 1 };
	static const struct collection_options tiny = { .log_size = 4096, .table_size = 32768 };
	struct buf line = BUF_EMPTY;
	size_t before, reads = 0;

	BUF_ADD(&line, "sset long");
	for (int i = 0; i < COUNT; i++)
		buf_printf(&line, " %07d%0193d", i * 7919 % 1000003, 0);
	BUF_ADD(&line, "\r\n\0");
	asks_and_hears_later(buf_slice(&line).p, "STORED\r\n");
	buf_free(&line);
	fake_takes(&tiny);
	before = fake.count;
	asks_and_hears_later("sdiffcard 2 long other\r\n", "2000\r\n");
	for (size_t i = before; i < fake.count; i++)
		reads += memchr(fake.calls[i].call.key.p, '.', fake.calls[i].call.key.n) != NULL;
	ck_assert_uint_ge(reads, TABLES);
	ck_assert_uint_le(reads, 4 * TABLES);
}

/* Searches that share a read of a list pause as often as they would one by one. */
TEST(positions)
{
	enum { SEARCHES = 20, COMPARED = 8 /* in a step */ };
	struct buf list = BUF_EMPTY;
	size_t count = 0, replies = 0;

	BUF_ADD(&list, "@list ");
	for (int i = 0; i < MEMBERS; i++)
		buf_printf(&list, "+user-%07d ", i);
	server_put(&server, SLICE("l"), buf_slice(&list));
	buf_free(&list);
	for (int i = 0; i < SEARCHES; i++)
		asks(&fake, "lpos l user-0019999\r\n");
	do {
		server_answer_all(&server);
		count += fake_pass(&fake, 0);
	} while (fake.turn_count || fake_waiting(&fake));
	for (const char *at = fake_told(&fake); (at = strstr(at, "19999\r\n")); at++)
		replies++;
	ck_assert_uint_eq(replies, SEARCHES);
	ck_assert_uint_ge(count, SEARCHES * MEMBERS / COMPARED / STEPS);
}

FIXTURE(setup, serving_teardown)
