/*
 * State of blocking pops, shared by all workers of a process: the lists that clients block on,
 * those to which elements were pushed, and when a worker last polled the server of a list. Keys
 * share slots by hash, so all this information is only a hint. A worker that polls a key stores
 * a mark of it, so that no other worker uses the result for a different key.
 */
#ifndef COLLECTION_PUSH_BOARD_H
#define COLLECTION_PUSH_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "util/hash.h"

enum { PUSH_BOARD_SLOTS = 4096 };

struct push_board {
	uint64_t seed;       /* seed of the hash; the same for all workers */
	atomic_size_t tasks; /* blocked tasks of all workers */
	struct {
		atomic_uint waiting; /* keys that tasks block on, summed over all workers */
		atomic_uint pushes;
		/*
		 * Last poll: the mark of its key in the upper half, the low 32 bits of its time
		 * in ms in the lower half.
		 */
		_Atomic uint64_t asked;
		_Atomic uint64_t seen; /* cas id in the last reply; 0 for none */
	} slots[PUSH_BOARD_SLOTS];
};

/* Counts one more blocked task. Returns false, without counting, if there are `max` already. */
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

/* Counts a key of this slot that tasks now block on, or, if not `waits`, no longer block on. */
static inline void push_board_wait(struct push_board *board, size_t slot, bool waits)
{
	atomic_fetch_add(&board->slots[slot].waiting, waits ? 1u : -1u);
}

/*
 * Returns whether tasks block on more than one key of this slot, counting each key
 * once for each worker.
 */
static inline bool push_board_is_shared(struct push_board *board, size_t slot)
{
	return atomic_load(&board->slots[slot].waiting) > 1;
}

static inline uint32_t push_board_mark(const struct push_board *board, struct slice key)
{
	return (uint32_t)(hash_slice(key, board->seed) >> 32);
}

/*
 * Returns 0 if the worker may poll the server for a key now. If the key was polled less than
 * `pause` milliseconds ago, returns the milliseconds left.
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

/* Stores the result of a poll: the cas id of the list, for the workers that did not poll. */
static inline void push_board_see(struct push_board *board, size_t slot, uint64_t cas)
{
	atomic_store(&board->slots[slot].seen, cas);
}

static inline uint64_t push_board_seen(struct push_board *board, size_t slot)
{
	return atomic_load(&board->slots[slot].seen);
}

/* Notes a push to a list. Returns whether a task may be blocked on the list. */
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
