/*
 * A log-linear histogram: each power of two is cut into 2^HIST_SUB_BITS equal buckets, so adding
 * is a shift and an increment, and the relative error is the same at 10 us and at 10 s.
 */
#include "hist.h"

#include <stddef.h>

static size_t bucket_of(uint64_t value)
{
	const uint64_t largest = (UINT64_C(1) << HIST_MAX_BITS) - 1;
	unsigned shift = 0;

	if (value > largest)
		value = largest;
	if (value >> HIST_SUB_BITS)
		shift = 63 - HIST_SUB_BITS - (unsigned)__builtin_clzll(value);
	/* value >> shift still has its top bit, which is what adds the last 1 to the octave. */
	return ((size_t)shift << HIST_SUB_BITS) + (size_t)(value >> shift);
}

static uint64_t middle_of(size_t bucket)
{
	size_t octave = bucket >> HIST_SUB_BITS;
	unsigned shift = octave ? (unsigned)octave - 1 : 0;
	uint64_t low = (uint64_t)(bucket - ((size_t)shift << HIST_SUB_BITS)) << shift;

	return low + ((UINT64_C(1) << shift) >> 1);
}

void hist_add(struct hist *hist, uint64_t value)
{
	hist->total++;
	hist->buckets[bucket_of(value)]++;
	if (value > hist->max)
		hist->max = value;
}

uint64_t hist_quantile(const struct hist *hist, double fraction)
{
	uint64_t wanted = (uint64_t)(fraction * (double)hist->total);
	uint64_t seen = 0;

	if (hist->total == 0)
		return 0;
	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		seen += hist->buckets[i];
		if (seen > wanted)
			return middle_of(i) < hist->max ? middle_of(i) : hist->max;
	}
	return hist->max;
}
