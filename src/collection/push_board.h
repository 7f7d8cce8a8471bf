/*
 * Which lists clients wait for, in any worker of the process, to which of them something was pushed, and when a worker last asked the
 * server of one whether there is something. All workers share it. Keys share its slots by their hashes: what it says of a key is that
 * there may be something. A worker that asks writes a mark of its key, so that no other worker uses the answer for another key.
 */
#ifndef COLLECTION_PUSH_BOARD_H
#define COLLECTION_PUSH_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "util/hash.h"

enum { PUSH_BOARD_SLOTS = 4096 };

struct push_board {
	uint64_t seed;       /* of the hash; the same for all workers */
	atomic_size_t tasks; /* waiting tasks of all workers */
	struct {
		atomic_uint waiting; /* keys with somebody who waits, of all workers */
		atomic_uint pushes;
		_Atomic uint64_t asked; /* the mark, and the lower half of the milliseconds */
		_Atomic uint64_t seen;  /* the cas id in the last answer; 0 for none */
	} slots[PUSH_BOARD_SLOTS];
};

/* Counts one more waiting task, unless there are `max` already: then returns false. */
static inline bool push_board_enter(struct push_board *board, size_t max)
{
	size_t tasks = atomic_load(&board->tasks);

	do {
		if (tasks >= max)
			return false;
	} while (!atomic_compare_exchange_weak(&board->tasks, &tasks, tasks + 1));
	return true;
}

static inline void push_board_leave(struct push_board *board)
{
	atomic_fetch_sub(&board->tasks, 1);
}

static inline size_t push_board_slot(const struct push_board *board, struct slice key)
{
	return hash_slice(key, board->seed) % PUSH_BOARD_SLOTS;
}

/* A key with this slot has somebody who waits for it, or none any more. */
static inline void push_board_wait(struct push_board *board, size_t slot, bool waits)
{
	atomic_fetch_add(&board->slots[slot].waiting, waits ? 1u : -1u);
}

/* Whether more than one worker has somebody who waits for such a key. */
static inline bool push_board_is_shared(struct push_board *board, size_t slot)
{
	return atomic_load(&board->slots[slot].waiting) > 1;
}

static inline uint32_t push_board_mark(const struct push_board *board, struct slice key)
{
	return (uint32_t)(hash_slice(key, board->seed) >> 32);
}

/*
 * A worker is about to ask the server for a key. Gives 0 if it may. If any has asked in the `pause` milliseconds before, gives how many of
 * them are left.
 */
static inline unsigned push_board_ask(
	struct push_board *board, size_t slot, uint32_t mark, uint64_t now, unsigned pause)
{
	_Atomic uint64_t *asked = &board->slots[slot].asked;
	uint64_t last = atomic_load(asked), mine = (uint64_t)mark << 32 | (uint32_t)now;

	do {
		/* The clock of another worker may be ahead by one turn of its loop. */
		int32_t age = (int32_t)((uint32_t)now - (uint32_t)last);
		if (last && last >> 32 == mark && age < (int32_t)pause)
			return age > 0 ? pause - (unsigned)age : pause;
	} while (!atomic_compare_exchange_weak(asked, &last, mine));
	return 0;
}

/* Notes the answer of the server: the cas id of the list, for the workers that have not asked. */
static inline void push_board_see(struct push_board *board, size_t slot, uint64_t cas)
{
	atomic_store(&board->slots[slot].seen, cas);
}

static inline uint64_t push_board_seen(struct push_board *board, size_t slot)
{
	return atomic_load(&board->slots[slot].seen);
}

/* Something was pushed to a list. Whether anybody may wait for it. */
static inline bool push_board_note(struct push_board *board, struct slice key)
{
	size_t slot = push_board_slot(board, key);

	if (atomic_load(&board->slots[slot].waiting) == 0)
		return false;
	atomic_fetch_add(&board->slots[slot].pushes, 1);
	return true;
}

static inline unsigned push_board_pushes(struct push_board *board, size_t slot)
{
	return atomic_load(&board->slots[slot].pushes);
}

#endif
