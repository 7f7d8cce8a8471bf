/* The histogram of durations: its buckets, its quantiles, and a reset. */
#include "unit.h"
#include "util/histogram.h"

static struct histogram histogram;

static struct histogram_sum sum_of(const struct histogram *h)
{
	struct histogram_sum sum = { .count = 0 };

	histogram_sum(h, &sum);
	return sum;
}

static uint64_t lower_bound(unsigned bucket)
{
	return bucket ? histogram_to(bucket - 1) : 0;
}

/* Every duration is in one bucket, whose bounds are around it. */
TEST(buckets)
{
	uint64_t us = 0;
	unsigned before = 0;

	ck_assert_uint_eq(histogram_to(0), HISTOGRAM_LEAST);
	ck_assert_uint_eq(lower_bound(HISTOGRAM_BUCKETS - 1), HISTOGRAM_MOST);
	ck_assert_uint_eq(histogram_to(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
	for (; us < 3 * (uint64_t)HISTOGRAM_MOST; us += us < 5000 ? 1 : us / 500) {
		unsigned bucket = histogram_bucket(us);
		ck_assert_uint_lt(bucket, HISTOGRAM_BUCKETS);
		ck_assert_uint_ge(us, lower_bound(bucket));
		ck_assert_uint_lt(us, histogram_to(bucket));
		ck_assert_uint_le(bucket - before, 1);
		before = bucket;
	}
	ck_assert_uint_eq(before, HISTOGRAM_BUCKETS - 1);
	ck_assert_uint_eq(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

TEST(narrow_buckets)
{
	for (unsigned i = 1; i < HISTOGRAM_BUCKETS - 1; i++) {
		uint64_t from = lower_bound(i), to = histogram_to(i);
		ck_assert_uint_gt(to, from);
		ck_assert(to - from <= 1 || (to - from) * 8 <= from);
		ck_assert_uint_eq(histogram_bucket(from), i);
		ck_assert_uint_eq(histogram_bucket(to - 1), i);
	}
}

TEST(nothing)
{
	struct histogram_sum sum = sum_of(&histogram);

	ck_assert_uint_eq(sum.count, 0);
	ck_assert_uint_eq(histogram_quantile(&sum, 0.5), 0);
	ck_assert_uint_eq(histogram_quantile(&sum, 1), 0);
}

/* The upper bound of the bucket: never too small, and at most an eighth too large. */
static void assert_quantile(const struct histogram_sum *sum, double q, uint64_t wanted)
{
	uint64_t got = histogram_quantile(sum, q);

	ck_assert_msg(got >= wanted && got <= wanted + wanted / 8 + 1, "%llu is not near %llu",
		(unsigned long long)got, (unsigned long long)wanted);
}

TEST(quantiles)
{
	struct histogram_sum sum;
	uint64_t total = 0;

	for (uint64_t i = 1; i <= 100000; i++) {
		histogram_add(&histogram, i * 10, 1);
		total += i * 10;
	}
	sum = sum_of(&histogram);
	ck_assert_uint_eq(sum.count, 100000);
	ck_assert_uint_eq(sum.total, total);
	assert_quantile(&sum, 0.5, 500000);
	assert_quantile(&sum, 0.9, 900000);
	assert_quantile(&sum, 0.99, 990000);
	assert_quantile(&sum, 1, 1000000);
}

/* One in a hundred is slow: the 99th percentile does not show it, the 99.9th does. */
TEST(tail)
{
	struct histogram_sum sum;

	histogram_add(&histogram, 100, 990);
	histogram_add(&histogram, 5000000, 10);
	sum = sum_of(&histogram);
	assert_quantile(&sum, 0.99, 100);
	assert_quantile(&sum, 0.999, 5000000);
	histogram_add(&histogram, 100 * (uint64_t)HISTOGRAM_MOST, 1000);
	sum = sum_of(&histogram);
	ck_assert_uint_eq(histogram_quantile(&sum, 0.999), HISTOGRAM_MOST);
}

/* A value without a duration is in no bucket. */
TEST(untimed)
{
	struct histogram_sum sum;

	histogram_add(&histogram, 5000, 10);
	for (int i = 0; i < 1000; i++)
		histogram_add_untimed(&histogram);
	sum = sum_of(&histogram);
	ck_assert_uint_eq(sum.count, 10);
	ck_assert_uint_eq(sum.untimed, 1000);
	assert_quantile(&sum, 0.5, 5000);
	histogram_reset(&histogram);
	histogram_add_untimed(&histogram);
	ck_assert_uint_eq(sum_of(&histogram).untimed, 1);
}

TEST(sums_and_resets)
{
	static struct histogram other;
	struct histogram_sum sum = { .count = 0 };

	histogram_add(&histogram, 100, 3);
	histogram_add(&other, 200, 4);
	histogram_sum(&histogram, &sum);
	histogram_sum(&other, &sum);
	ck_assert_uint_eq(sum.count, 7);
	ck_assert_uint_eq(sum.total, 1100);
	histogram_reset(&histogram);
	ck_assert_uint_eq(sum_of(&histogram).count, 0);
	ck_assert_uint_eq(sum_of(&histogram).total, 0);
	histogram_add(&histogram, 50, 2);
	sum = sum_of(&histogram);
	ck_assert_uint_eq(sum.count, 2);
	ck_assert_uint_eq(sum.counts[histogram_bucket(50)], 2);
	ck_assert_uint_eq(sum.total, 100);
}

static void setup(void)
{
	memset(&histogram, 0, sizeof(histogram));
}

FIXTURE(setup, NULL)
