/* Sets with a long log: folded if that is enough, otherwise written to a run. */
#include "collection/lane/lane.h"
#include "serving.h"

/* No merges: those are in check_merge.c. */
static const struct collection_options options = { .log_size = 16, .table_size = 100 };

static void setup(void)
{
	serving_setup(&options);
}

static void put(const char *log)
{
	stored_put(&server, &cupboard, "", NULL, 0, log);
}

static void compacts(const char *reply)
{
	asks_and_hears("scompact k\r\n", reply);
}

#define MANY "+m01 +m02 +m03 +m04 +m05 +m06 +m07 +m08 +m09 +m10 +m11 +m12 +m13 +m14 "
#define MANY_SORTED "+m01 +m02 +m03 +m04 +m05 +m06 +m07 +m08 +m09 +m10 +m11 +m12 +m13 +m14"

/* A compaction of these has written its run. */
static void comes_to_the_commit(void)
{
	put(MANY);
	asks_up_to("scompact k\r\n", CALL_CAS);
}

/* --- what is written --- */

TEST(folding)
{
	put("+a +b -a +c ");
	compacts("OK\r\n");
	/*
	 * In addition to the commit, a read of the time to live; at the end, a check for runs to be
	 * merged.
	 */
	makes("GCG");
	stores("+b +c ");
	compacts("OK\r\n");
	makes("GG");
	asks_and_hears("scompact l\r\n", "NOT_FOUND\r\n");
}

TEST(spilling)
{
	put(MANY "-z -m05 +m05 ");
	client_asks("scompact k\r\n");
	server_answer_one(&server);
	/* Nothing is referred to before it is there. */
	makes("Ga");
	then_makes("C");
	hears("OK\r\n");
	/* Under it there is nothing that a removal could be of. */
	stores("@[" MANY_SORTED "] ");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->spills, 1);
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->compactions, 1);
	ck_assert_uint_eq(server_items(&server, "k."), 1);
}

/* A run that is larger than a table: several tables at once, with the index. */
TEST(spilling_much)
{
	struct buf log = BUF_EMPTY;

	for (int i = 0; i < 60; i++)
		buf_printf(&log, "+member-%d ", i * 37 % 100);
	BUF_ADD(&log, "\0");
	put(buf_slice(&log).p);
	client_asks("scompact k\r\n");
	then_makes("Gaaaaa");
	ck_assert(slice_starts(fake.calls[fake.count - 1].call.key, SLICE("k.i")));
	hears("OK\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 5);
	ck_assert(strncmp(stored_show(&server), "@[+member-0 +member-11 ", 20) == 0);
	buf_free(&log);
}

/* A read that finds the base long compacts it after the reply. */
static void compacts_by_itself(const char *count)
{
	asks_and_hears("scard k\r\n", count);
}

/* Over runs a removal must stay; and a log goes to a run when it is a quarter as long. */
TEST(spilling_over_runs)
{
	struct oplog_run runs[] = { cupboard_log_run(&cupboard, "+a +b +c ", 2),
		cupboard_log_run(&cupboard, "+d ", 1), cupboard_log_run(&cupboard, "+e ", 1) };

	stored_put(&server, &cupboard, "", runs, 3, "+x -a +y -x -nobody +yy +yyy ");
	compacts_by_itself("7\r\n");
	stores("@[+a +b|+c] @[+d] @[+e] @[-a -nobody -x +y +yy +yyy] ");
	stored_put(&server, &cupboard, "", runs, 3, "+x -a +x -x +x -x +x -x +y ");
	compacts_by_itself("5\r\n");
	stores("@[+a +b|+c] @[+d] @[+e] -x -a +y ");
	compacts_by_itself("5\r\n");
	/*
	 * A compaction that a client requests spills everything, however little it is, and merges
	 * it.
	 */
	compacts("OK\r\n");
	stores("@[+b +c +d +e +y] ");
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->spills, 2);
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->merges, 1);
}

/* Tokens that others prepend are older than the runs, and only their additions count. */
TEST(head)
{
	struct oplog_run runs[] = { cupboard_log_run(&cupboard, "+a +b +c ", 2),
		cupboard_log_run(&cupboard, "-a ", 1), cupboard_log_run(&cupboard, "-e ", 1) };

	stored_put(&server, &cupboard, "+q +a -b -nobody ", runs, 3, "+x -q ");
	compacts_by_itself("3\r\n");
	stores("@[+a +q] @[+a +b|+c] @[-a] @[-e] @[-q +x] ");
	/* Nothing is left in front, and nothing was after it. */
	stored_put(&server, &cupboard, "-a -b -nobody -nobody ", runs, 3, "");
	compacts_by_itself("2\r\n");
	stores("@[+a +b|+c] @[-a] @[-e] ");
	stored_put(&server, &cupboard, "+z ", runs, 3, "-nobody -nobody ");
	compacts("OK\r\n");
	stores("@[+b +c +z] ");
}

/* --- concurrent writes --- */

/* Tokens that were appended meanwhile stay after the rewritten part. */
TEST(another_appends)
{
	comes_to_the_commit();
	put(MANY "+new -m01 ");
	hears("OK\r\n");
	stores("@[" MANY_SORTED "] +new -m01 ");
	ck_assert_uint_eq(server_items(&server, "k."), 1);
	ck_assert_uint_eq(lanes_statistics(fake.host.lanes)->conflicts, 1);
}

/* It is another set by now: the written items are deleted, and that set is compacted. */
TEST(another_replaces)
{
	comes_to_the_commit();
	put("+other ");
	hears("OK\r\n");
	stores("+other ");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
	/* It was deleted, or tokens were prepended. */
	comes_to_the_commit();
	server_find(&server, SLICE("k"))->used = false;
	hears("NOT_FOUND\r\n");
	ck_assert_uint_eq(server_items(&server, ""), 0);
	comes_to_the_commit();
	put("+a " MANY);
	hears("OK\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 1);
}

/*
 * Another thread compacts the set repeatedly. The compaction ends before the client's command
 * does.
 */
TEST(others_win_for_a_while)
{
	int lost = 0, pauses = 0;

	fake_has_time(&fake);
	put(MANY);
	client_asks("scompact k\r\n");
	while (fake_waiting(&fake) || fake.turn_count) {
		if (!fake_waiting(&fake)) {
			pauses += fake_pass(&fake, 1) > 0;
			continue;
		}
		if (fake.calls[fake_oldest(&fake)].call.verb == CALL_CAS &&
			lost < 10 * (LANE_ATTEMPTS + 1)) {
			server_find(&server, SLICE("k"))->cas++;
			lost++;
		}
		server_answer_one(&server);
	}
	client_is_told("OK\r\n");
	ck_assert_int_gt(pauses, 5);
	ck_assert_uint_eq(server_items(&server, "k."), 1);
}

TEST(others_win_every_race)
{
	int rounds = 0;

	put(MANY);
	client_asks("scompact k\r\n");
	while (fake_waiting(&fake)) {
		if (fake.calls[fake_oldest(&fake)].call.verb == CALL_CAS) {
			server_find(&server, SLICE("k"))->cas++;
			rounds++;
		}
		server_answer_one(&server);
	}
	client_is_told("SERVER_ERROR busy\r\n");
	ck_assert_int_gt(rounds, LANE_ATTEMPTS);
	ck_assert_uint_eq(server_items(&server, "k."), 0);
	stores(MANY);
}

/* --- failures --- */

/* Orphaned items are harmless, deleted items with references are not. */
TEST(nobody_knows)
{
	comes_to_the_commit();
	fake_fail(&fake, RESULT_TIMED_OUT);
	hears("SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 1);
}

TEST(everybody_knows)
{
	static const struct result refusal = { .status = RESULT_REFUSED,
		.line = { "SERVER_ERROR out of memory storing object", 41 } };

	comes_to_the_commit();
	fake_result(&fake, fake_oldest(&fake), &refusal);
	hears("SERVER_ERROR out of memory storing object\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
	stores(MANY);
}

TEST(write_fails)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c ", 9);

	stored_put(&server, &cupboard, "+q ", &run, 1, "+x ");
	client_asks("scompact k\r\n");
	server_answer_one(&server);
	fake_fail(&fake, RESULT_LOST);
	client_hears_nothing();
	hears("SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	stores("+q @[+a +b +c] +x ");
	ck_assert_uint_eq(server_items(&server, "k."), 1);
}

TEST(no_collection)
{
	server_put(&server, SLICE("k"), SLICE("hello"));
	compacts("CLIENT_ERROR value is not a collection\r\n");
	server_put(&server, SLICE("k"), SLICE("@set.4 what"));
	compacts("SERVER_ERROR stored by a newer version of setlistd\r\n");
	server_put(&server, SLICE("k"), SLICE("@set.1 +a  "));
	compacts("CLIENT_ERROR value is not a collection\r\n");
	server_put(&server, SLICE("k"), SLICE("@c00000000001.1.1 +a "));
	compacts("NOT_FOUND\r\n");
	ck_assert_ptr_nonnull(server_find(&server, SLICE("k")));
}

/* --- times to live, flags --- */

TEST(what_is_kept)
{
	struct memcached_item *item;

	put(MANY);
	item = server_find(&server, SLICE("k"));
	item->expires = SERVER_NOW + 500;
	item->flags = 7;
	client_asks("scompact k\r\n");
	/* The run outlives the base. */
	ck_assert_int_eq(comes_to(CALL_ADD)->exptime, 510);
	hears("OK\r\n");
	stores("@[" MANY_SORTED "] ~t1424450596 ");
	ck_assert(item->expires == SERVER_NOW + 500 && item->flags == 7);
}

/* Touched while the run was written: the items written for it have the same time to live. */
TEST(touched_meanwhile)
{
	struct memcached_item *item;

	put(MANY);
	item = server_find(&server, SLICE("k"));
	item->expires = SERVER_NOW + 500;
	asks_up_to("scompact k\r\n", CALL_CAS);
	item->expires = SERVER_NOW + 900;
	item->cas++;
	hears("OK\r\n");
	ck_assert_uint_eq(server_expiring(&server, 910), server_items(&server, "k."));
}

/* Without a time to live that is known there is no rewrite; nor when it is about to end. */
TEST(ttl_is_not_known)
{
	static const int64_t ttls[] = { TTL_UNKNOWN, 0 };

	for (size_t i = 0; i < 2; i++) {
		client_asks("scompact k\r\n");
		while (fake_waiting(&fake))
			fake_result(&fake, fake_oldest(&fake),
				&(struct result){ .status = RESULT_HIT,
					.value = SLICE(MANY),
					.cas = 5,
					.ttl = ttls[i] });
		client_is_told("OK\r\n");
		makes("GG");
	}
}

/* --- when it is done --- */

/* An append that finds no room makes some. */
TEST(full)
{
	server.memcached.item_max = 90;
	put(MANY);
	asks_and_hears("sadd k m20 m21 m22 m23 m24 m25\r\n", "STORED\r\n");
	stores("@[" MANY_SORTED "] +m20 +m21 +m22 +m23 +m24 +m25 ");
}

/* The base has only references, so a compaction makes no room, and there is only one. */
TEST(full_of_references)
{
	static const char refs[] = "@list.3 @s0a00000001x.1.1 @s0a00000002x.1.1 @s0a00000003x.1.1 ";

	server.memcached.item_max = sizeof(refs) + 2;
	server_put(&server, SLICE("k"), slice_of(refs, strlen(refs)));
	(void)stored_calls(&fake, &seen);
	asks_and_hears("rpush k abcdef\r\n", "SERVER_ERROR object too large for cache\r\n");
	makes("PLLGPLL");
	asks_and_hears("llen k\r\n", "3\r\n");
	asks_and_hears("rpush k a\r\n", "STORED\r\n");
}

/* After a read that has found it long; the next command waits for it. */
TEST(behind_a_read)
{
	put(MANY MANY);
	client_asks("scard k\r\n");
	server_answer_one(&server);
	client_is_told("14\r\n");
	makes("GG");
	asks_and_hears("sadd k x\r\n", "STORED\r\n");
	stores("@[" MANY_SORTED "] +x ");
	/*
	 * According to the rule, if too much of it is redundant; but a short one is not compacted.
	 */
	put("+a -a +a -a ");
	asks_and_hears("scard k\r\n", "0\r\n");
	stores("+a -a +a -a ");
}

FIXTURE(setup, serving_teardown)
