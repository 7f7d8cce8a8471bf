/*
 * The most frequent keys of a stream, in bounded memory: the space-saving sketch of Metwally,
 * Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
 * Streams", 2005. A key that is not in the sketch replaces the one with the least weight, and
 * inherits its weight. So a weight is never too small, and too large by at most a 128th of the
 * total weight. Every key with more than that is in the sketch.
 */
#ifndef UTIL_TOPK_H
#define UTIL_TOPK_H

#include <stdint.h>

#include "util/random.h"
#include "util/slice.h"

enum { TOPK_ENTRIES = 128, TOPK_KEY = 250 };

/* The first member of each entry in a list of weighted keys. */
struct topk_key {
	uint64_t weight;
	uint8_t n; /* Bytes of the key. */
	char key[TOPK_KEY];
};

/* Weights and hashes are stored apart from the entries, since each addition searches them. */
struct topk {
	uint64_t total;  /* Sum of all weights that were added. */
	uint64_t halved; /* How often the weights were halved. */
	size_t size;
	uint64_t weights[TOPK_ENTRIES], hashes[TOPK_ENTRIES];
	/* Chains of entries by hash, as number + 1; 0 is the end. */
	uint8_t first[TOPK_ENTRIES], next[TOPK_ENTRIES];
	struct topk_key entries[TOPK_ENTRIES]; /* The weights in them are unused. */
};

/* Initializes an empty sketch. */
void topk_init(struct topk *t);

/*
 * Adds weight to a key, of which only the first TOPK_KEY bytes are significant. `hash` is a
 * hash of the key, by the same function in all calls.
 */
void topk_add(struct topk *t, struct slice key, uint64_t hash, uint64_t weight);

/* Halves all weights `times` times, so that earlier additions count less than later ones. */
void topk_halve(struct topk *t, uint64_t times);

/* Copies the entries with a weight to `out`, unordered. Returns their number. */
size_t topk_entries(const struct topk *t, struct topk_key out[TOPK_ENTRIES]);

/* For topk_merge(), with entries of sketches: adds one to another. */
void topk_join(void *into, const void *from);

/*
 * Merges all entries with the same key, and sorts them by descending weight. Returns their
 * number. An entry has `size` bytes and begins with a struct topk_key. `join` adds the entry
 * `from` to the entry `into`, which has the same key.
 */
size_t topk_merge(
	void *list, size_t count, size_t size, void (*join)(void *into, const void *from));

/* --- the sample --- */

/*
 * Chooses one of TOPK_SAMPLE on average. The distance to the next one is random, from 1 to 2 *
 * TOPK_SAMPLE - 1, so periodic traffic is not sampled more or less often than other traffic.
 */
enum { TOPK_SAMPLE = 64 };

struct topk_sample {
	uint64_t random; /* State of random_next(). */
	uint64_t skip;   /* How many pass before the next one is chosen. */
};

/*
 * Returns whether none of the next `n` is chosen; then they have passed. Otherwise call
 * topk_sample_next().
 */
static inline bool topk_sample_passes(struct topk_sample *s, uint64_t n)
{
	if (n > s->skip)
		return false;
	s->skip -= n;
	return true;
}

/*
 * Returns the index of the chosen one, from 0, among the next ones. It and those before it have
 * passed.
 */
static inline uint64_t topk_sample_next(struct topk_sample *s)
{
	uint64_t chosen = s->skip;

	s->skip = random_next(&s->random) % (2 * TOPK_SAMPLE - 1);
	return chosen;
}

#endif
