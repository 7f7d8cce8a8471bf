/* The answers from a large set are made in slices, between which others have their turn. */
#include "collection/set/walk.h"
#include "serving.h"

enum { MEMBERS = 20000, NAME = 12, STEPS = 2000, SLICES = MEMBERS * WALK_STEPS / STEPS };

static const struct collection_options options = {
	.log_size = 4096, .table_size = 32768, .cache = 1 << 24, .merges = 1
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
}

FIXTURE(setup, serving_teardown)
