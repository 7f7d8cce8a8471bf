/* A memcached in memory, with the semantics that collections need: append, cas, add, touch and times to live. */
#ifndef SIM_FAKE_H
#define SIM_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/call.h"
#include "util/buf.h"

enum { FAKE_ITEMS = 4096 };

struct fake_item {
	struct buf key, value;
	uint64_t cas;
	int64_t expires; /* in seconds of the simulation, 0 for never */
	uint32_t flags;
	bool used;
};

struct fake {
	struct fake_item items[FAKE_ITEMS];
	uint64_t next_cas;
	uint64_t ahead;   /* milliseconds of its clock */
	struct buf stats; /* the reply to STATS */
	size_t item_max;
};

/* Executes a call at this time in milliseconds. The slices of the result point into the item until the next call. */
struct result fake_call(struct fake *fake, const struct call *call, uint64_t now);

/* The item of a key at that time, or NULL. */
struct fake_item *fake_find(struct fake *fake, struct slice key, uint64_t now);

void fake_remove(struct fake_item *item);

/* Drops all items and starts cas ids at 1, as a restart does. */
void fake_restart(struct fake *fake);

#endif
