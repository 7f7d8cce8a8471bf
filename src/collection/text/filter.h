/*
 * Blocked Bloom filters: whether a set of hashes may contain a hash. A hash sets three bits of
 * one word, so a query reads one cache line (Putze, Sanders and Singler, "Cache-, hash- and
 * space-efficient Bloom filters", 2007). With ten bits for each hash the false positive rate is
 * about 5 %.
 */
#ifndef COLLECTION_TEXT_FILTER_H
#define COLLECTION_TEXT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILTER_BITS_EACH = 10 };

static inline size_t filter_words(size_t count)
{
	return count * FILTER_BITS_EACH / 64 + 1;
}

static inline uint64_t filter_bits(uint64_t hash)
{
	return UINT64_C(1) << (hash & 63) | UINT64_C(1) << (hash >> 6 & 63) |
		UINT64_C(1) << (hash >> 12 & 63);
}

/* The upper half of the hash, scaled to `words`, avoids a division. */
static inline size_t filter_word(uint64_t hash, size_t words)
{
	return (size_t)((hash >> 32) * (uint64_t)words >> 32);
}

static inline void filter_add(uint64_t *filter, size_t words, uint64_t hash)
{
	filter[filter_word(hash, words)] |= filter_bits(hash);
}

static inline bool filter_may_hold(const uint64_t *filter, size_t words, uint64_t hash)
{
	uint64_t bits = filter_bits(hash);

	return (filter[filter_word(hash, words)] & bits) == bits;
}

#endif
