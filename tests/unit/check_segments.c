/*
 * Reading a set with runs: which items are requested and cached, and what happens if one is
 * missing.
 */
#include "collection/lane/lane.h"
#include "collection/set/cache.h"
#include "conversations.h"
#include "cupboard.h"

static struct cupboard cupboard;
static struct buf text;
static struct oplog_run abc; /* one table */

/* The base of the set k, as a reply to a read of it. */
static const char *base(int cas, const struct oplog_run *runs, size_t count, const char *log)
{
	struct buf whole = BUF_EMPTY;

	buf_consume(&text, buf_size(&text));
	cupboard_base(&whole, "", runs, count, log);
	buf_printf(&text, "VA %zu kk f0 c%d t-1\r\n", buf_size(&whole), cas);
	buf_add_slice(&text, buf_slice(&whole));
	BUF_ADD(&text, "\r\n\0");
	buf_free(&whole);
	return buf_slice(&text).p;
}

/* The request of an item. */
static const char *fetch(struct slice id)
{
	static char line[100];

	snprintf(line, sizeof(line), "mg k.%.*s k f v\r\n", (int)id.n, id.p);
	return line;
}

static const char *is_there(struct slice id)
{
	static char line[100];

	snprintf(line, sizeof(line), "mg k.%.*s k f\r\n", (int)id.n, id.p);
	return line;
}

/* Answers the oldest call, which must be a read of an item, from the cupboard. */
static void server_brings_item(void)
{
	size_t i = fake_oldest(&fake);
	struct slice key = fake.calls[i].call.key;
	struct cupboard_item *item;

	ck_assert(fake.calls[i].call.verb == CALL_GET && slice_starts(key, SLICE("k.")));
	item = cupboard_find(&cupboard, slice_skip(key, 2));
	ck_assert_ptr_nonnull(item);
	fake_result(&fake, i,
		&(struct result){ .status = RESULT_HIT, .value = buf_slice(&item->data) });
}

/* Answers all pending reads of items. Returns how many there were. */
static int server_brings_items(void)
{
	int count = 0;

	while (fake_waiting(&fake) && fake.calls[fake_oldest(&fake)].call.key.n > 1) {
		server_brings_item();
		count++;
	}
	return count;
}

/*
 * Sends a request; answers with the base of these runs, then with their items; checks the reply.
 * Returns the number of items.
 */
static int reads(const char *request, const struct oplog_run *runs, size_t count, const char *log,
	const char *reply)
{
	int items;

	client_asks(request);
	server_answers(base(7, runs, count, log));
	items = server_brings_items();
	client_is_told(reply);
	return items;
}

static void setup(void)
{
	fake_setup();
	cupboard.random = 1;
	abc = cupboard_log_run(&cupboard, "+a +b +c ", 3);
}

static void teardown(void)
{
	fake_teardown();
	cupboard_free(&cupboard);
	buf_free(&text);
}

/* --- which items are requested --- */

/* First the index, then its tables, all at once. */
TEST(index_and_tables)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);

	client_asks("smembers k\r\n");
	serves(FETCH("k"), base(7, &run, 1, "-b "));
	server_is_asked(fetch(run.id));
	server_brings_item();
	ck_assert_uint_eq(fake_waiting(&fake), 3);
	ck_assert_int_eq(server_brings_items(), 3);
	client_is_told("VALUE k 0 7\r\na c d e\r\nEND\r\n");
}

/*
 * For a query about single members, only the tables with their positions are read, once for all
 * clients.
 */
TEST(single_members)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+b +d +f +h +j ", 1);

	client_asks("scard l\r\nsismember k d\r\nsismember k x\r\n");
	server_answers("EN\r\n");
	ck_assert_uint_eq(fake_waiting(&fake), 1);
	server_answers(base(7, &run, 1, "+x "));
	server_brings_item();
	ck_assert_int_eq(server_brings_items(), 1);
	client_is_told("NOT_FOUND\r\n1\r\n");
	relays(base(7, &run, 1, "+x "), "1\r\n");
}

/* Their number need not be read: it is in the references, as long as there is only one run. */
TEST(counting)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+b +d +f +h +j ", 1);

	exchanges("scard k\r\n", base(7, &run, 1, ""), "5\r\n");
	ck_assert_int_eq(reads("scard k\r\n", &run, 1, "+a -h +j ", "5\r\n"), 1 + 3);
	ck_assert_uint_eq(fake_waiting(&fake), 0);
}

TEST(in_order)
{
	struct oplog_run runs[] = { cupboard_log_run(&cupboard, "+b +d +f +h +j ", 2),
		cupboard_log_run(&cupboard, "+a +c -f ", 2) };

	reads("sscan k 3\r\n", runs, 2, "-b +i ", "VALUE k 0 5\r\na c d\r\nEND\r\n");
	reads("sscan k 3 d\r\n", runs, 2, "-b +i ", "VALUE k 0 5\r\nh i j\r\nEND\r\n");
	reads("srange k b h 100\r\n", runs, 2, "-b +i ", "VALUE k 0 5\r\nc d h\r\nEND\r\n");
	reads("scount k b h\r\n", runs, 2, "-b +i ", "3\r\n");
}

/* --- missing items --- */

/*
 * An incomplete set is never returned: it is a miss, and is removed by CAS, if it has not changed.
 */
TEST(table_is_gone)
{
	client_asks("smembers k\r\n");
	serves(FETCH("k"), base(7, &abc, 1, "+x "));
	serves(fetch(abc.id), "EN\r\n");
	serves(FETCH("k"), base(7, &abc, 1, "+x "));
	server_is_asked("connection 1: cas k 0 -1 0 7\r\n\r\n");
	client_hears_nothing();
	relays("STORED\r\n", "END\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 1);
}

/*
 * A miss on one connection means nothing for a base from another one: the server may be another
 * one by then.
 */
TEST(table_is_gone_from_another_connection)
{
	client_asks("smembers k\r\n");
	serves(FETCH("k"), base(7, &abc, 1, "+x "));
	serves(fetch(abc.id), "EN\r\n");
	fake.connection = 2;
	serves(FETCH("k"), base(7, &abc, 1, "+x "));
	serves(is_there(abc.id), "EN\r\n");
	serves(FETCH("k"), base(7, &abc, 1, "+x "));
	server_is_asked("connection 2: cas k 0 -1 0 7\r\n\r\n");
	relays("STORED\r\n", "END\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 1);
}

/* The same where an item is there, but another than was referred to. */
TEST(items_are_others)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c ", 2), other = run;

	other.check ^= 1;
	client_asks("scount k a b\r\n");
	server_answers(base(7, &other, 1, "+x "));
	server_brings_item();
	server_answers(base(8, &other, 1, "+x +y "));
	fake_calls(&fake);
	relays("STORED\r\n", "NOT_FOUND\r\n");
	/* One table of several. */
	client_asks("scount k a b\r\n");
	server_answers(base(7, &run, 1, "+x "));
	server_brings_item();
	fake_result(&fake, fake_oldest(&fake),
		&(struct result){ .status = RESULT_HIT, .value = SLICE("T1") });
	while (fake_waiting(&fake) && fake.calls[fake_oldest(&fake)].call.key.n > 1)
		server_brings_item();
	server_answers(base(7, &run, 1, "+x "));
	fake_calls(&fake);
	relays("STORED\r\n", "NOT_FOUND\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 2);
}

/* It was missing since another proxy had just merged it: the current base is read. */
TEST(table_was_merged)
{
	struct oplog_run runs[] = { cupboard_log_run(&cupboard, "+a +b +c ", 3),
		cupboard_log_run(&cupboard, "-a +x ", 3) },
			 merged = cupboard_log_run(&cupboard, "+b +c +x ", 3);

	client_asks("smembers k\r\n");
	server_answers(base(7, runs, 2, "+z "));
	server_brings_item();
	server_answers("EN\r\n");
	server_answers(base(8, &merged, 1, "+z -c "));
	server_brings_item();
	client_is_told("VALUE k 0 5\r\nb x z\r\nEND\r\n");
}

/* The members of the run were removed from the set. */
TEST(nothing_refers_to_it)
{
	client_asks("smembers k\r\n");
	server_answers(base(7, &abc, 1, ""));
	server_answers("EN\r\n");
	relays(FOUND("k", 3, "+q "), "VALUE k 0 1\r\nq\r\nEND\r\n");
	client_asks("smembers k\r\n");
	server_answers(base(7, &abc, 1, ""));
	server_answers("EN\r\n");
	relays("EN\r\n", "END\r\n");
}

/* It is unknown whether it is missing. */
TEST(failures)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c ", 1);

	client_asks("smembers k\r\n");
	server_answers(base(7, &run, 1, ""));
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("smembers k\r\n");
	server_answers(base(7, &run, 1, ""));
	server_brings_item();
	server_brings_item();
	fake_fail(&fake, RESULT_TIMED_OUT);
	client_hears_nothing();
	relays("EN\r\n", "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	/* The base cannot be removed: it is unknown. */
	client_asks("smembers k\r\n");
	server_answers(base(7, &run, 1, ""));
	server_answers("EN\r\n");
	server_answers(base(7, &run, 1, ""));
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 0);
}

/*
 * Answers all calls, with a base that changes or with one that cannot be removed. Returns the
 * number of calls.
 */
static int never_whole(bool changes)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c ", 3);
	int n = 0;

	for (; fake_waiting(&fake) && n < 500; n++) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		if (call->verb == CALL_APPEND)
			break;
		if (changes)
			run.check++,
				oplog_new_id(
					OPLOG_TABLE, 0, &cupboard.random, cupboard.items[0].id);
		server_answers(call->verb == CALL_CAS ? "EXISTS\r\n"
				: call->key.n > 1     ? "EN\r\n"
						      : base(changes ? n : 7, &run, 1, ""));
	}
	return n;
}

TEST(bounded)
{
	client_asks("smembers k\r\nsadd k a\r\n");
	ck_assert_int_lt(never_whole(true), 500);
	client_is_told("SERVER_ERROR busy\r\n");
	/* The next command in the queue finds the lane in a valid state. */
	relays("STORED\r\n", "STORED\r\n");
	client_asks("smembers k\r\n");
	ck_assert_int_lt(never_whole(false), 500);
	client_is_told("SERVER_ERROR busy\r\n");
}

/* --- other forms --- */

TEST(forms)
{
	client_asks("smembers k\r\n");
	relays("VA 11 kk f0 c7 t-1\r\n@set.4 what\r\n",
		"SERVER_ERROR stored by a newer version of setlistd\r\n");
	client_asks("scard k\r\n");
	relays("VA 11 kk f0 c7 t-1\r\n@set.1 +a \t\r\n",
		"CLIENT_ERROR value is not a collection\r\n");
	exchanges(
		"llen k\r\n", base(7, &abc, 1, ""), "CLIENT_ERROR value is a set, not a list\r\n");
	fake_calls(&fake);
	/*
	 * A large set of version 0.1.0 is no longer read: it is removed, and can be loaded again.
	 */
	client_asks("scard k\r\n");
	server_answers("VA 21 kk f0 c7 t-1\r\n@c00000000001.1.1 +a \r\n");
	serves(FETCH("k") "connection 1: cas k 0 -1 0 7\r\n\r\n", "STORED\r\n");
	client_is_told("NOT_FOUND\r\n");
}

/*
 * A contradictory view can have no answer: the client receives an error, and the view is dropped.
 */
TEST(a_view_makes_no_sense)
{
	static const struct collection_options caching = {
		.log_size = 4096, .table_size = 4096, .cache = 1 << 20
	};

	fake_takes(&caching);
	ck_assert_int_eq(
		reads("smembers k\r\n", &abc, 1, "", "VALUE k 0 5\r\na b c\r\nEND\r\n"), 1);
	cache_find(fake.host.lanes->cache, SLICE("k"), hash_key(SLICE("k"), fake.host.env.seed))
		->view.runs[0]
		.ref.entries += 1000;
	exchanges("srandmember k 5\r\n", base(7, &abc, 1, ""),
		"CLIENT_ERROR value is not a collection\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->corrupt_values, 1);
	ck_assert_int_eq(
		reads("smembers k\r\n", &abc, 1, "", "VALUE k 0 5\r\na b c\r\nEND\r\n"), 1);
}

FIXTURE(setup, teardown)
