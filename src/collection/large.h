/*
 * A lossy record of the keys that were recently seen to hold a collection with segments. All workers of a process share
 * it. A key that was forgotten counts as an ordinary item: deleting it leaves its segments to be evicted.
 */
#ifndef COLLECTION_LARGE_H
#define COLLECTION_LARGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/hash.h"

enum { LARGE_SLOTS = 16384 };

/* Each slot holds the tag of the last marked key that hashed to it; 0 for none. */
struct large_filter {
	atomic_uint slots[LARGE_SLOTS];
};

static inline void large_mark(struct large_filter *filter, struct slice key)
{
	uint64_t hash = hash_key(key, 0);

	if (filter)
		atomic_store_explicit(
			&filter->slots[hash % LARGE_SLOTS], (unsigned)(hash >> 32) | 1, memory_order_relaxed);
}

static inline bool large_seen(struct large_filter *filter, struct slice key)
{
	uint64_t hash = hash_key(key, 0);

	return filter &&
		atomic_load_explicit(&filter->slots[hash % LARGE_SLOTS], memory_order_relaxed) ==
		((unsigned)(hash >> 32) | 1);
}

#endif
