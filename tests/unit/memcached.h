/*
 * A memcached in memory, for the simulation and for unit tests. It has the commands that
 * collections need, cas ids, times to live, and a maximum item size. It has no clock: each call
 * passes the time.
 */
#ifndef UNIT_MEMCACHED_H
#define UNIT_MEMCACHED_H

#include "protocol/call.h"
#include "util/buf.h"

enum { MEMCACHED_ITEMS = 4096 };

struct memcached {
	struct memcached_item {
		struct buf key, value;
		uint64_t cas;
		int64_t expires; /* in seconds of the caller's clock, 0 for never */
		uint32_t flags;
		bool used;
	} items[MEMCACHED_ITEMS];
	uint64_t cas;     /* the last cas id */
	uint64_t ahead;   /* milliseconds of its clock */
	struct buf stats; /* the reply to STATS */
	size_t item_max;  /* bytes of an item; 0 for no limit */
};

/* Executes a call at this time in milliseconds. The slices of the result point into the item until the next call. */
struct result memcached_call(struct memcached *m, const struct call *call, uint64_t now);

/* The item of a key at that time, or NULL. */
struct memcached_item *memcached_find(struct memcached *m, struct slice key, uint64_t now);

void memcached_remove(struct memcached_item *item);

/* Drops all items and starts cas ids at 1, as a restart does. It leaves no memory allocated. */
void memcached_restart(struct memcached *m);

/*
 * Copies the bytes of a call's slices, which then point to the copy. Nothing follows the copy in
 * memory, so that a read beyond it is detected. The caller frees it.
 */
char *memcached_keep_call(struct call *call);

#endif
