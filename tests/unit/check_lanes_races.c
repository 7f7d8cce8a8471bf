/* Lanes where another proxy writes, or the item expires, between two calls. */
#include "conversations.h"

#define NOT_STORED "NOT_STORED\r\n"

/*
 * Another proxy wins each round, in which the server returns this: finally the client receives an
 * error, after several rounds.
 */
static void loses_for_ever(const char *request, const char *answers, const char *reply)
{
	int rounds = 0;

	client_asks(request);
	for (; fake_waiting(&fake) && rounds < 100; rounds++)
		server_answers(answers);
	ck_assert_int_gt(rounds, 1);
	ck_assert_int_lt(rounds, 100);
	client_is_told(reply);
}

TEST(creating_with_a_ttl)
{
	static const struct collection_rule rule = { .prefix = { "t-", 2 }, .ttl = 60 };

	fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	client_asks("sadd t-k a\r\n");
	server_answers(NOT_STORED "EN\r\n");
	serves(APPEND("t-k", 3, "+a ") LOOK("t-k") "add t-k 0 60 3\r\n+a \r\n", "STORED\r\n");
	client_is_told("STORED\r\n");
}

/* Another proxy creates it first: then there is something to append to. */
TEST(another_creates_it)
{
	client_asks("sadd k a\r\n");
	server_answers(NOT_STORED "EN\r\n" NOT_STORED);
	serves(APPEND("k", 3, "+a ") LOOK("k") ADD("k", 3, "+a ") APPEND("k", 3, "+a "),
		"STORED\r\n");
	client_is_told("STORED\r\n");
}

/* It was created between the append and the look. */
TEST(another_creates_it_before_the_look)
{
	client_asks("sadd k a\r\n");
	server_answers(NOT_STORED LOOKED("k"));
	serves(APPEND("k", 3, "+a ") LOOK("k") APPEND("k", 3, "+a "), "STORED\r\n");
	client_is_told("STORED\r\n");
}

/* Created and deleted again, for ever: the attempts are limited. */
TEST(creation_is_lost_again_and_again)
{
	loses_for_ever("sadd k a\r\n", NOT_STORED "EN\r\n" NOT_STORED, "SERVER_ERROR busy\r\n");
}

/* The item is there and yet nothing can be appended: it is full. */
TEST(full)
{
	loses_for_ever("sadd k a\r\n", NOT_STORED LOOKED("k"),
		"SERVER_ERROR object too large for cache\r\n");
}

TEST(nothing_to_add_to)
{
	client_asks("saddx k a\r\n");
	serves(APPEND("k", 3, "+a "), NOT_STORED);
	serves(LOOK("k"), "EN\r\n");
	client_is_told("NOT_FOUND\r\n");
	talks("srem k a\r\n", APPEND("k", 3, "-a "), NOT_STORED "EN\r\n", "NOT_FOUND\r\n");
}

/*
 * In one batch: operations before the one that creates find nothing, and have no effect; those
 * after it find a set.
 */
TEST(a_batch_that_creates_in_its_middle)
{
	talks("scard k\r\nsrem k a\r\nsaddx k b\r\nsadd k c\r\nsrem k d\r\nsaddx k e\r\n",
		FETCH("k"), "EN\r\n", "NOT_FOUND\r\n");
	serves(APPEND("k", 15, "-a +b +c -d +e "), NOT_STORED "EN\r\n");
	client_is_told("NOT_FOUND\r\nNOT_FOUND\r\n");
	serves(LOOK("k") ADD("k", 9, "+c -d +e "), NOT_STORED);
	serves(APPEND("k", 9, "+c -d +e "), "STORED\r\n");
	client_is_told("STORED\r\nDELETED\r\nSTORED\r\n");
}

TEST(failures_while_creating)
{
	client_asks("sadd k a\r\n");
	server_answers(NOT_STORED);
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	client_asks("sadd k a\r\n");
	server_answers(NOT_STORED "EN\r\n");
	fails(RESULT_TOO_LARGE, "SERVER_ERROR object too large for cache\r\n");
	client_asks("sadd k a\r\n");
	server_answers(NOT_STORED "EN\r\nSERVER_ERROR out of memory storing object\r\n");
	client_is_told("SERVER_ERROR out of memory storing object\r\n");
}

/* Every CAS goes with the token, and on the connection, of the read just before it. */
TEST(replacing_loses_and_wins)
{
	client_asks("sset k a\r\n");
	server_answers("VA 3 kk f0 c9\r\n+x \r\n");
	server_answers("EXISTS\r\n");
	fake.connection = 2;
	server_answers("VA 6 kk f0 c10\r\n+x +y \r\n");
	server_answers("NOT_FOUND\r\n");
	server_answers("EN\r\n" NOT_STORED);
	server_answers("VA 3 kk f0 c11\r\n+z \r\n");
	server_is_asked(
		FETCH_TO_REPLACE("k") "connection 1: cas k 0 0 3 9\r\n+a \r\n" FETCH_TO_REPLACE(
			"k") "connection 2: cas k 0 0 3 10\r\n+a \r\n" FETCH_TO_REPLACE("k")
			ADD("k", 3, "+a ")
				FETCH_TO_REPLACE("k") "connection 2: cas k 0 0 3 11\r\n+a \r\n");
	relays("STORED\r\n", "STORED\r\n");
}

TEST(replacing_loses_for_ever)
{
	int rounds = 0;

	client_asks("sset k a\r\nscard k\r\n");
	for (; fake_waiting(&fake) &&
		fake.calls[fake_oldest(&fake)].call.want != (WANT_VALUE | WANT_CAS | WANT_TTL) &&
		rounds < 100;
		rounds++)
		server_answers("VA 3 kk f0 c9\r\n+x \r\nEXISTS\r\n");
	ck_assert_int_gt(rounds, 1);
	ck_assert_int_lt(rounds, 100);
	client_is_told("SERVER_ERROR busy\r\n");
	relays(FOUND("k", 3, "+x "), "1\r\n");
}

/* A value that is not a collection is not changed. */
TEST(not_a_collection)
{
	exchanges("sset k a\r\n", "VA 5 kk f0 c9\r\nhello\r\n",
		"CLIENT_ERROR value is not a collection\r\n");
	exchanges("scard k\r\n", FOUND("k", 5, "hello"),
		"CLIENT_ERROR value is not a collection\r\n");
	exchanges("smembers k\r\n", FOUND("k", 4, "+a\t "),
		"CLIENT_ERROR value is not a collection\r\n");
	server_is_asked(FETCH_TO_REPLACE("k") FETCH("k") FETCH("k"));
}

TEST(failures_while_replacing)
{
	client_asks("sset k a\r\n");
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("sset k a\r\n");
	server_answers("VA 3 kk f0 c9\r\n+x \r\n");
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
}

TEST(beginning_a_count)
{
	client_asks("evincr E 3\r\n");
	serves("incr E::2015022016 3\r\n", "NOT_FOUND\r\n");
	serves(ADD("E::2015022016", 1, "3"), "STORED\r\n");
	client_is_told("3\r\n");
}

TEST(another_begins_the_count)
{
	exchanges("evincr E 3\r\nevincr E 4\r\nevincr E 5\r\n", "1\r\n", "1\r\n");
	server_answers("NOT_FOUND\r\n" NOT_STORED);
	server_is_asked(
		"incr E::2015022016 3\r\n"
		"incr E::2015022016 9\r\n" ADD("E::2015022016", 1, "9") "incr E::2015022016 9\r\n");
	relays("109\r\n", "104\r\n109\r\n");
}

TEST(count_is_lost_for_ever)
{
	loses_for_ever("evincr E\r\n", "NOT_FOUND\r\n" NOT_STORED, "SERVER_ERROR busy\r\n");
}
