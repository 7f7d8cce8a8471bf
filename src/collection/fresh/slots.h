/*
 * Writes in progress, and how many there were, by hash of the key: a table that all workers of a
 * process share. It shows a worker that another one has written a key that it has in memory.
 *
 *     write  begin -> call ... result -> end, then the reply to the client
 *     read   slot -> call ... result; it is valid as long as the slot is the same
 *
 * A slot has the writes in progress in its low bits, above them the number of writes that have
 * ended. So a result is valid only if no write was in progress when its call was sent, and none
 * has begun since. Keys that share a slot only make each other's results invalid.
 */
#ifndef COLLECTION_FRESH_SLOTS_H
#define COLLECTION_FRESH_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FRESH_SLOTS = 1 << 16, FRESH_WRITES = 1 << 24 };

/* All zeroes is a valid table. */
struct fresh_slots {
	/* The generations of all workers; see settings.generations. */
	atomic_uint generations;
	uint64_t seed;                /* of the hashes; constant */
	atomic_uint_fast64_t flushes; /* a slot for the writes that change all keys */
	atomic_uint_fast64_t at[FRESH_SLOTS];
};

static inline bool fresh_slot_is_written(uint64_t slot)
{
	return slot & (FRESH_WRITES - 1);
}

/* Returns the slot as it was. */
static inline uint64_t fresh_slot_begin(atomic_uint_fast64_t *slot)
{
	return atomic_fetch_add(slot, 1);
}

static inline void fresh_slot_end(atomic_uint_fast64_t *slot)
{
	(void)atomic_fetch_add(slot, FRESH_WRITES - 1);
}

/*
 * Ends a write that began when the slot was `before`. Returns whether no other one has begun or
 * ended since; then stores the slot as it is now in `after`.
 */
static inline bool fresh_slot_end_alone(
	atomic_uint_fast64_t *slot, uint64_t before, uint64_t *after)
{
	uint_fast64_t during = before + 1;

	*after = before + FRESH_WRITES;
	if (atomic_compare_exchange_strong(slot, &during, *after))
		return true;
	fresh_slot_end(slot);
	return false;
}

#endif
