/* Sets with runs that are replaced, touched or deleted, or whose members are removed. */
#include "collection/large.h"
#include "serving.h"

static const struct collection_options options = {
	.base_size = 64, .segment_size = 64, .log_size = 16, .table_size = 60
};

/* So that a read does not find the base too large. */
static const struct collection_options reading = { .log_size = 64, .table_size = 60 };

static struct oplog_run run;

/* A large set of one run: its index and two tables. */
static void setup(void)
{
	serving_setup(&options);
	run = cupboard_log_run(&cupboard, "+a +b +c ", 2);
}

static void put(const char *log)
{
	stored_put(&server, &cupboard, "", &run, 1, log);
}

#define MANY "m01 m02 m03 m04 m05 m06 m07 m08 m09 m10 m11 m12 m13 m14"
#define MANY_STORED "@[+m01 +m02 +m03 +m04 +m05 +m06 +m07 +m08 +m09 +m10 +m11 +m12 +m13|+m14] "

/* --- replacing --- */

TEST(a_large_one_is_written_first)
{
	client_asks("sset k " MANY "\r\n");
	makes("aaa");
	server_answer_one(&server);
	then_makes("");
	then_makes("G");
	then_makes("A");
	hears("STORED\r\n");
	stores(MANY_STORED);
}

/* The items that it replaces are deleted after it, all of them. */
TEST(of_another)
{
	put("+x ");
	asks_and_hears("sset k " MANY "\r\n", "STORED\r\n");
	/* The deleted index names the tables that are deleted with it. */
	makes("aaaGCgddd");
	stores(MANY_STORED);
	ck_assert_uint_eq(server_items(&server, "k."), 3);
	asks_and_hears("sset k z y z\r\n", "STORED\r\n");
	makes("GCgddd");
	stores("+z +y ");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
	asks_and_hears("sset k\r\n", "STORED\r\n");
	stores("");
}

TEST(others_come_between)
{
	asks_up_to("sset k " MANY "\r\n", CALL_GET);
	server_answer_one(&server);
	/* Another proxy makes it first, and then changes it. */
	put("+x ");
	then_makes("aaaGAG");
	server_answer_one(&server);
	server_find(&server, SLICE("k"))->cas++;
	server_answer_one(&server);
	server_answer_one(&server);
	/* It is missing. */
	server_find(&server, SLICE("k"))->used = false;
	hears("STORED\r\n");
	/* Its items cannot be reached once it is known to be missing. */
	makes("CGCGAgddd");
	stores(MANY_STORED);
	ck_assert_uint_eq(server_items(&server, "k."), 3);
}

TEST(never_in_place_of_anything_else)
{
	server_put(&server, SLICE("k"), SLICE("hello"));
	asks_and_hears("sset k " MANY "\r\n", "CLIENT_ERROR value is not a collection\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
	server_put(&server, SLICE("k"), SLICE("@set.4 what"));
	asks_and_hears(
		"sset k " MANY "\r\n", "SERVER_ERROR stored by a newer version of setlistd\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 0);
	server_put(&server, SLICE("k"), SLICE("@set.1 +a\t "));
	asks_and_hears("sset k a\r\n", "CLIENT_ERROR value is not a collection\r\n");
	/* Cached data that is no longer read is freed. */
	server_put(&server, SLICE("k"), SLICE("@c00000000001.1.1 +a "));
	asks_and_hears("sset k a\r\n", "STORED\r\n");
	stores("+a ");
}

TEST(failures)
{
	put("+x ");
	client_asks("sset k " MANY "\r\n");
	server_answer_one(&server);
	fake_fail(&fake, RESULT_TIMED_OUT);
	hears("SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	stores("@[+a +b|+c] +x ");
	ck_assert_uint_eq(server_items(&server, "k."), 3);
	/* It is unknown whether it refers to the written items. */
	asks_up_to("sset k " MANY "\r\n", CALL_CAS);
	fake_fail(&fake, RESULT_LOST);
	hears("SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	stores("@[+a +b|+c] +x ");
	ck_assert_uint_eq(server_items(&server, "k."), 6);
	/* It was not even sent. */
	asks_up_to("sset k " MANY "\r\n", CALL_CAS);
	fake_fail(&fake, RESULT_UNAVAILABLE);
	hears("SERVER_ERROR upstream mc:11211 unavailable\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 6);
	asks_up_to("sset k " MANY "\r\n", CALL_GET);
	fake_fail(&fake, RESULT_UNAVAILABLE);
	hears("SERVER_ERROR upstream mc:11211 unavailable\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 6);
}

/* --- touching, deleting --- */

static void base_of(int64_t expires)
{
	put("+x ");
	server_find(&server, SLICE("k"))->expires = expires ? SERVER_NOW + expires : 0;
}

/* A base must not outlive its items: so they live longer, and are touched before it. */
TEST(touching)
{
	base_of(50);
	client_asks("touch k 100\r\n");
	then_makes("Gg");
	then_makes("ttt");
	server_answer_one(&server);
	then_makes("");
	then_makes("PH");
	server_answer_all(&server);
	makes("l");
	client_is_told("TOUCHED\r\n");
	ck_assert_int_eq(server_find(&server, SLICE("k"))->expires, SERVER_NOW + 100);
	ck_assert_uint_eq(server_expiring(&server, 110), 3);
	asks_and_hears("touch l 100\r\n", "NOT_FOUND\r\n");
}

/* For the same reason they are touched after a base whose time is shortened. */
TEST(touching_to_shorten)
{
	base_of(0);
	client_asks("touch k 100\r\n");
	then_makes("GPH");
	then_makes("");
	then_makes("g");
	then_makes("ttt");
	hears("TOUCHED\r\n");
	ck_assert_int_eq(server_find(&server, SLICE("k"))->expires, SERVER_NOW + 100);
	ck_assert_uint_eq(server_expiring(&server, 110), 3);
	/* Its items live ten seconds longer, for clients that have just read the base. */
	asks_and_hears("touch k -1\r\n", "TOUCHED\r\n");
	ck_assert_uint_eq(server_expiring(&server, 10), 3);
}

/* While its items are touched it refers to new ones, which are touched too. */
TEST(touching_what_changes)
{
	struct oplog_run other;

	base_of(50);
	asks_up_to("touch k 100\r\n", CALL_GAT);
	other = cupboard_log_run(&cupboard, "+p +q ", 9);
	stored_put(&server, &cupboard, "", &other, 1, "");
	hears("TOUCHED\r\n");
	makes("GgtttPHGPHtL");
	ck_assert_int_eq(server_find(&server, SLICE("k"))->expires, SERVER_NOW + 100);
	ck_assert_int_eq(stored_item(&server, other.id)->expires, SERVER_NOW + 110);
}

/* Another touch is executed between those of the base and of the items. The last one detects it. */
TEST(touching_twice_at_once)
{
	base_of(0);
	asks_up_to("touch k 100\r\n", CALL_TOUCH);
	/* It prolongs, and so it has touched the items already. */
	server_find(&server, SLICE("k"))->expires = SERVER_NOW + 5000;
	hears("TOUCHED\r\n");
	ck_assert_uint_eq(server_expiring(&server, 5010), 3);
	/* It shortens, and touches the items now. */
	base_of(50);
	asks_up_to("touch k 7000\r\n", CALL_GAT);
	for (size_t i = 0; i < cupboard.count; i++)
		stored_item(&server, slice_of(cupboard.items[i].id, OPLOG_ID))->expires =
			SERVER_NOW + 110;
	hears("TOUCHED\r\n");
	ck_assert_int_eq(server_find(&server, SLICE("k"))->expires, SERVER_NOW + 7000);
	ck_assert_uint_eq(server_expiring(&server, 7010), 3);
}

/* An item that it refers to is missing, and so is the set then. */
TEST(touching_what_is_lost)
{
	for (int64_t expires = 0; expires <= 50; expires += 50) {
		base_of(expires);
		memcached_remove(stored_item(&server, run.id));
		asks_and_hears("touch k 100\r\n", "NOT_FOUND\r\n");
	}
}

/* The missing item was merged into another run. */
TEST(touching_what_goes)
{
	struct oplog_run other;

	base_of(50);
	asks_up_to("touch k 100\r\n", CALL_TOUCH);
	other = cupboard_log_run(&cupboard, "+p +q ", 9);
	stored_put(&server, &cupboard, "", &other, 1, "");
	memcached_remove(stored_item(&server, run.id));
	server_find(&server, SLICE("k"))->expires = SERVER_NOW + 50;
	hears("TOUCHED\r\n");
	makes("GgtttGtPHl");
	ck_assert_int_eq(stored_item(&server, other.id)->expires, SERVER_NOW + 110);
}

TEST(touching_fails)
{
	base_of(50);
	asks_up_to("touch k 100\r\n", CALL_TOUCH);
	fake_fail(&fake, RESULT_UNAVAILABLE);
	hears("SERVER_ERROR upstream mc:11211 unavailable\r\n");
	ck_assert_int_eq(server_find(&server, SLICE("k"))->expires, SERVER_NOW + 50);
	/* A set that cannot be read cannot be touched with its items. */
	server_put(&server, SLICE("k"), SLICE("@set.4 what"));
	client_asks("touch k 100\r\n");
	server_answer_all(&server);
	ck_assert_int_eq(strncmp(fake_told(&fake), "TOUCHED", 7) == 0, 0);
	ck_assert_int_eq(server_find(&server, SLICE("k"))->expires, 0);
}

/* A delete, when a read has shown that the set is a large one. */
static void deletes(void)
{
	static struct large_filter large;

	fake_takes(&reading);
	fake.host.env.large = &large;
	put("+x ");
	asks_and_hears("sismember k a\r\n", "1\r\n");
	makes("Ggg");
	client_asks("delete k\r\n");
}

TEST(deleting)
{
	deletes();
	server_answer_one(&server);
	server_answer_one(&server);
	client_is_told("DELETED\r\n");
	ck_assert_ptr_null(server_find(&server, SLICE("k")));
	server_answer_all(&server);
	ck_assert_uint_eq(server_items(&server, ""), 0);
}

/* A call that cannot be sent is answered before those that were. */
TEST(delete_is_refused_early)
{
	deletes();
	size_t read = fake_oldest(&fake);
	fake_result(&fake, read + 1, &(struct result){ .status = RESULT_BUSY });
	client_is_told("");
	server_answer(&server, read);
	client_is_told("SERVER_ERROR busy\r\n");
	ck_assert_ptr_nonnull(server_find(&server, SLICE("k")));
}

/* --- taking members out --- */

TEST(popping)
{
	fake_takes(&reading);
	put("+x -a ");
	client_asks("spop k 2\r\n");
	server_answer_all(&server);
	struct slice reply = slice_of(fake_told(&fake), 17), both = slice_skip(reply, 13);
	ck_assert(slice_starts(reply, SLICE("VALUE k 0 3\r\n")));
	char log[40];
	snprintf(log, sizeof(log), "@[+a +b|+c] +x -a -%c -%c ", both.p[0], both.p[2]);
	stores(log);
	asks_and_hears("scard k\r\n", "1\r\n");
	ck_assert_uint_eq(server_items(&server, "k."), 3);
}

/* Members that another proxy has removed meanwhile are not removed again. */
TEST(popping_loses)
{
	put("");
	asks_up_to("spop k 1\r\n", CALL_CAS);
	put("-a -c ");
	hears("VALUE k 0 1\r\nb\r\nEND\r\n");
	stores("@[+a +b|+c] -a -c -b ");
	asks_and_hears("spop k 3\r\n", "END\r\n");
	stores("@[+a +b|+c] -a -c -b ");
}

FIXTURE(setup, serving_teardown)
