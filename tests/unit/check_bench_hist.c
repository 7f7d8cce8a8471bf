/* The histogram of the load generator: its latencies must be right to within a bucket. */
#include "../bench/hist.h"
#include "unit.h"

static struct hist hist;

/* Half a bucket is the maximum distance of a value from the middle of its bucket. */
static void assert_near(uint64_t got, double wanted)
{
	double off = (double)got > wanted ? (double)got - wanted : wanted - (double)got;

	ck_assert_msg(off <= wanted * 0.008 + 0.5, "%llu is not near %.1f", (unsigned long long)got,
		wanted);
}

TEST(empty)
{
	ck_assert_uint_eq(hist_quantile(&hist, 0.5), 0);
	ck_assert_uint_eq(hist_quantile(&hist, 1), 0);
}

TEST(one_value)
{
	const uint64_t values[] = { 0, 1, 127, 128, 129, 255, 256, 1000, 65535, 1000000,
		UINT64_C(3600000000000) };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		hist = (struct hist){ .total = 0 };
		hist_add(&hist, values[i]);
		assert_near(hist_quantile(&hist, 0), (double)values[i]);
		assert_near(hist_quantile(&hist, 0.999), (double)values[i]);
		ck_assert_uint_eq(hist.max, values[i]);
	}
}

TEST(quantiles)
{
	for (uint64_t i = 1; i <= 100000; i++)
		hist_add(&hist, i * 10);
	assert_near(hist_quantile(&hist, 0.5), 500000);
	assert_near(hist_quantile(&hist, 0.95), 950000);
	assert_near(hist_quantile(&hist, 0.99), 990000);
	assert_near(hist_quantile(&hist, 0.999), 999000);
	ck_assert_uint_eq(hist_quantile(&hist, 1), 1000000);
}

/* One in a hundred is slow: the 99th percentile is the first to show it. */
TEST(tail)
{
	for (int i = 0; i < 1000; i++)
		hist_add(&hist, i % 100 == 0 ? 5000000 : 100);
	assert_near(hist_quantile(&hist, 0.95), 100);
	assert_near(hist_quantile(&hist, 0.99), 5000000);
}

TEST(too_large)
{
	hist_add(&hist, UINT64_MAX);
	ck_assert_uint_eq(hist.max, UINT64_MAX);
	ck_assert_uint_ge(hist_quantile(&hist, 0.5), (UINT64_C(1) << HIST_MAX_BITS) / 100 * 99);
}
