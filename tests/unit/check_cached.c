/*
 * Reading a cached set: what is requested if little or nothing has changed, and the check of all
 * its items.
 */
#include "serving.h"
#include "set_model.h"
#include "util/random.h"

enum { MINUTE = 60000 };

static const struct collection_options options = {
	.log_size = 16384, .table_size = 65536, .cache = 1 << 20, .merges = 1
};

static struct buf the_log;

static void setup(void)
{
	serving_setup(&options);
}

static void teardown(void)
{
	buf_free(&the_log);
	serving_teardown();
}

/* Puts the set k there: runs, and the log. */
static void put(const struct oplog_run *runs, size_t count)
{
	struct buf log = BUF_EMPTY;

	buf_printf(&log, "%.*s", (int)buf_size(&the_log), buf_slice(&the_log).p);
	BUF_ADD(&log, "\0");
	stored_put(&server, &cupboard, "", runs, count, buf_slice(&log).p);
	buf_free(&log);
}

static void add_to_log(const char *prefix, int count)
{
	for (int i = 0; i < count; i++)
		buf_printf(&the_log, "+%s%04d ", prefix, i);
}

static void counts(const char *number, const char *calls_)
{
	asks_and_hears("scard k\r\n", number);
	makes(calls_);
}

/* --- changes --- */

/* A base that refers to one run many times would need memory for each reference. */
TEST(run_twice)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b ", 2), twice[] = { run, run };

	put(twice, 2);
	asks_and_hears("scard k\r\n", "CLIENT_ERROR value is not a collection\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->corrupt_values, 1);
}

TEST(a_short_base_is_read)
{
	add_to_log("m", 10);
	put(NULL, 0);
	counts("10\r\n", "G");
	counts("10\r\n", "G");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->cache_hits, 1);
}

TEST(a_longer_one_is_asked_about)
{
	add_to_log("m", 100);
	put(NULL, 0);
	counts("100\r\n", "G");
	counts("100\r\n", "L");
	counts("100\r\n", "L");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->cache_hits, 2);
	add_to_log("n", 1);
	put(NULL, 0);
	/*
	 * It has changed: it is likely to change again, so it is read directly until it was
	 * unchanged twice.
	 */
	counts("101\r\n", "LG");
	counts("101\r\n", "G");
	counts("101\r\n", "G");
	counts("101\r\n", "L");
	put(NULL, 0);
	counts("101\r\n", "LG");
	counts("101\r\n", "G");
	put(NULL, 0);
	counts("101\r\n", "G");
	counts("101\r\n", "G");
	counts("101\r\n", "G");
	counts("101\r\n", "L");
	put(NULL, 0);
	counts("101\r\n", "LG");
	/* It is missing. */
	server_find(&server, SLICE("k"))->used = false;
	counts("NOT_FOUND\r\n", "G");
	put(NULL, 0);
	counts("101\r\n", "G");
	counts("101\r\n", "L");
	server_find(&server, SLICE("k"))->used = false;
	counts("NOT_FOUND\r\n", "L");
}

/* A read on a connection means nothing for items on another one. */
TEST(another_connection)
{
	add_to_log("m", 100);
	put(NULL, 0);
	counts("100\r\n", "G");
	counts("100\r\n", "L");
	fake.connection = 2;
	counts("100\r\n", "LG");
	counts("100\r\n", "G");
	counts("100\r\n", "G");
	counts("100\r\n", "L");
}

/* A pop will store what it has read, so it reads. */
TEST(pops_read)
{
	add_to_log("m", 100);
	put(NULL, 0);
	counts("100\r\n", "G");
	client_asks("spop k 2\r\n");
	server_answer_one(&server);
	makes("GC");
	server_answer_all(&server);
	ck_assert_uint_eq(
		strlen(fake_told(&fake)), strlen("VALUE k 0 11\r\nm0000 m0000\r\nEND\r\n"));
	counts("98\r\n", "LG");
}

TEST(items_are_kept)
{
	struct oplog_run runs[] = { cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2),
		cupboard_log_run(&cupboard, "-a +f ", 2),
		cupboard_log_run(&cupboard, "-b +g ", 1) };

	put(runs, 2);
	asks_and_hears("smembers k\r\n", "VALUE k 0 9\r\nb c d e f\r\nEND\r\n");
	makes("Gggggg");
	counts("5\r\n", "G");
	add_to_log("z", 1);
	put(runs, 2);
	counts("6\r\n", "G");
	put(runs, 3);
	asks_and_hears("smembers k\r\n", "VALUE k 0 15\r\nc d e f g z0000\r\nEND\r\n");
	makes("Gggg");
}

/* --- whether all of it is still there --- */

static struct oplog_run run;

static void put_and_read(void)
{
	add_to_log("m", 100);
	run = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);
	put(&run, 1);
	counts("105\r\n", "Ggg");
}

static void lose(size_t item)
{
	stored_item(&server, slice_of(cupboard.items[item].id, OPLOG_ID))->used = false;
}

/* After a reply, once a minute, including items that are not read otherwise. */
TEST(presence)
{
	put_and_read();
	fake.host.env.now += MINUTE - 1;
	counts("105\r\n", "L");
	fake.host.env.now++;
	client_asks("scard k\r\n");
	server_answer_one(&server);
	client_is_told("105\r\n");
	/* The index names the other items. */
	ck_assert_uint_eq(fake_waiting(&fake), 1);
	ck_assert(!lanes_idle(fake.host.lanes));
	client_asks("scard k\r\n");
	server_answer(&server, fake.count - 1);
	client_is_told("105\r\n");
	makes("LgL");
	server_answer_all(&server);
	makes("llll");
	ck_assert(lanes_idle(fake.host.lanes));
	counts("105\r\n", "L");
	fake.host.env.now += MINUTE;
	counts("105\r\n", "Lgllll");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 0);
}

/* Nothing of it is read any more, but a set that is not whole is not served for long. */
TEST(an_item_is_lost)
{
	for (size_t lost = 0; lost < 4; lost++) {
		put_and_read();
		lose(cupboard.count - 4 + lost);
		counts("105\r\n", "L");
		fake.host.env.now += MINUTE;
		counts("105\r\n", lost == 3 ? "Lgl" : "Lgllll");
		asks_and_hears("scard k\r\n", "NOT_FOUND\r\n");
		ck_assert_ptr_null(server_find(&server, SLICE("k")));
		ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, lost + 1);
		(void)stored_calls(&fake, &seen);
		buf_free(&the_log);
	}
}

/* It was there again, or it was another proxy that had merged it. */
TEST(an_item_seems_lost)
{
	struct oplog_run merged;

	put_and_read();
	fake.host.env.now += MINUTE;
	lose(0);
	counts("105\r\n", "Lgllll");
	put(&run, 1);
	counts("105\r\n", "Ggllll");
	counts("105\r\n", "L");
	lose(0);
	fake.host.env.now += MINUTE;
	counts("105\r\n", "Lgllll");
	merged = cupboard_log_run(&cupboard, "+a +b +c +d ", 5);
	put(&merged, 1);
	asks_and_hears("scard k\r\n", "104\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 0);
}

/*
 * While its items are checked again, the set is replaced by another, of which no item is known to
 * be missing.
 */
TEST(suspected_for_the_last_time)
{
	struct oplog_run merged;

	put_and_read();
	fake.host.env.now += MINUTE;
	lose(0);
	counts("105\r\n", "Lgllll");
	client_asks("scard k\r\n");
	for (int i = 0; i < 6; i++)
		ck_assert(server_answer_one(&server));
	makes("GgllllG");
	merged = cupboard_log_run(&cupboard, "+a +b +c +d ", 5);
	put(&merged, 1);
	lose(0);
	hears("104\r\n");
	ck_assert_ptr_nonnull(server_find(&server, SLICE("k")));
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 0);
}

/* A changed index cannot name the items: it counts as missing. */
TEST(an_index_is_garbled)
{
	put_and_read();
	buf_consume(&stored_item(&server, run.id)->value, 1);
	fake.host.env.now += MINUTE;
	counts("105\r\n", "Lgl");
	asks_and_hears("scard k\r\n", "NOT_FOUND\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->incomplete_sets, 1);
}

/*
 * A server that returns may have lost items that are in memory here. So the first read on a new
 * connection checks all.
 */
TEST(a_server_comes_back)
{
	put_and_read();
	fake.connection = 2;
	counts("105\r\n", "LGgllll");
	counts("105\r\n", "G");
	counts("105\r\n", "G");
	counts("105\r\n", "L");
	fake.connection = 3;
	lose(0);
	asks_and_hears("scard k\r\n", "NOT_FOUND\r\n");
	ck_assert_ptr_null(server_find(&server, SLICE("k")));
}

/* It is unknown: then no loss is suspected. */
TEST(presence_is_not_known)
{
	put_and_read();
	fake.host.env.now += MINUTE;
	lose(0);
	client_asks("scard k\r\n");
	server_answer_one(&server);
	server_answer_one(&server);
	client_is_told("105\r\n");
	ck_assert_uint_eq(fake_waiting(&fake), 4);
	fake_result(&fake, fake.count - 1, &(struct result){ .status = RESULT_TIMED_OUT });
	server_answer_all(&server);
	(void)stored_calls(&fake, &seen);
	counts("105\r\n", "L");
}

/* --- memory --- */

TEST(within_the_budget)
{
	static const struct collection_options small = {
		.log_size = 16384, .table_size = 65536, .cache = 40000, .merges = 1
	};
	char line[100];

	fake_takes(&small);
	for (int i = 0; i < 200; i++) {
		struct buf value = BUF_EMPTY;
		int n = snprintf(line, sizeof(line), "s%d", i);
		for (int k = 0; k <= i; k++)
			buf_printf(&value, "+member%d ", k);
		server_put(&server, slice_of(line, (size_t)n), buf_slice(&value));
		buf_free(&value);
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 200; i++) {
			snprintf(line, sizeof(line), "scard s%d\r\nsmembers s%d\r\n", i, i);
			client_asks(line);
			server_answer_all(&server);
			snprintf(line, sizeof(line), "%d\r\nVALUE s%d 0 ", i + 1, i);
			ck_assert_int_eq(strncmp(fake_told(&fake), line, strlen(line)), 0);
			ck_assert_uint_le(machines_cache_memory(fake.host.lanes), 40000);
		}
	}
	ck_assert_uint_gt(machines_cache_memory(fake.host.lanes), 10000);
}

static void ask_about(const char *command, int first, int count)
{
	struct buf line = BUF_EMPTY;

	buf_printf(&line, "%s k", command);
	for (int i = 0; i < count; i++)
		buf_printf(&line, " member%d", (first + i) % 1000);
	BUF_ADD(&line, "\r\n\0");
	client_asks(buf_slice(&line).p);
	server_answer_all(&server);
	buf_free(&line);
}

/* Written tables are kept for the next read, which may never happen. */
TEST(writes_within_the_budget)
{
	static const struct collection_options small = {
		.log_size = 1024, .table_size = 1024, .cache = 40000, .merges = 1
	};
	size_t most = 0;

	fake_takes(&small);
	ask_about("sadd", 0, 100);
	ask_about("scard", 0, 0);
	for (int i = 0; i < 300; i++) {
		ask_about(i % 3 ? "sadd" : "srem", i * 70, 200);
		ck_assert_uint_le(machines_cache_memory(fake.host.lanes), 40000);
		if (machines_cache_memory(fake.host.lanes) > most)
			most = machines_cache_memory(fake.host.lanes);
	}
	ck_assert_uint_gt(lanes_statistics(fake.host.lanes)->merges, 10);
	ck_assert_uint_gt(most, 30000);
	(void)fake_told(&fake);
	/* There was no read for a long time: the set is no longer kept. */
	ck_assert_uint_eq(machines_cache_memory(fake.host.lanes), 0);
}

/*
 * Stores 280 members and a run that removes some of them, so that a merge rewrites nearly all
 * tables.
 */
static void put_two_runs(void)
{
	struct buf all = BUF_EMPTY, some = BUF_EMPTY;
	struct oplog_run runs[2];

	for (int i = 0; i < 280; i++) {
		buf_printf(&all, "+member%04d ", i);
		if (i % 20 == 0)
			buf_printf(&some, "-member%04d ", i);
	}
	BUF_ADD(&all, "\0");
	BUF_ADD(&some, "\0");
	runs[0] = cupboard_log_run(&cupboard, buf_slice(&all).p, 20);
	runs[1] = cupboard_log_run(&cupboard, buf_slice(&some).p, 20);
	put(runs, 2);
	buf_free(&all);
	buf_free(&some);
}

static void reads_all(const char *calls_)
{
	ask_about("smembers", 0, 0);
	makes(calls_);
	ck_assert_int_eq(strncmp(fake_told(&fake), "VALUE k 0 2925\r\n", 16), 0);
}

/* A merge replaces its inputs in memory, although for a while there is no room for both. */
TEST(a_merge_is_kept)
{
	static const struct collection_options small = {
		.log_size = 16384, .table_size = 128, .cache = 24000, .merges = 1
	};

	fake_takes(&small);
	put_two_runs();
	reads_all("Ggggggggggggggggg");
	ask_about("scompact", 0, 0);
	client_is_told("OK\r\n");
	ck_assert_uint_le(machines_cache_memory(fake.host.lanes), 24000);
	(void)stored_calls(&fake, &seen);
	reads_all("G");
	ck_assert_uint_le(machines_cache_memory(fake.host.lanes), 24000);
}

/* Nothing of a set is dropped while it is read. At the end of the read there is room again. */
TEST(a_merge_beside_a_read)
{
	static const struct collection_options small = {
		.log_size = 16384, .table_size = 128, .cache = 20000, .merges = 1
	};

	fake_takes(&small);
	put_two_runs();
	ask_about("smembers", 0, 0);
	client_asks("scompact k\r\n");
	while (fake.calls[fake_oldest(&fake)].call.verb != CALL_ADD)
		server_answer_one(&server);
	size_t read = fake.count;
	client_asks("smembers k\r\n");
	for (size_t i = 0; i < fake.count; i++) {
		if (i != read && !fake.calls[i].answered)
			server_answer(&server, i);
	}
	ck_assert_uint_eq(fake_waiting(&fake), 1);
	ck_assert_uint_gt(machines_cache_memory(fake.host.lanes), 20000);
	server_answer_all(&server);
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->merges, 1);
	ck_assert_uint_le(machines_cache_memory(fake.host.lanes), 20000);
	(void)fake_told(&fake);
}

/* A read that changes nothing but the view's base counts the memory of that. */
TEST(plain_reads_count_memory)
{
	size_t before;

	add_to_log("a", 10);
	put(NULL, 0);
	asks_and_hears("scard k\r\n", "10\r\n");
	before = machines_cache_memory(fake.host.lanes);
	add_to_log("b", 400);
	put(NULL, 0);
	asks_and_hears("scard k\r\n", "410\r\n");
	ck_assert_uint_ge(machines_cache_memory(fake.host.lanes), before + 400 * strlen("+b0000 "));
}

FIXTURE(setup, teardown)
