/* sunionstore, sinterstore and sdiffstore: whole or not at all, whenever their proxy ends or a server fails. */
#include "serving.h"

static const struct collection_options options = { .base_size = 16384,
	.segment_size = 16384,
	.log_size = 100,
	.table_size = 200,
	.cache = 1 << 20,
	.merges = 1,
	.result_max = 1 << 20,
	.lease_time = 10 };

static void setup(void)
{
	serving_setup(&options);
}

FIXTURE(setup, serving_teardown)

static void fill(const char *key, int from, int to)
{
	struct buf log = BUF_EMPTY;

	for (int i = from; i < to; i++)
		buf_printf(&log, "+m%04d ", i);
	server_put(&server, slice_of(key, strlen(key)), buf_slice(&log));
	buf_free(&log);
}

static void stock(void)
{
	server_free(&server);
	server_init(&server, &fake);
	fill("k", 0, 200);
	fill("l", 100, 300);
	server_put(&server, SLICE("t"), SLICE("+old "));
}

TEST(small_ones_are_one_item)
{
	server_put(&server, SLICE("k"), SLICE("+b +a "));
	server_put(&server, SLICE("l"), SLICE("+b +c "));
	asks_and_hears("sunionstore t k l\r\n", "3\r\n");
	asks_and_hears("sinterstore u k l\r\n", "1\r\n");
	asks_and_hears("sdiffstore k k l\r\n", "1\r\n");
	asks_and_hears("smembers t\r\nsmembers u\r\nsmembers k\r\n",
		"VALUE t 0 5\r\na b c\r\nEND\r\nVALUE u 0 1\r\nb\r\nEND\r\nVALUE k 0 "
		"1\r\na\r\nEND\r\n");
	asks_and_hears("sinterstore k none k\r\n", "0\r\n");
	asks_and_hears("scard k\r\n", "0\r\n");
	ck_assert_uint_eq(server_items(&server, ""), 4);
	client_asks("sunionstore t\r\n");
	client_is_told("CLIENT_ERROR usage: sunionstore <target> <key>+\r\n");
}

/* Tables are written in addition to the existing ones, and dropped ones are deleted. */
TEST(large_ones_are_tables)
{
	stock();
	asks_and_hears("sunionstore t k l\r\n", "300\r\n");
	ck_assert_uint_gt(server_items(&server, "t."), 5);
	asks_and_hears(
		"sintercard 2 t k\r\nsintercard 2 t l\r\nscard t\r\n", "200\r\n200\r\n300\r\n");
	asks_and_hears("sdiffstore t t k\r\n", "100\r\n");
	asks_and_hears("scard t\r\nsdiffcard 2 t l\r\n", "100\r\n0\r\n");
	asks_and_hears("sinterstore t none t\r\n", "0\r\n");
	ck_assert_uint_eq(server_items(&server, "t."), 0);
}

static void is_whole_or_old(void)
{
	const char *told;

	client_asks("scard t\r\nsismember t old\r\nsismember t m0000\r\n");
	server_answer_all(&server);
	told = fake_told(&fake);
	ck_assert_msg(
		strcmp(told, "1\r\n1\r\n0\r\n") == 0 || strcmp(told, "300\r\n0\r\n1\r\n") == 0,
		"%s", told);
}

TEST(killed_at_each_call)
{
	bool killed = true;
	int calls = 0;

	for (; killed; calls++) {
		stock();
		client_asks("sunionstore t k l\r\n");
		for (int i = 0; i < calls && fake_waiting(&fake); i++)
			server_answer_one(&server);
		killed = fake_waiting(&fake) > 0;
		while (fake_waiting(&fake))
			fake_fail(&fake, RESULT_LOST);
		(void)fake_told(&fake);
		is_whole_or_old();
	}
	ck_assert_int_gt(calls, 20);
}

/*
 * One call fails and stored nothing; the others are answered. If the command fails too, nothing is
 * left behind.
 */
TEST(a_call_fails)
{
	bool failed = true;
	int calls = 0, errors = 0;

	for (; failed; calls++) {
		stock();
		client_asks("sunionstore t k l\r\n");
		for (int i = 0; i < calls && fake_waiting(&fake); i++)
			server_answer_one(&server);
		failed = fake_waiting(&fake) > 0 &&
			fake.calls[fake_oldest(&fake)].call.verb != CALL_DELETE;
		if (failed)
			fake_fail(&fake, RESULT_UNAVAILABLE);
		server_answer_all(&server);
		if (strstr(fake_told(&fake), "SERVER_ERROR")) {
			ck_assert_uint_eq(server_items(&server, "t."), 0);
			errors++;
		}
		is_whole_or_old();
	}
	ck_assert_int_gt(errors, 10);
}
