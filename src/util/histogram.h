/*
 * Histograms of durations, in microseconds. Each power of two has eight buckets of equal width,
 * so the upper bound of a bucket is at most an eighth above its lower bound. The first bucket
 * has all durations below 10 us, the last one all from 10.5 s.
 *
 * One thread adds. Other threads read concurrently without a lock: each count is correct, but
 * the counts may be of slightly different moments.
 */
#ifndef UTIL_HISTOGRAM_H
#define UTIL_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_LEAST = 10, HISTOGRAM_MOST = 10485760, HISTOGRAM_BUCKETS = 162 };

/* All zeroes is empty. */
struct histogram {
	atomic_uint_fast64_t counts[HISTOGRAM_BUCKETS];
	atomic_uint_fast64_t total;   /* Sum of the durations in microseconds. */
	atomic_uint_fast64_t untimed; /* Events without a duration, which are in no bucket. */
	/*
	 * The counts at the last histogram_reset(). Callers of histogram_reset() and
	 * histogram_sum() share a lock.
	 */
	uint64_t counts_before[HISTOGRAM_BUCKETS], total_before, untimed_before;
};

/* The sum of one or more histograms. */
struct histogram_sum {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t count; /* Sum of all buckets. */
	uint64_t total; /* Sum of the durations in microseconds. */
	uint64_t untimed;
};

/* Returns the bucket of a duration. */
static inline unsigned histogram_bucket(uint64_t us)
{
	enum { STEPS_BITS = 3 };
	unsigned shift;

	us = us < HISTOGRAM_LEAST ? HISTOGRAM_LEAST - 1 : us > HISTOGRAM_MOST ? HISTOGRAM_MOST : us;
	shift = 63u - STEPS_BITS - (unsigned)__builtin_clzll(us);
	return (shift << STEPS_BITS) + (unsigned)(us >> shift) - (HISTOGRAM_LEAST - 1);
}

/* Adds an event without a duration. Called by one thread only. */
static inline void histogram_add_untimed(struct histogram *h)
{
	uint64_t n = atomic_load_explicit(&h->untimed, memory_order_relaxed);

	atomic_store_explicit(&h->untimed, n + 1, memory_order_relaxed);
}

/* Adds `n` durations of `us` microseconds each. Called by one thread only. */
static inline void histogram_add(struct histogram *h, uint64_t us, uint64_t n)
{
	atomic_uint_fast64_t *count = &h->counts[histogram_bucket(us)];

	/* There is one writer, so no atomic addition is needed. */
	atomic_store_explicit(
		count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
	atomic_store_explicit(&h->total,
		atomic_load_explicit(&h->total, memory_order_relaxed) + us * n,
		memory_order_relaxed);
}

/* Resets the counts to 0 for readers. May be called from any thread; see `counts_before`. */
void histogram_reset(struct histogram *h);

/*
 * Adds the counts since the last reset to `sum`. May be called from any thread; see
 * `counts_before`.
 */
void histogram_sum(const struct histogram *h, struct histogram_sum *sum);

/*
 * Returns the quantile `q`, from 0 to 1, in microseconds: the upper bound of its bucket, so at
 * most an eighth too large; HISTOGRAM_MOST for the last bucket; 0 if nothing was counted.
 */
uint64_t histogram_quantile(const struct histogram_sum *sum, double q);

/*
 * Returns the exclusive upper bound of a bucket in microseconds; UINT64_MAX for the last
 * bucket, which has none.
 */
uint64_t histogram_to(unsigned bucket);

#endif
