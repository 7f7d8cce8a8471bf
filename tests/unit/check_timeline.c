/*
 * The last five minutes: the values of a point for the second before it, and the number of points.
 */
#include "measure/timeline.h"
#include "unit.h"

static struct timeline timeline;
static struct histogram_sum latency;

static void setup(void)
{
	timeline = (struct timeline){ 0 };
	latency = (struct histogram_sum){ 0 };
}

FIXTURE(setup, NULL)

/* This number of requests took this time. */
static void took(uint64_t us, uint64_t n)
{
	latency.counts[histogram_bucket(us)] += n;
	latency.count += n;
}

static const struct timeline_point *last(void)
{
	return timeline_get(&timeline, timeline_count(&timeline) - 1);
}

TEST(points_say_what_happened_since_the_one_before)
{
	took(100, 5000);
	timeline_add(&timeline, 7000, &latency, 300);
	ck_assert_uint_eq(timeline_count(&timeline), 0);
	took(20, 98);
	took(5000, 2);
	timeline_add(&timeline, 8000, &latency, 307);
	ck_assert_uint_eq(timeline_count(&timeline), 1);
	ck_assert_uint_eq(last()->at, 8000);
	ck_assert_uint_eq(last()->requests, 100);
	ck_assert_uint_eq(last()->failed, 7);
	ck_assert_uint_eq(last()->p50, histogram_to(histogram_bucket(20)));
	ck_assert_uint_eq(last()->p99, histogram_to(histogram_bucket(5000)));
	timeline_add(&timeline, 9000, &latency, 307);
	ck_assert_uint_eq(last()->requests + last()->failed + last()->p50 + last()->p99, 0);
}

/* Requests that were refused immediately count, but the latencies are those of the others. */
TEST(untimed_requests)
{
	timeline_add(&timeline, 1000, &latency, 0);
	took(5000, 10);
	latency.untimed = 90;
	timeline_add(&timeline, 2000, &latency, 90);
	ck_assert_uint_eq(last()->requests, 100);
	ck_assert_uint_eq(last()->p50, histogram_to(histogram_bucket(5000)));
	latency.untimed = 7;
	timeline_add(&timeline, 3000, &latency, 97);
	ck_assert_uint_eq(last()->requests, 7);
	ck_assert_uint_eq(last()->p50, 0);
}

/* The owner may be late: the process was stopped. */
TEST(rates_are_a_second)
{
	timeline_add(&timeline, 1000, &latency, 0);
	took(50, 1000);
	timeline_add(&timeline, 3500, &latency, 10);
	ck_assert_uint_eq(last()->requests, 400);
	ck_assert_uint_eq(last()->failed, 4);
	took(50, 1);
	timeline_add(&timeline, 63500, &latency, 11);
	ck_assert_uint_eq(last()->requests, 1);
	ck_assert_uint_eq(last()->failed, 1);
	took(50, 7);
	timeline_add(&timeline, 63500, &latency, 10);
	ck_assert_uint_eq(timeline_count(&timeline), 2);
	timeline_add(&timeline, 63501, &latency, UINT64_MAX);
	ck_assert_uint_eq(last()->requests, 7000);
	ck_assert_uint_eq(last()->failed, UINT32_MAX);
}

/*
 * `stats reset` resets the latencies, and the failed calls of a removed server are removed with
 * it.
 */
TEST(sums_that_fall)
{
	took(50, 1000);
	timeline_add(&timeline, 1000, &latency, 5000);
	latency = (struct histogram_sum){ 0 };
	took(50, 3);
	took(900, 2);
	timeline_add(&timeline, 2000, &latency, 40);
	ck_assert_uint_eq(last()->requests, 5);
	ck_assert_uint_eq(last()->p99, histogram_to(histogram_bucket(900)));
	ck_assert_uint_eq(last()->failed, 0);
	timeline_add(&timeline, 3000, &latency, 41);
	ck_assert_uint_eq(last()->failed, 1);
}

TEST(it_is_five_minutes_long)
{
	for (uint64_t i = 0; i <= 2 * TIMELINE_POINTS + 17; i++) {
		took(50, i);
		timeline_add(&timeline, (i + 1) * TIMELINE_MS, &latency, i);
		ck_assert_uint_eq(
			timeline_count(&timeline), i < TIMELINE_POINTS ? i : TIMELINE_POINTS);
	}
	for (size_t i = 0; i < TIMELINE_POINTS; i++) {
		uint64_t number = TIMELINE_POINTS + 18 + i;
		ck_assert_uint_eq(timeline_get(&timeline, i)->at, (number + 1) * TIMELINE_MS);
		ck_assert_uint_eq(timeline_get(&timeline, i)->requests, number);
		ck_assert_uint_eq(timeline_get(&timeline, i)->failed, 1);
	}
}
