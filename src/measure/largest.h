/*
 * The largest sets and lists that a worker has read or compacted lately, by bytes. The worker writes them, and other threads read
 * them, both with a lock.
 */
#ifndef MEASURE_LARGEST_H
#define MEASURE_LARGEST_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "util/topk.h"

/* What was not read for LARGEST_FORGET seconds is forgotten. */
enum { LARGEST_ENTRIES = 32, LARGEST_FORGET = 3600 };

struct large_collection {
	struct topk_key top; /* weighs as many bytes as it has, as it is stored, without indexes */
	uint64_t
		members; /* or items; of a set with tables about as many, since removals of what was never added count */
	int64_t seen;    /* Unix time when it was read last */
};

struct largest {
	pthread_mutex_t lock; /* protects all below */
	size_t count;
	uint64_t least; /* bytes of the smallest entry, or fewer, as it was at `searched`, a Unix time */
	int64_t searched;
	/* Of the keys, so that most keys that are not in the list need no comparison. */
	uint64_t marks[LARGEST_ENTRIES];
	struct large_collection list[LARGEST_ENTRIES];
};

void largest_init(struct largest *largest);
void largest_fini(struct largest *largest);

/* A set or list was read at this Unix time. */
void largest_note(struct largest *largest, struct slice key, uint64_t members, uint64_t bytes, int64_t now);

/* Forgets all. From any thread. */
void largest_reset(struct largest *largest);

/* Copies those that were read lately, in no order, and gives their number. From any thread. */
size_t largest_copy(struct largest *largest, int64_t now, struct large_collection out[LARGEST_ENTRIES]);

/* For topk_merge, with entries of several workers. */
void largest_join(void *into, const void *from);

#endif
