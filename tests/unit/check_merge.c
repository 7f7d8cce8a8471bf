/*
 * Merges of the runs of a set, in the background: what is read and written, what is kept,
 * concurrent writes, failures.
 */
#include "serving.h"

static const struct collection_options options = { .log_size = 16, .table_size = 60, .merges = 1 };

static void setup(void)
{
	serving_setup(&options);
}

static void put(const struct oplog_run *runs, size_t count, const char *log)
{
	stored_put(&server, &cupboard, "", runs, count, log);
}

static uint64_t merges(void)
{
	return lanes_statistics(fake.host.lanes)->merges;
}

static struct oplog_run run_of(const char *log, size_t most)
{
	return cupboard_log_run(&cupboard, log, most);
}

/* --- what is read and written --- */

/* Indexes first, then of each run one table after the other, as they are needed. */
TEST(all_in_one)
{
	struct oplog_run runs[] = { run_of("+a +b +c +d +e ", 2), run_of("-b +f ", 2),
		run_of("+b -c +g -z ", 2) };

	put(runs, 3, "");
	client_asks("scompact k\r\n");
	then_makes("GggG");
	server_answer_one(&server);
	then_makes("ggg");
	(void)comes_to(CALL_ADD);
	hears("OK\r\n");
	stores("@[+a +b +d +e +f +g] ");
	/* None of the old items is left: two indexes, six tables. */
	ck_assert_uint_eq(server_items(&server, "k."), 1);
	ck_assert_uint_eq(merges(), 1);
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->segments_deleted, 2 + 3 + 1 + 2);
	makes("gggaGCddddddddG");
}

/* The lane is free meanwhile: other commands are answered. */
TEST(nobody_waits_for_it)
{
	/* So that a read does not find the base too large. */
	static const struct collection_options reading = {
		.log_size = 64, .table_size = 60, .merges = 1
	};
	struct oplog_run runs[] = { run_of("+a +b ", 2), run_of("-b +f ", 2) };

	fake_takes(&reading);
	put(runs, 2, "");
	asks_up_to("scompact k\r\n", CALL_ADD);
	size_t write = fake_oldest(&fake);
	client_asks("sadd k x\r\nsmembers k\r\n");
	for (size_t i = write + 1; i < fake.count; i++)
		server_answer(&server, i);
	/* Its replies must wait for that to the first command; the calls did not. */
	stores("@[+a +b] @[-b +f] +x ");
	makes("GggGaPGgg");
	hears("OK\r\nSTORED\r\nVALUE k 0 5\r\na f x\r\nEND\r\n");
	stores("@[+a +f] +x ");
}

/* A merge that leaves out the oldest run keeps its removals: there is something below that they may be of. */
TEST(without_the_oldest)
{
	struct buf log = BUF_EMPTY;
	struct oplog_run runs[5];

	for (int i = 0; i < 300; i++)
		buf_printf(&log, "+m%04d ", i);
	BUF_ADD(&log, "\0");
	runs[0] = run_of(buf_slice(&log).p, 300);
	runs[1] = run_of("-m0001 +x ", 2);
	runs[2] = run_of("-m0002 -x ", 2);
	runs[3] = run_of("+m0001 +y ", 2);
	runs[4] = run_of("+z ", 2);
	put(runs, 5, "");
	/* A base with this number of references is long. */
	asks_and_hears("sismember k x\r\n", "0\r\n");
	ck_assert_uint_eq(merges(), 1);
	const char *newer = strchr(stored_show(&server), ']');
	ck_assert_str_eq(newer, "] @[+m0001 -m0002 -x +y +z] ");
	asks_and_hears("scard k\r\n", "301\r\n");
	asks_and_hears("scompact k\r\n", "OK\r\n");
	asks_and_hears(
		"scard k\r\nsismember k m0002\r\nsismember k m0001\r\n", "301\r\n0\r\n1\r\n");
	ck_assert(!strchr(stored_show(&server), '-'));
	buf_free(&log);
}

/* A merge whose run has packed tables makes the base one of form 3, also if it keeps older runs. */
TEST(packed)
{
	static const struct collection_options packing = {
		.log_size = 16, .table_size = 60, .pack_size = 1, .merges = 1
	};
	struct buf log = BUF_EMPTY;
	struct oplog_run runs[5];

	fake_takes(&packing);
	for (int i = 0; i < 300; i++)
		buf_printf(&log, "+m%04d ", i);
	BUF_ADD(&log, "\0");
	runs[0] = run_of(buf_slice(&log).p, 300);
	runs[1] = run_of("-m0001 -m0003 -m0005 +x1 +x2 +x3 +x4 +x5 ", 8);
	runs[2] = run_of("-m0002 -m0004 -x1 -x3 ", 4);
	runs[3] = run_of("+m0001 -m0006 +x6 +x7 ", 4);
	runs[4] = run_of("+x8 ", 2);
	put(runs, 5, "");
	asks_and_hears("sismember k x1\r\n", "0\r\n");
	ck_assert_uint_eq(merges(), 1);
	ck_assert_str_eq(strchr(stored_show(&server), ']'),
		"] @[+m0001 -m0002 -m0003 -m0004 -m0005 -m0006 -x1 +x2 -x3 +x4 +x5 +x6|+x7 +x8] ");
	ck_assert_uint_eq(stored_packed(), 2);
	asks_and_hears("scard k\r\nsmismember k m0001 m0002 x1 x2 x8\r\n", "301\r\n1 0 0 1 1\r\n");
	asks_and_hears("scompact k\r\n", "OK\r\n");
	(void)stored_show(&server);
	ck_assert_uint_gt(stored_packed(), 10);
	asks_and_hears(
		"scard k\r\nsmismember k m0001 m0002 x1 x2 x8 m0299\r\n", "301\r\n1 0 0 1 1 1\r\n");
	buf_free(&log);
}

/*
 * If everything that was added is removed again, the mark stays, since another run may follow it
 * by now.
 */
TEST(nothing_is_left)
{
	struct oplog_run runs[] = { run_of("+a +b ", 2), run_of("-a -b -c ", 2) };

	put(runs, 2, "");
	asks_and_hears("scompact k\r\n", "OK\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
	assert_bytes(buf_slice(&server_find(&server, SLICE("k"))->value), OPLOG_SET_MARK);
	asks_and_hears("sadd k x\r\nscard k\r\nsmembers k\r\n",
		"STORED\r\n1\r\nVALUE k 0 1\r\nx\r\nEND\r\n");
	asks_and_hears("scompact k\r\n", "OK\r\n");
	asks_and_hears("smembers k\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n");
}

/* --- tables that overlap with no other --- */

static int count_letters(const char *letters, char letter)
{
	int count = 0;

	for (; *letters; letters++)
		count += *letters == letter;
	return count;
}

TEST(tables_stay)
{
	struct buf log = BUF_EMPTY;
	struct oplog_run runs[2];
	const char *letters;

	for (int i = 0; i < 100; i++)
		buf_printf(&log, "+m%04d ", i);
	BUF_ADD(&log, "\0");
	runs[0] = run_of(buf_slice(&log).p, 10);
	runs[1] = run_of("+m0045x -m0047 ", 2);
	put(runs, 2, "");
	ck_assert_uint_eq(server_items(&server, "k."), 12);
	asks_and_hears("scompact k\r\n", "OK\r\n");
	letters = stored_calls(&fake, &seen);
	/*
	 * The first table and the fifth are read, that of the other run, and the index; the fifth
	 * and the index are written again.
	 */
	ck_assert_int_eq(count_letters(letters, 'g'), 4);
	ck_assert_int_ge(count_letters(letters, 'a'), 2);
	ck_assert_int_le(count_letters(letters, 'a'), 4);
	ck_assert_int_eq(count_letters(letters, 'd'), 4);
	ck_assert_uint_eq(server_items(&server, "k."), 11);
	asks_and_hears(
		"scard k\r\nsmismember k m0045x m0047 m0099 m0000\r\n", "100\r\n1 0 1 1\r\n");
	ck_assert_ptr_nonnull(strstr(stored_show(&server), "+m0045 +m0045x +m0046 +m0048"));
	buf_free(&log);
}

/* --- turns, times to live --- */

/* It pauses between its slices, for other work. */
TEST(in_slices)
{
	struct oplog_run runs[] = { run_of("+a +b +c +d ", 1), run_of("-b +f ", 1) };
	int turns = 0;

	fake_has_time(&fake);
	put(runs, 2, "");
	client_asks("scompact k\r\n");
	for (; fake_waiting(&fake) || fake.turn_count; turns++) {
		server_answer_all(&server);
		(void)fake_pass(&fake, 0);
		ck_assert_int_lt(turns, 1000);
	}
	ck_assert_int_gt(turns, 0);
	client_is_told("OK\r\n");
	stores("@[+a +c +d +f] ");
}

/* A merge that is requested during a smaller one is done after it. */
TEST(asked_for_twice)
{
	struct oplog_run runs[] = { run_of("+a +b ", 2), run_of("-b +f ", 2) };

	put(runs, 2, "");
	asks_up_to("scompact k\r\n", CALL_ADD);
	asks_and_hears("sadd k x\r\nscompact k\r\n", "OK\r\nSTORED\r\nOK\r\n");
	stores("@[+a +f +x] ");
}

TEST(touched_meanwhile)
{
	struct oplog_run runs[] = { run_of("+a +b ", 2), run_of("-b +f ", 2) };

	put(runs, 2, "");
	server_find(&server, SLICE("k"))->expires = SERVER_NOW + 500;
	client_asks("scompact k\r\n");
	ck_assert_int_eq(comes_to(CALL_ADD)->exptime, 510);
	server_answer_one(&server);
	server_find(&server, SLICE("k"))->expires = SERVER_NOW + 900;
	hears("OK\r\n");
	stores("@[+a +f] ~t1424450996 ");
	ck_assert_uint_eq(server_expiring(&server, 910), server_items(&server, "k."));
}

/* --- concurrent writes --- */

TEST(others_add)
{
	struct oplog_run runs[] = { run_of("+a +b ", 2), run_of("-b +f ", 2) }, more[3];

	put(runs, 2, "");
	asks_up_to("scompact k\r\n", CALL_ADD);
	/* To the log, and another proxy has spilled. */
	more[0] = runs[0], more[1] = runs[1], more[2] = run_of("-a +q ", 9);
	put(more, 3, "+new ");
	hears("OK\r\n");
	asks_and_hears("smembers k\r\n", "VALUE k 0 7\r\nf new q\r\nEND\r\n");
	ck_assert_uint_ge(merges(), 1);
}

/*
 * The base has other references by now: the written items are deleted, but none that it refers to.
 * It is then compacted.
 */
static void comes_between(const char *head, const struct oplog_run *runs, size_t count,
	const char *log, const char *members)
{
	struct oplog_run two[] = { run_of("+a +b ", 2), run_of("-b +f ", 2) };

	put(two, 2, "");
	asks_up_to("scompact k\r\n", CALL_ADD);
	stored_put(&server, &cupboard, head, count ? runs : two, count ? count : 2, log);
	hears("OK\r\n");
	asks_and_hears("smembers k\r\n", members);
}

TEST(others_change_it)
{
	struct oplog_run other = run_of("+x +y ", 2);

	comes_between("", &other, 1, "", "VALUE k 0 3\r\nx y\r\nEND\r\n");
	/* Something in front is older than the runs, and must not be lost. */
	comes_between("+q +b -a ", NULL, 0, "", "VALUE k 0 5\r\na f q\r\nEND\r\n");
}

TEST(it_is_gone)
{
	struct oplog_run runs[] = { run_of("+a +b ", 2), run_of("-b +f ", 2) };

	put(runs, 2, "");
	asks_up_to("scompact k\r\n", CALL_ADD);
	server_find(&server, SLICE("k"))->used = false;
	server_answer_all(&server);
	/* The set existed when it was requested. */
	client_is_told("SERVER_ERROR busy\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 2);
	ck_assert_ptr_null(server_find(&server, SLICE("k")));
}

/* --- failures --- */

/*
 * The set is incomplete: nothing is rewritten. A missing item is detected after the reply, a wrong
 * one by its reader.
 */
TEST(an_item_is_gone)
{
	for (size_t lost = 0; lost < 4; lost++) {
		struct oplog_run runs[] = { run_of("+a +b +c ", 2), run_of("-b +f ", 2) };
		const char *id = cupboard.items[cupboard.count - 4 + lost].id;
		put(runs, 2, "");
		size_t items = server_items(&server, "k.");
		struct memcached_item *item = stored_item(&server, slice_of(id, OPLOG_ID));
		item->used = false;
		asks_and_hears("scompact k\r\n", "SERVER_ERROR busy\r\n");
		asks_and_hears("smembers k\r\n", "END\r\n");
		ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 2 * lost + 1);
		put(runs, 2, "");
		item->used = true;
		item->value.data[item->value.start + 3] ^= 1;
		asks_and_hears("scompact k\r\n", "SERVER_ERROR busy\r\n");
		ck_assert_uint_eq(server_items(&server, "k."), items);
		ck_assert_uint_eq(merges(), 0);
		asks_and_hears("smembers k\r\n", "END\r\n");
		cupboard_free(&cupboard);
		server_free(&server);
	}
}

TEST(a_call_fails)
{
	static const struct {
		enum call_verb verb;
		bool item;
		size_t left; /* number of items other than those of the set */
	} cases[] = { { CALL_GET, true, 0 }, { CALL_ADD, true, 0 }, { CALL_CAS, false, 1 } };
	struct oplog_run runs[] = { run_of("+a +b ", 2), run_of("-b +f ", 2) };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		server_free(&server);
		put(runs, 2, "+x ");
		asks_and_hears("sismember k x\r\n", "1\r\n");
		client_asks("scompact k\r\n");
		/* The log is spilled first. */
		(void)comes_to(CALL_CAS);
		server_answer_one(&server);
		(void)comes_to_one(cases[i].verb, cases[i].item);
		fake_fail(&fake, RESULT_TIMED_OUT);
		for (int n = 0; n < 200 && server_answer_one(&server); n++)
			;
		ck_assert_uint_eq(fake_waiting(&fake), 0);
		(void)fake_told(&fake);
		asks_and_hears("smembers k\r\n", "VALUE k 0 5\r\na f x\r\nEND\r\n");
	}
}

#define REFUSES(text) \
	{ \
		.status = RESULT_REFUSED, .line = {(text), sizeof(text) - 1 } \
	}

/* Answers all calls, each commit with this result. Returns how many there were. */
static int answer_commits(const struct result *r)
{
	int commits = 0;

	for (int n = 0; n < 1000 && fake_waiting(&fake); n++) {
		if (fake.calls[fake_oldest(&fake)].call.verb == CALL_CAS) {
			fake_result(&fake, fake_oldest(&fake), r);
			commits++;
		} else {
			server_answer_one(&server);
		}
	}
	ck_assert_uint_eq(fake_waiting(&fake), 0);
	return commits;
}

/* It is not retried immediately. Written items are deleted, unless the base may refer to them. */
TEST(the_commit_fails)
{
	static const struct {
		struct result result;
		size_t left; /* number of items other than those of the set */
	} cases[] = {
		{ REFUSES("SERVER_ERROR out of memory storing object"), 0 },
		{ REFUSES("SERVER_ERROR object too large for cache"), 0 },
		{ { .status = RESULT_TOO_LARGE }, 0 },
		{ { .status = RESULT_BUSY }, 0 },
		{ { .status = RESULT_UNAVAILABLE }, 0 },
		{ REFUSES("SERVER_ERROR backend failure"), 3 },
		{ REFUSES("ERROR"), 3 },
		{ { .status = RESULT_TIMED_OUT }, 3 },
		{ { .status = RESULT_LOST }, 3 },
	};
	struct oplog_run runs[] = {
		run_of("+a +b +c +d +e +f +g +h +i +j +k +l +m +n +o +p +q ", 9),
		run_of("-b +r ", 2), run_of("-c +s ", 2), run_of("-d +t ", 2), run_of("-e +u ", 2)
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		server_free(&server);
		put(runs, 5, "");
		size_t items = server_items(&server, "k.");
		client_asks("sismember k a\r\n");
		ck_assert_int_eq(answer_commits(&cases[i].result), 1);
		client_is_told("1\r\n");
		ck_assert(lanes_idle(fake.host.lanes));
		ck_assert_uint_eq(merges(), i);
		ck_assert_uint_eq(server_items(&server, "k.") - items, cases[i].left);
		/* The next compaction does it. */
		asks_and_hears("sismember k a\r\n", "1\r\n");
		ck_assert_uint_eq(merges(), i + 1);
		asks_and_hears("scard k\r\n", "17\r\n");
	}
}

FIXTURE(setup, serving_teardown)
