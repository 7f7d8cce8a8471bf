/*
 * Members that expire in the stored form: what compactions, merges and loads make of their dates,
 * by the clock of the server.
 */
#include "collection/large.h"
#include "collection/text/lease.h"
#include "dated.h"
#include "serving.h"

static const struct collection_options options = { .base_size = 64,
	.segment_size = 64,
	.log_size = 16,
	.table_size = 60,
	.merges = 1,
	.lease_time = 10 };

/* Seconds by which the server's clock is after SERVER_NOW, while ours is another one. */
static int later;

static int64_t clock_of(struct env *env, struct slice key)
{
	(void)env;
	(void)key;
	return SERVER_NOW + later;
}

static void takes(const struct collection_options *o)
{
	fake_takes(o);
	fake.host.env.server_time = clock_of;
}

static void setup(void)
{
	static struct large_filter large;

	later = 0;
	serving_setup(&options);
	fake.host.env.server_time = clock_of;
	fake.host.env.large = &large;
	fake.host.env.unix_time = 1000;
}

FIXTURE(setup, serving_teardown)

static struct oplog_run run_of(const char *log, size_t most)
{
	return dated_run(&cupboard, log, most);
}

/* Stores a set of form 3, as runs with dates need it. */
static void put(const char *head, const struct oplog_run *runs, size_t count, const char *log)
{
	struct buf base = BUF_EMPTY;

	stored_put(&server, &cupboard, "", runs, count, "");
	buf_printf(&base, "%s%s", dated_log(head), count ? OPLOG_WIDE_SET_MARK : "");
	for (size_t i = 0; i < count; i++)
		oplog_add_run(&base, &runs[i]);
	buf_printf(&base, "%s", dated_log(log));
	server_put(&server, SLICE("k"), buf_slice(&base));
	buf_free(&base);
}

static uint64_t merges(void)
{
	return lanes_statistics(fake.host.lanes)->merges;
}

/* --- compaction --- */

static const struct collection_options without_merges = { .log_size = 16, .table_size = 100 };

static void compacts(void)
{
	asks_and_hears("scompact k\r\n", "OK\r\n");
}

TEST(a_log_drops_what_has_expired)
{
	put("", NULL, 0, "+a^5 +b +c^-1 -d +a^9 +e^0 +f^1 ");
	compacts();
	stores("+a^9 +b +f^1 ");
	later = 1;
	compacts();
	stores("+a^9 +b ");
	asks_and_hears("smembers k\r\n", "VALUE k 0 3\r\na b\r\nEND\r\n");
	later = 9;
	compacts();
	stores("+b ");
	put("", NULL, 0, "+a^5 ");
	compacts();
	/* It is empty, and exists. */
	stores("");
	asks_and_hears("scard k\r\n", "0\r\n");
}

TEST(a_log_over_runs_removes_what_has_expired)
{
	struct oplog_run runs[] = { run_of("+a +b^90 +c ", 2), run_of("+d ", 1), run_of("+e ", 1) };

	takes(&without_merges);
	put("", runs, 3, "+a^5 +b^-1 +a^5 -b +a^0 +b^0 +a^7 +a^0 ");
	asks_and_hears("scard k\r\n", "3\r\n");
	stores("@[+a +b^90|+c] @[+d] @[+e] -a -b ");
	/* The dates are those of the last words. */
	put("", runs, 3, "+x +x +x +x^7 +y^8 ");
	asks_and_hears("scard k\r\n", "7\r\n");
	stores("@[+a +b^90|+c] @[+d] @[+e] @[+x^7 +y^8] ");
}

TEST(a_spill_keeps_dates)
{
	takes(&without_merges);
	put("", NULL, 0,
		"+m01^5 +m02 +m03^-5 +m04^9 +m05 -m06 +m07 +m08 +m09 +m10 "
		"+m11 +m12 +m13 +m14 +m15 +m16 +m17^8 +m18 ");
	compacts();
	stores("@[+m01^5 +m02 +m04^9 +m05 +m07 +m08 +m09 +m10 +m11 +m12 +m13|+m14 "
	       "+m15 +m16 +m17^8 +m18] ");
	later = 7;
	asks_and_hears("smismember k m01 m02 m03 m04\r\nscard k\r\n", "0 1 0 1\r\n15\r\n");
}

/* The head is below the runs: its dates count only where they do not mention a member. */
TEST(a_head_keeps_dates)
{
	struct oplog_run runs[] = { run_of("+a +b +c ", 2), run_of("-a ", 1) };

	takes(&without_merges);
	put("+a +x^5 +y^-5 -z ", runs, 2, "+x^9 -q ");
	asks_and_hears("smembers k\r\n", "VALUE k 0 5\r\nb c x\r\nEND\r\n");
	ck_assert_ptr_nonnull(strstr(stored_show(&server), "+x^5"));
	compacts();
	stores("@[+b +c +x^9] ");
}

/* A compaction with the fold of the view, which stays valid, and finds the dates where they are. */
TEST(a_view_follows_its_compaction)
{
	static const struct collection_options caching = { .base_size = 1 << 14,
		.segment_size = 1 << 14,
		.log_size = 1 << 14,
		.table_size = 1 << 14,
		.cache = 1 << 20,
		.merges = 1 };
	struct buf log = BUF_EMPTY;
	struct oplog_run runs[] = { run_of("+x +y^5 +z ", 9) };
	uint64_t hits;

	takes(&caching);
	for (int i = 0; i < 100; i++)
		buf_printf(&log, "+a^3 +b^7 -c +d +x^-1 ");
	BUF_ADD(&log, "\0");
	put("", runs, 1, buf_slice(&log).p);
	buf_free(&log);
	asks_and_hears("smembers k\r\n", "VALUE k 0 9\r\na b d y z\r\nEND\r\n");
	stores("@[+x +y^5 +z] +a^3 +b^7 -c +d -x ");
	asks_and_hears("smembers k\r\n", "VALUE k 0 9\r\na b d y z\r\nEND\r\n");
	later = 3;
	hits = lanes_statistics(fake.host.lanes)->cache_hits;
	asks_and_hears("smembers k\r\n", "VALUE k 0 7\r\nb d y z\r\nEND\r\n");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->cache_hits, hits + 1);
	later = 5;
	asks_and_hears("smembers k\r\nscard k\r\n", "VALUE k 0 5\r\nb d z\r\nEND\r\n3\r\n");
	later = 7;
	asks_and_hears("smembers k\r\nscard k\r\n", "VALUE k 0 3\r\nd z\r\nEND\r\n2\r\n");
}

/* Only the CAS token of a large base is read, and the view is at the moment of that read. */
TEST(a_base_that_is_unchanged)
{
	static const struct collection_options caching = { .base_size = 1 << 14,
		.segment_size = 1 << 14,
		.log_size = 1 << 14,
		.table_size = 1 << 14,
		.cache = 1 << 20 };
	struct buf log = BUF_EMPTY;

	takes(&caching);
	for (int i = 0; i < 100; i++)
		buf_printf(&log, "+m%03d^%d ", i, i);
	BUF_ADD(&log, "\0");
	put("", NULL, 0, buf_slice(&log).p);
	buf_free(&log);
	for (later = 0; later < 10; later++) {
		asks_and_hears("sismember k m007\r\n", later < 7 ? "1\r\n" : "0\r\n");
		makes(later ? "L" : "G");
	}
	asks_and_hears("sttl k m012\r\nscard k\r\n", "2\r\n89\r\n");
}

/* --- merges --- */

TEST(the_oldest_run_drops_what_has_expired)
{
	struct oplog_run runs[] = { run_of("+a^-1 +b^5 +c +d^0 +e ", 2),
		run_of("-b +f^7 +g^-9 ", 2), run_of("+b^8 -c +e^3 ", 2) };

	put("", runs, 3, "");
	compacts();
	stores("@[+b^8 +e^3 +f^7] ");
	ck_assert_uint_eq(server_items(&server, "k."), 1);
}

/* What a newer run has expired with must not return from an older one. */
TEST(newer_runs_remove_what_has_expired)
{
	struct buf log = BUF_EMPTY;
	struct oplog_run runs[5];

	for (int i = 0; i < 300; i++)
		buf_printf(&log, "+m%04d ", i);
	BUF_ADD(&log, "\0");
	runs[0] = run_of(buf_slice(&log).p, 300);
	runs[1] = run_of("+m0001^-1 +m0003 +m0004 +m0005 +m0006 +x^5 +x2 +x3 +x4 ", 2);
	runs[2] = run_of("-m0002 -x2 ", 2);
	runs[3] = run_of("+m0003^9 +y ", 2);
	runs[4] = run_of("+z ", 2);
	put("", runs, 5, "");
	asks_and_hears("sismember k x\r\n", "1\r\n");
	ck_assert_uint_eq(merges(), 1);
	ck_assert_str_eq(strchr(stored_show(&server), ']'),
		"] @[-m0001 -m0002 +m0003^9 +m0004 +m0005|+m0006 +x^5 -x2 +x3 +x4|+y +z] ");
	asks_and_hears("scard k\r\nsttl k m0003\r\nsttl k m0001\r\n", "303\r\n9\r\nNOT_FOUND\r\n");
	buf_free(&log);
}

/* Writes a run of tables of ten members, with a date in the first and the fifth one. */
static void put_tables(const char *first, const char *fifth)
{
	struct buf log = BUF_EMPTY;
	struct oplog_run runs[2];

	for (int i = 0; i < 100; i++)
		buf_printf(&log, "+m%04dabcdefgh%s ", i, i == 3 ? first : i == 43 ? fifth : "");
	BUF_ADD(&log, "\0");
	runs[0] = run_of(buf_slice(&log).p, 10);
	runs[1] = run_of("+m0095x ", 2);
	put("", runs, 2, "");
	buf_free(&log);
}

/* Returns whether a table that begins with this member was read by the merge. */
static size_t reads_of(size_t from)
{
	size_t count = 0;

	for (size_t i = from; i < fake.count; i++)
		count += fake.calls[i].call.verb == CALL_GET &&
			slice_starts(fake.calls[i].call.key, SLICE("k.t"));
	return count;
}

/* A merge reads only the tables that overlap with another run, or have what it drops. */
TEST(tables_stay_until_their_first_date)
{
	static const struct collection_options large = {
		.log_size = 16, .table_size = 180, .merges = 1
	};
	size_t before;

	takes(&large);
	before = fake.count;
	put_tables("^5", "^9");
	compacts();
	/* The first table, the last one, and the other run. */
	ck_assert_uint_eq(reads_of(before), 3);
	ck_assert_ptr_nonnull(strstr(stored_show(&server), "+m0043abcdefgh^9 "));
	ck_assert_ptr_nonnull(strstr(stored_show(&server), "+m0003abcdefgh^5 "));
	later = 7;
	before = fake.count;
	put_tables("^50", "^7");
	compacts();
	ck_assert_uint_eq(reads_of(before), 4);
	ck_assert_ptr_null(strstr(stored_show(&server), "+m0043"));
	ck_assert_ptr_nonnull(strstr(stored_show(&server), "+m0003abcdefgh^50 "));
	asks_and_hears("scard k\r\n", "100\r\n");
}

/* A single run has nothing to merge with, but something to drop. */
TEST(one_run)
{
	struct oplog_run run = run_of("+a^5 +b +c^7 ", 9), plain = run_of("+a +b ", 9);

	put("", &run, 1, "");
	compacts();
	stores("@[+a^5 +b +c^7] ");
	later = 5;
	compacts();
	stores("@[+b +c^7] ");
	ck_assert_uint_eq(server_items(&server, "k."), 1 + 1);
	later = 7;
	compacts();
	/* Without dates it is left as it is. */
	ck_assert_uint_eq(merges(), 3);
	compacts();
	ck_assert_uint_eq(merges(), 3);
	stores("@[+b] ");
	put("", &plain, 1, "");
	compacts();
	ck_assert_uint_eq(merges(), 3);
	/* All are gone: an empty set. */
	run = run_of("+a^5 +b^6 ", 1);
	put("", &run, 1, "");
	compacts();
	stores("");
	assert_bytes(buf_slice(&server_find(&server, SLICE("k"))->value), OPLOG_WIDE_SET_MARK);
	asks_and_hears("scard k\r\nsaddx k x\r\n", "0\r\nSTORED\r\n");
}

/* A read that finds a run half expired makes the set smaller. */
TEST(a_read_of_a_spent_run)
{
	static const struct collection_options calm = {
		.base_size = 1 << 12, .log_size = 1 << 12, .table_size = 60, .merges = 1
	};
	struct oplog_run runs[] = { run_of("+a1 +a2 +a3 +a4 +a5 +a6 +a7 +a8 +a9 +b1 +b2 ", 9),
		run_of("+a1^4 +a2^6 +a3^8 ", 9) };

	takes(&calm);
	later = 5;
	put("", runs, 2, "");
	asks_and_hears("scard k\r\n", "10\r\n");
	ck_assert_uint_eq(merges(), 0);
	later = 6;
	asks_and_hears("scard k\r\n", "9\r\n");
	ck_assert_uint_eq(merges(), 1);
	stores("@[+a3^8 +a4 +a5 +a6 +a7 +a8|+a9 +b1 +b2] ");
	/* The rest are few. */
	later = 8;
	asks_and_hears("scard k\r\n", "8\r\n");
	ck_assert_uint_eq(merges(), 1);
}

/* A merge by a clock that is before that of a read keeps what has expired by the other. */
TEST(clocks_that_differ)
{
	struct oplog_run runs[] = { run_of("+a^4 +b^8 ", 9) };

	later = 5;
	put("", runs, 1, "");
	asks_and_hears("smembers k\r\n", "VALUE k 0 1\r\nb\r\nEND\r\n");
	later = 3;
	compacts();
	stores("@[+a^4 +b^8] ");
	asks_and_hears("smembers k\r\n", "VALUE k 0 3\r\na b\r\nEND\r\n");
	later = 8;
	asks_and_hears("smembers k\r\n", "VALUE k 0 0\r\n\r\nEND\r\n");
}

/* Tables that are packed keep dates, and so does the index. */
TEST(packed_tables)
{
	static const struct collection_options packing = {
		.log_size = 16, .table_size = 120, .pack_size = 1, .cache = 1 << 20, .merges = 1
	};

	takes(&packing);
	put("", NULL, 0,
		"+m01^5 +m02^6 +m03^5 +m04^9 +m05 +m06 +m07 +m08 +m09 +m10 +m11 +m12 +m13 "
		"+m14 +m15 +m16 +m17 +m18 +m19 +m20^7 +m21 +m22 +m23 +m24 +m25 +m26 ");
	compacts();
	(void)stored_show(&server);
	ck_assert_uint_gt(stored_packed(), 1);
	for (later = 0; later < 10; later++) {
		char count[16];
		snprintf(count, sizeof(count), "%d\r\n",
			26 - 2 * (later >= 5) - (later >= 6) - (later >= 7) - (later >= 9));
		asks_and_hears("scard k\r\n", count);
	}
	compacts();
	ck_assert_ptr_null(strchr(stored_show(&server), '^'));
	asks_and_hears("scard k\r\n", "21\r\n");
}

/* --- taking all --- */

TEST(a_set_is_taken)
{
	put("", NULL, 0, "+a^5 +b +c^-1 ");
	asks_and_hears("stake k\r\n", "VALUE k 0 3\r\na b\r\nEND\r\n");
	stores("");
	put("", NULL, 0, "+c^-1 ");
	asks_and_hears("stake k\r\n", "END\r\n");
}

/* Each once, although tables of a run are left, with their dates. */
TEST(a_set_is_taken_in_blocks)
{
	/* A block is one table. */
	static const struct collection_options blocks = {
		.base_size = 1 << 20, .log_size = 64, .table_size = 60, .block = 1
	};
	struct oplog_run runs[] = { run_of("+a^5 +b^-1 +c +d^9 +e +f^1 ", 2),
		run_of("+a^-1 +c^7 +x^-2 ", 2) };

	takes(&blocks);
	put("", runs, 2, "+e^2 +q^3 ");
	asks_and_hears("stake k\r\n", "VALUE k 0 1\r\nd\r\nEND\r\n");
	stores("@[+e +f^1] @[+a^-1 +c^7|+x^-2] +e^2 +q^3 ");
	later = 2;
	asks_and_hears("stake k\r\n", "VALUE k 0 1\r\nc\r\nEND\r\n");
	asks_and_hears("stake k\r\n", "VALUE k 0 1\r\nq\r\nEND\r\n");
	asks_and_hears("stake k\r\nscard k\r\n", "END\r\n0\r\n");
}

/* --- loads --- */

static char token[LEASE_TOKEN + 1];

static void leases(void)
{
	const char *reply;

	client_asks("slease k\r\n");
	server_answer_all(&server);
	reply = fake_told(&fake);
	ck_assert_msg(strncmp(reply, "LEASE ", 6) == 0, "%s", reply);
	memcpy(token, reply + 6, LEASE_TOKEN);
}

static void loads(const char *command, const char *words)
{
	char line[256];

	snprintf(line, sizeof(line), "%s k %s %s\r\n", command, token, words);
	asks_and_hears(line, "STORED\r\n");
}

static void compacted(struct op *op, const struct outcome *outcome)
{
	op->rounds = outcome->status == OUTCOME_DONE;
}

static void compacts_load(void)
{
	struct op op = { .kind = OP_COMPACT, .key = SLICE("k"), .done = compacted };

	lanes_submit(fake.host.lanes, &op);
	server_answer_all(&server);
	ck_assert_uint_eq(op.rounds, 1);
}

/* The words after the first three, which are the mark, the lease and maybe a run. */
static const char *loading_log(void)
{
	struct slice base = buf_slice(&server_find(&server, SLICE("k"))->value), rest = base, word;
	static char text[4096];

	while ((word = slice_token(&rest)).n && word.p[0] == '@')
		base = slice_skip(rest, 1);
	snprintf(text, sizeof(text), "%.*s", (int)base.n, base.p);
	return dated_show(text);
}

/* A word whose date has passed removes the member that is loaded. */
TEST(words_of_a_load)
{
	static const struct collection_options long_log = { .base_size = 64,
		.segment_size = 64,
		.log_size = 64,
		.table_size = 60,
		.merges = 1,
		.lease_time = 10 };

	takes(&long_log);
	leases();
	asks_and_hears("saddex k 5 a b\r\nsaddex k 3 a\r\nsaddex k 9 b\r\nsaddx k c\r\n",
		"STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\n");
	ck_assert_str_eq(loading_log(), "+a^5 +b^5 +a^3 +b^9 +c ");
	asks_and_hears("sttl k a\r\n", "NOT_FOUND\r\n");
	later = 3;
	compacts_load();
	ck_assert_str_eq(loading_log(), "-a +b^9 +c ");
	loads("sload", "a b x");
	loads("sfill", "c d");
	asks_and_hears("smembers k\r\nsttl k b\r\n", "VALUE k 0 7\r\nb c d x\r\nEND\r\n6\r\n");
}

/* The same in a run of words. */
TEST(a_run_of_words_of_a_load)
{
	leases();
	asks_and_hears("saddex k 5 a b wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\r\n",
		"STORED\r\n");
	asks_and_hears("saddex k 2 c\r\n", "STORED\r\n");
	later = 2;
	compacts_load();
	ck_assert_str_eq(loading_log(), "");
	loads("sload", "a b c d");
	later = 5;
	loads("sfill", "");
	asks_and_hears("smembers k\r\n", "VALUE k 0 1\r\nd\r\nEND\r\n");
	compacts();
	stores("@[+d] ");
}

/* Loaded runs with dates are merged without a removal. */
TEST(loaded_runs)
{
	static struct collection_rule rule = { .compact_waste = 0.5, .member_ttl = 5 };
	char word[16];

	rule.prefix = SLICE("");
	rule.delimiter = ',';
	fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	leases();
	for (int i = 0; i < 20; i++) {
		snprintf(word, sizeof(word), "m%02d", i);
		loads("sload", word);
		later += i % 10 == 9;
	}
	ck_assert_uint_gt(merges(), 0);
	ck_assert_uint_lt(server_items(&server, "k."), 15);
	/* What expires during the load is left for a merge of the complete set. */
	later = 7;
	for (int i = 20; i < 40; i++) {
		snprintf(word, sizeof(word), "m%02d", i);
		loads("sload", word);
	}
	later = 4;
	rule.member_ttl = 0;
	loads("sfill", "last");
	ck_assert_ptr_null(strchr(stored_show(&server), '-'));
	ck_assert_ptr_nonnull(strstr(stored_show(&server), "+m01^5 "));
	asks_and_hears(
		"scard k\r\nsttl k m25\r\nsttl k m01\r\nsttl k last\r\n", "41\r\n8\r\n1\r\n-1\r\n");
	later = 11;
	compacts();
	ck_assert_ptr_nonnull(strstr(stored_show(&server), "@[+last +m20^12 +m21^12 "));
}
