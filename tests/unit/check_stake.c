/* Taking all members of a set, or a block of a large one: the calls, and the parts that are left. */
#include "collection/room.h"
#include "serving.h"

/* A block is one table. */
static const struct collection_options options = {
	.base_size = 1 << 20, .log_size = 64, .table_size = 60, .block = 1
};
static const struct collection_options large_blocks = {
	.base_size = 1 << 20, .log_size = 64, .table_size = 60
};

static struct oplog_run run;

/* A run of three tables and an index. */
static void setup(void)
{
	serving_setup(&options);
	run = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);
}

static void put(const char *log)
{
	stored_put(&server, &cupboard, "", &run, 1, log);
}

static void takes_to_cas(void)
{
	put("+x ");
	asks_up_to("stake k\r\n", CALL_CAS);
}

/* Everything is in the log, so there is nothing to delete. */
TEST(small)
{
	server_put(&server, SLICE("k"), SLICE("+a +b -a +c "));
	asks_and_hears("stake k\r\n", "VALUE k 0 3\r\nb c\r\nEND\r\n");
	makes("GC");
	stores("");
	asks_and_hears("stake k\r\n", "END\r\n");
	makes("G");
	asks_and_hears("stake none\r\n", "END\r\n");
	ck_assert_ptr_null(server_find(&server, SLICE("none")));
}

/* The set is found to be large, and read again with its parts. They are deleted after the cas. */
TEST(whole)
{
	fake_takes(&large_blocks);
	put("+x -a +c ");
	asks_and_hears("stake k\r\n", "VALUE k 0 9\r\nb d e x c\r\nEND\r\n");
	makes("GGggggCgdddd");
	stores("");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
}

/* A block is cut off the run by a new index, which is written before the cas. */
TEST(blocks)
{
	put("+x -a ");
	asks_and_hears("stake k\r\n", "VALUE k 0 1\r\nb\r\nEND\r\n");
	makes("GGggaCdd");
	stores("@[+c +d|+e] +x -a ");
	ck_assert_uint_eq(server_items(&server, "k."), 3);
	/* The rest is a single table, which needs no index. */
	asks_and_hears("stake k\r\n", "VALUE k 0 3\r\nc d\r\nEND\r\n");
	makes("GGggCdd");
	stores("@[+e] +x -a ");
	asks_and_hears("stake k\r\n", "VALUE k 0 1\r\ne\r\nEND\r\n");
	makes("GGgCd");
	stores("+x -a ");
	asks_and_hears("stake k\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n");
	stores("");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
}

/* Only an empty set has an empty answer. */
TEST(blocks_without_members)
{
	put("-a -b -c -d ");
	asks_and_hears("stake k\r\n", "VALUE k 0 1\r\ne\r\nEND\r\n");
	stores("-a -b -c -d ");
	put("-a -b -c -d -e ");
	asks_and_hears("stake k\r\n", "END\r\n");
	stores("-a -b -c -d -e ");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
}

/* The index of the rest is written once. */
TEST(a_lost_race)
{
	takes_to_cas();
	makes("GGggaC");
	put("+x -b +y ");
	hears("VALUE k 0 1\r\na\r\nEND\r\n");
	makes("GCdd");
	stores("@[+c +d|+e] +x -b +y ");
	ck_assert_uint_eq(server_items(&server, "k."), 3);
}

/* Another proxy has taken the same block. */
TEST(a_lost_block)
{
	struct oplog_run rest;

	takes_to_cas();
	rest = cupboard_log_run(&cupboard, "+c +d +e ", 2);
	stored_put(&server, &cupboard, "", &rest, 1, "+x ");
	hears("VALUE k 0 3\r\nc d\r\nEND\r\n");
	stores("@[+e] +x ");
}

/* Another proxy has taken all runs, so no base will refer to the index that was written. */
TEST(a_lost_run)
{
	takes_to_cas();
	ck_assert_uint_eq(server_items(&server, "k."), 5);
	server_put(&server, SLICE("k"), SLICE("+x "));
	hears("VALUE k 0 1\r\nx\r\nEND\r\n");
	stores("");
	ck_assert_uint_eq(server_items(&server, "k."), 4);
}

/* The base may refer to the index, or it cannot. */
TEST(an_unknown_outcome)
{
	takes_to_cas();
	fake_fail(&fake, RESULT_TIMED_OUT);
	hears("SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 5);
	takes_to_cas();
	fake_result(&fake, fake_oldest(&fake),
		&(struct result){ .status = RESULT_REFUSED,
			.line = SLICE("SERVER_ERROR out of memory storing object") });
	hears("SERVER_ERROR out of memory storing object\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 5);
	stores("@[+a +b|+c +d|+e] +x ");
}

TEST(an_index_that_is_not_written)
{
	put("+x ");
	client_asks("stake k\r\n");
	(void)comes_to_one(CALL_ADD, true);
	fake_fail(&fake, RESULT_TIMED_OUT);
	hears("SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	stores("@[+a +b|+c +d|+e] +x ");
}

TEST(deleted_meanwhile)
{
	takes_to_cas();
	memcached_remove(server_find(&server, SLICE("k")));
	hears("END\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 4);
}

/* --- memory --- */

static struct rooms rooms;
static struct account other;
static struct stay stay;

/* Another client has taken the room for large sets. */
static void waits_for_room(void)
{
	fake_has_time(&fake);
	rooms_init(&rooms);
	fake.host.env.rooms = &rooms;
	ck_assert(room_enter(&fake.host.env, ROOM_MERGES, &stay, &other, 1));
	put("+x ");
	client_asks("stake k\r\n");
	server_answer_all(&server);
	makes("G");
	client_hears_nothing();
	ck_assert_uint_eq(fake.account.waiting, 1);
}

TEST(a_large_one_waits_for_room)
{
	waits_for_room();
	room_leave(&fake.host.env, &stay);
	while (fake_pass(&fake, 0) || server_answer_one(&server))
		;
	client_is_told("VALUE k 0 3\r\na b\r\nEND\r\n");
	ck_assert_uint_eq(rooms.of[ROOM_MERGES].used, 0);
	ck_assert_uint_eq(fake_used(&fake), 0);
}

/* A client that has left while it waited would not get the members, so they stay. */
TEST(gone_while_it_waits)
{
	struct task *task;

	waits_for_room();
	fake.account.gone = true;
	task = STAILQ_FIRST(&fake.tasks);
	task->resume(task);
	(void)fake_pass(&fake, 0);
	ck_assert(STAILQ_EMPTY(&fake.tasks));
	makes("");
	stores("@[+a +b|+c +d|+e] +x ");
	ck_assert_uint_eq(fake.account.waiting, 0);
	ck_assert_uint_eq(fake_used(&fake), 0);
	room_leave(&fake.host.env, &stay);
	fake.account.gone = false;
}

FIXTURE(setup, serving_teardown)
