/*
 * The most frequent keys of a stream, in bounded memory: the space-saving sketch of Metwally, Agrawal and El Abbadi, "Efficient
 * Computation of Frequent and Top-k Elements in Data Streams", 2005. A key that is not in the sketch replaces the one with the
 * least weight, and inherits this weight. So a weight is never too small, and too large by at most a 128th of the total weight. Every
 * key with more than that is in the sketch.
 */
#ifndef UTIL_TOPK_H
#define UTIL_TOPK_H

#include <stdint.h>

#include "util/random.h"
#include "util/slice.h"

enum { TOPK_ENTRIES = 128, TOPK_KEY = 250 };

/* The first member of each entry in a list of keys with weights. */
struct topk_key {
	uint64_t weight;
	uint8_t n; /* bytes of the key */
	char key[TOPK_KEY];
};

/* Weights and hashes stand apart from the entries, since each addition searches them. */
struct topk {
	uint64_t total;  /* of all weights that were added */
	uint64_t halved; /* times */
	size_t size;
	uint64_t weights[TOPK_ENTRIES], hashes[TOPK_ENTRIES];
	uint8_t first[TOPK_ENTRIES], next[TOPK_ENTRIES]; /* chains of entries by hash, as number + 1; 0 is the end */
	struct topk_key entries[TOPK_ENTRIES];           /* their weights are unused */
};

/* Makes it empty. */
void topk_init(struct topk *t);

/* Adds weight to a key, of which the first TOPK_KEY bytes count. `hash` is one of the key; all calls use the same function. */
void topk_add(struct topk *t, struct slice key, uint64_t hash, uint64_t weight);

/* Halves all weights `times` times, so that what was added before counts less than what comes. */
void topk_halve(struct topk *t, uint64_t times);

/* Copies the entries with a weight to `out`, in no order. Gives their number. */
size_t topk_entries(const struct topk *t, struct topk_key out[TOPK_ENTRIES]);

/* For topk_merge, with entries of sketches: adds one to another. */
void topk_join(void *into, const void *from);

/*
 * Makes one of all entries with the same key, and sorts them: the largest weight first. Gives their number. An entry has `size` bytes,
 * and begins with a struct topk_key. `join` adds the entry `from` to the entry `into`, which has the same key.
 */
size_t topk_merge(void *list, size_t count, size_t size, void (*join)(void *into, const void *from));

/* --- the sample --- */

/*
 * Chooses one of TOPK_SAMPLE on average. The distance to the next one is random, from 1 to twice that less 1: so no traffic with a
 * period is sampled more or less often than other traffic.
 */
enum { TOPK_SAMPLE = 64 };

struct topk_sample {
	uint64_t random; /* state of random_next() */
	uint64_t skip;   /* that pass before the next one is chosen */
};

/* Whether none of the next `n` is chosen. Then they have passed; else call topk_sample_next. */
static inline bool topk_sample_passes(struct topk_sample *s, uint64_t n)
{
	if (n > s->skip)
		return false;
	s->skip -= n;
	return true;
}

/* The number of the chosen one, from 0, among those that are next. The ones up to it have passed. */
static inline uint64_t topk_sample_next(struct topk_sample *s)
{
	uint64_t chosen = s->skip;

	s->skip = random_next(&s->random) % (2 * TOPK_SAMPLE - 1);
	return chosen;
}

#endif
