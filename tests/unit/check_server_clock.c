#include "unit.h"
#include "upstream/server_clock.h"

static atomic_int_fast64_t offset;

/* The clock of a server that was read at 5 s of the loop's clock. */
static struct server_clock clock_read_at(int64_t time)
{
	struct server_clock clock = { .offset = &offset };

	server_clock_set(&clock, time, 5000);
	return clock;
}

static uint64_t differs(uint64_t now, int64_t unix_ms)
{
	return server_clock_difference(atomic_load(&offset), now, unix_ms);
}

TEST(goes_on)
{
	struct server_clock clock = clock_read_at(1424450096);

	ck_assert_int_eq(server_clock_time(&clock, 5000), 1424450096);
	ck_assert_int_eq(server_clock_time(&clock, 7999), 1424450098);
	server_clock_set(&clock, 0, 9000);
	ck_assert_int_eq(server_clock_time(&clock, 8000), 1424450099);
}

/* A server counts whole seconds, and half of one has passed on average. */
TEST(difference)
{
	clock_read_at(1424450096);
	ck_assert_uint_eq(differs(5000, 1424450096000), 0);
	ck_assert_uint_eq(differs(5000, 1424450096999), 0);
	ck_assert_uint_eq(differs(5000, 1424450097499), 0);
	ck_assert_uint_eq(differs(5000, 1424450097500), 1);
	ck_assert_uint_eq(differs(5000, 1424450095501), 0);
	ck_assert_uint_eq(differs(5000, 1424450095500), 1);
	ck_assert_uint_eq(differs(5000, 1424450000500), 96);
	ck_assert_uint_eq(differs(65000, 1424450156500), 0);
	ck_assert_uint_eq(differs(65000, 1424450096500), 60);
}

TEST(unknown)
{
	struct server_clock clock = { .offset = NULL };

	server_clock_set(&clock, 1424450096, 5000);
	ck_assert_int_eq(server_clock_time(&clock, 5000), 1424450096);
	ck_assert_uint_eq(server_clock_difference(0, 5000, 1424450096500), 0);
}

FIXTURE(NULL, NULL)
