
#include "command/order.h"
#include "conversations.h"

TEST(storing_fails)
{
	client_asks("evadd E 0 0 1\r\nx\r\n");
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("evadd E 0 0 1\r\nx\r\n");
	server_answers("1\r\n");
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	client_asks("evadd E 0 0 1\r\nx\r\n");
	relays("2\r\nSERVER_ERROR object too large for cache\r\n",
		"SERVER_ERROR object too large for cache\r\n");
	/* No server should reply this to a `set`; one that does must not crash us. */
	client_asks("evadd E 0 0 1\r\nx\r\n");
	server_answers("3\r\nNOT_STORED\r\n");
	ck_assert_ptr_null(strstr(fake_told(&fake), "EVENT"));
}

/* memcached pads a counter that has become shorter. */
TEST(reading)
{
	exchanges("evcount E\r\n", "VA 3 kE::2015022016 f0\r\n9  \r\n",
		"COUNT 2015022016 9\r\nEND\r\n");
}

TEST(reading_fails)
{
	client_asks("evcount E -1 now\r\n");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	relays("VA 1 kE::2015022016 f0\r\n1\r\n", "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	exchanges("evcount E\r\n", "VA 1 kE::2015022016 f0\r\nx\r\n",
		"CLIENT_ERROR value is not a counter\r\n");
	exchanges("evcount E\r\n", "VA 0 kE::2015022016 f0\r\n\r\n",
		"CLIENT_ERROR value is not a counter\r\n");
}

/* The 8760 hours of a year: the keys are 13 bytes long. */
static void counts_a_year(void)
{
	client_asks("evcount E 2014\r\n");
	ck_assert_uint_ge(fake_used(&fake), 8760 * (sizeof(struct waiter) + 13));
}

/* Answers all calls but the last one with misses. Returns how many there were. */
static size_t all_but_one_miss(void)
{
	size_t n = 0;

	for (; fake_waiting(&fake) > 1; n++)
		fake_result(&fake, fake_oldest(&fake), &(struct result){ .status = RESULT_MISS });
	return n;
}

/* The memory of a task for its counters is reported until the last of them was received. */
TEST(memory_of_many)
{
	size_t used;

	counts_a_year();
	used = fake_used(&fake);
	ck_assert_uint_eq(all_but_one_miss(), 8760 - 1);
	ck_assert_uint_eq(fake_used(&fake), used);
	server_answers("EN\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
	ck_assert_ptr_nonnull(strstr(fake_told(&fake), "COUNT 2014123123 0\r\nEND\r\n"));
	/* Half-way a server fails: the other calls are still waited for. */
	counts_a_year();
	for (int i = 0; i < 4380; i++)
		fake_result(&fake, fake_oldest(&fake), &(struct result){ .status = RESULT_MISS });
	fake_fail(&fake, RESULT_UNAVAILABLE);
	ck_assert_uint_lt(all_but_one_miss(), ORDER_EVENT_CALLS);
	ck_assert_uint_eq(fake_used(&fake), used);
	server_answers("EN\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
}

/* The client disconnects: no more counters are requested. */
TEST(abandoned)
{
	size_t asked;

	counts_a_year();
	asked = fake.count;
	fake.account.gone = true;
	(void)all_but_one_miss();
	server_answers("EN\r\n");
	ck_assert_uint_eq(fake.count, asked);
	ck_assert_uint_eq(fake_used(&fake), 0);
	ck_assert(STAILQ_EMPTY(&fake.tasks));
}

/* The longest type has keys that memcached accepts; one byte more is refused. */
TEST(longest_type)
{
	char line[300];

	snprintf(line, sizeof(line), "evadd %0214d 0 0 1\r\nx\r\n", 0);
	client_asks(line);
	server_answers("18446744073709551615\r\n");
	ck_assert_uint_le(fake.calls[1].call.key.n, 250);
	server_answers("STORED\r\n");
	(void)fake_told(&fake);
	snprintf(line, sizeof(line), "evincr %0215d\r\n", 0);
	client_asks(line);
	client_is_told("CLIENT_ERROR key too long\r\n");
}

/* --- evlimit --- */

/* The count of the current bucket decides; the earlier buckets are read meanwhile. */
TEST(limit_of_one_bucket)
{
	talks("evlimit E 3 3600\r\n", "incr E::2015022016 1\r\n", "3\r\n", "3\r\n");
}

/* All are requested together. */
static void asks_three_hours(uint64_t limit)
{
	char line[100];

	snprintf(line, sizeof(line), "evlimit E %llu 10800\r\n", (unsigned long long)limit);
	client_asks(line);
	server_is_asked("incr E::2015022016 1\r\n"
			"mg E::2015022014 k f v\r\n"
			"mg E::2015022015 k f v\r\n");
}

TEST(limit_of_several)
{
	asks_three_hours(42);
	relays("2\r\nVA 2 kE::2015022014 f0\r\n40\r\nEN\r\n", "42\r\n");
	asks_three_hours(42);
	relays("3\r\nVA 2 kE::2015022014 f0\r\n40\r\nEN\r\n", "0\r\n");
	/* A sum beyond all numbers is no small one. */
	asks_three_hours(UINT64_MAX - 1);
	relays("3\r\nVA 20 kE::2015022014 f0\r\n18446744073709551615\r\nEN\r\n", "0\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
}

TEST(limit_fails)
{
	asks_three_hours(42);
	fake_fail(&fake, RESULT_UNAVAILABLE);
	relays("EN\r\nEN\r\n", "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	asks_three_hours(42);
	server_answers("1\r\n");
	fake_fail(&fake, RESULT_TIMED_OUT);
	relays("EN\r\n", "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	asks_three_hours(42);
	relays("1\r\nVA 1 kE::2015022014 f0\r\nx\r\nEN\r\n",
		"CLIENT_ERROR value is not a counter\r\n");
	client_asks("evlimit E 1 60\r\n");
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
}

/* Events that are counted together have numbers of their own: two are let through. */
TEST(limit_of_a_batch)
{
	client_asks("evlimit E 1 60\r\nevlimit E 3 60\r\nevlimit E 3 60\r\nevlimit E 3 60\r\n");
	serves("incr E::2015022016 1\r\n", "1\r\n");
	serves("incr E::2015022016 3\r\n", "4\r\n");
	client_is_told("1\r\n2\r\n3\r\n0\r\n");
}
