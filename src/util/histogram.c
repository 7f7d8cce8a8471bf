#include "util/histogram.h"

void histogram_reset(struct histogram *h)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		h->counts_before[i] = atomic_load(&h->counts[i]);
	h->total_before = atomic_load(&h->total);
	h->untimed_before = atomic_load(&h->untimed);
}

void histogram_sum(const struct histogram *h, struct histogram_sum *sum)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t count = atomic_load(&h->counts[i]) - h->counts_before[i];
		sum->counts[i] += count;
		sum->count += count;
	}
	sum->total += atomic_load(&h->total) - h->total_before;
	sum->untimed += atomic_load(&h->untimed) - h->untimed_before;
}

uint64_t histogram_quantile(const struct histogram_sum *sum, double q)
{
	double wanted = q * (double)sum->count;
	uint64_t seen = 0;

	if (sum->count == 0)
		return 0;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		seen += sum->counts[i];
		if (seen && (double)seen >= wanted)
			return histogram_to(i);
	}
	return HISTOGRAM_MOST;
}

/* The inverse of histogram_bucket(). */
uint64_t histogram_to(unsigned bucket)
{
	unsigned place = bucket + HISTOGRAM_LEAST, shift = place < 16 ? 0 : place / 8 - 1;

	return bucket < HISTOGRAM_BUCKETS - 1 ? (uint64_t)(place - shift * 8) << shift : UINT64_MAX;
}
