/*
 * The keys of a worker that cause most requests, and those that cause most bytes, of a sample of 1 in TOPK_SAMPLE. Each key of a
 * request counts. Its bytes are an equal share of those of the request and its reply.
 *
 * Every HOTKEYS_HALF_LIFE seconds of the monotonic clock all that was counted before counts half.
 *
 * Other threads read it. So a lock protects what is counted, and the worker takes it for the sampled keys alone.
 */
#ifndef MEASURE_HOTKEYS_H
#define MEASURE_HOTKEYS_H

#include <pthread.h>
#include <stdbool.h>

#include "util/topk.h"

enum { HOTKEYS_HALF_LIFE = 300 };

enum hotkeys_by { HOTKEYS_REQUESTS, HOTKEYS_BYTES, HOTKEYS_KINDS };

struct hotkeys {
	struct topk_sample sample; /* the worker's */
	pthread_mutex_t lock;      /* protects all below */
	uint64_t seed;             /* of hashes */
	uint64_t since;            /* milliseconds of the monotonic clock: the start, or the last reset */
	struct topk top[HOTKEYS_KINDS];
};

/* `random` is any number, which clients do not know; `now` is the monotonic clock in milliseconds, here and below. */
void hotkeys_init(struct hotkeys *hotkeys, uint64_t random, uint64_t now);
void hotkeys_fini(struct hotkeys *hotkeys);

/* Forgets all keys. From any thread. */
void hotkeys_reset(struct hotkeys *hotkeys, uint64_t now);

/* Whether none of the next `count` keys is sampled. Else call hotkeys_sample. From the worker's thread. */
static inline bool hotkeys_pass(struct hotkeys *hotkeys, uint64_t count)
{
	return topk_sample_passes(&hotkeys->sample, count);
}

/* Counts the sampled ones of the `count` keys of a request, separated by spaces if there are several. `bytes` are of all. */
void hotkeys_sample(struct hotkeys *hotkeys, struct slice keys, uint64_t count, uint64_t bytes, uint64_t now);

/*
 * Copies the entries of one kind to `out`, not scaled by the sample, and gives their number. Adds the weight of all keys to `total`.
 * From any thread.
 */
size_t hotkeys_copy(struct hotkeys *hotkeys, enum hotkeys_by by, uint64_t now, struct topk_entry out[TOPK_ENTRIES],
	uint64_t *total);

/* Seconds since the start or the last reset, weighed as what was counted in each: a weight divided by them is a rate. */
double hotkeys_seconds(struct hotkeys *hotkeys, uint64_t now);

#endif
