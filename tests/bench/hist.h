#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

/* Values up to 2^HIST_MAX_BITS - 1 are distinguished; larger ones count as the largest. */
#define HIST_SUB_BITS 7
#define HIST_MAX_BITS 42
#define HIST_BUCKETS ((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

/* A histogram of durations in nanoseconds; buckets are at most 0.8% wide. All zero is empty. */
struct hist {
	uint64_t total;
	uint64_t max;
	uint64_t buckets[HIST_BUCKETS];
};

void hist_add(struct hist *hist, uint64_t value);

/*
 * Returns the value below which ${fraction} (0 to 1) of all values are; 0 for an empty histogram.
 */
uint64_t hist_quantile(const struct hist *hist, double fraction);

#endif
