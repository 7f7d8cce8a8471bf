/*
 * A lossy filter of the keys that recently held a collection with segments, shared by all
 * workers of a process. A key that is not in it is treated as an ordinary item: deleting it
 * leaves its segments to eviction.
 */
#ifndef COLLECTION_LARGE_H
#define COLLECTION_LARGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/hash.h"

enum { LARGE_SLOTS = 16384 };

/* Each slot holds the tag of the last marked key with this hash; 0 for none. */
struct large_filter {
	atomic_uint slots[LARGE_SLOTS];
};

static inline void large_mark(struct large_filter *filter, struct slice key)
{
	uint64_t hash = hash_key(key, 0);

	if (filter)
		atomic_store_explicit(&filter->slots[hash % LARGE_SLOTS],
			(unsigned)(hash >> 32) | 1, memory_order_relaxed);
}

static inline bool large_seen(struct large_filter *filter, struct slice key)
{
	uint64_t hash = hash_key(key, 0);

	return filter &&
		atomic_load_explicit(&filter->slots[hash % LARGE_SLOTS], memory_order_relaxed) ==
		((unsigned)(hash >> 32) | 1);
}

#endif
