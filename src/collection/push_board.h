/*
 * Which lists clients wait for, in any worker of the process, and to which of them something was pushed. All workers share it. Keys
 * share its slots by their hashes: what it says of a key is that there may be something.
 */
#ifndef COLLECTION_PUSH_BOARD_H
#define COLLECTION_PUSH_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "util/hash.h"

enum { PUSH_BOARD_SLOTS = 4096 };

struct push_board {
	uint64_t seed; /* of the hash; the same for all workers */
	struct {
		atomic_uint waiting; /* keys with somebody who waits, of all workers */
		atomic_uint pushes;
	} slots[PUSH_BOARD_SLOTS];
};

static inline size_t push_board_slot(const struct push_board *board, struct slice key)
{
	return hash_slice(key, board->seed) % PUSH_BOARD_SLOTS;
}

/* A key with this slot has somebody who waits for it, or none any more. */
static inline void push_board_wait(struct push_board *board, size_t slot, bool waits)
{
	atomic_fetch_add(&board->slots[slot].waiting, waits ? 1u : -1u);
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
