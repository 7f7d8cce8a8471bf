/*
 * State of blocking pops, shared by all workers of a process: the lists that clients block on,
 * those to which elements were pushed, and when a worker last polled the server of a list. Keys
 * share slots by hash, so all this information is only a hint. A worker that polls a key stores
 * a tag of it, so that no other worker uses the result for a different key.
 */
#ifndef WAITING_PUSH_BOARD_H
#define WAITING_PUSH_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "util/hash.h"

enum {
	PUSH_BOARD_SLOTS = 4096,
	PUSH_BOARD_GROUP = 64,
	PUSH_BOARD_GROUPS = PUSH_BOARD_SLOTS / PUSH_BOARD_GROUP
};

struct push_board {
	uint64_t seed;       /* seed of the hash; the same for all workers */
	atomic_size_t keys;  /* keys of the blocked commands of all workers */
	atomic_size_t lines; /* different keys, counting each once for each worker */
	/* The number of pushes in all slots of a group, which are neighbours. */
	atomic_uint groups[PUSH_BOARD_GROUPS];
	struct {
		atomic_uint waiting; /* the share of this slot in `lines` */
		/* The tag of the last key in the upper half, the number of pushes in the lower. */
		_Atomic uint64_t pushed;
		/*
		 * Last poll: the tag of its key in the upper half, the low 32 bits of its time
		 * in ms in the lower half.
		 */
		_Atomic uint64_t asked;
		_Atomic uint64_t seen; /* cas id in the last reply; 0 for none */
	} slots[PUSH_BOARD_SLOTS];
};

/*
 * Counts the keys of one more command. Returns false, without counting, if that would be more
 * than `max`.
 */
static inline bool push_board_enter(struct push_board *board, size_t keys, size_t max)
{
	size_t all = atomic_load(&board->keys);

	do {
		if (keys > max || all > max - keys)
			return false;
	} while (!atomic_compare_exchange_weak(&board->keys, &all, all + keys));
	return true;
}

static inline void push_board_leave(struct push_board *board, size_t keys)
{
	atomic_fetch_sub(&board->keys, keys);
}

static inline uint64_t push_board_hash(const struct push_board *board, struct slice key)
{
	return hash_slice(key, board->seed);
}

/* Return the slot and the tag of a key with this hash. */
static inline size_t push_board_slot(uint64_t hash)
{
	return hash % PUSH_BOARD_SLOTS;
}

static inline uint32_t push_board_tag(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

/* Counts a key of this slot that commands now block on, or, if not `waits`, no longer block on. */
static inline void push_board_wait(struct push_board *board, size_t slot, bool waits)
{
	atomic_fetch_add(&board->slots[slot].waiting, waits ? 1u : -1u);
	atomic_fetch_add(&board->lines, waits ? 1 : (size_t)-1);
}

/*
 * Returns whether commands block on more than one key of this slot, counting each key
 * once for each worker.
 */
static inline bool push_board_is_shared(struct push_board *board, size_t slot)
{
	return atomic_load(&board->slots[slot].waiting) > 1;
}

/*
 * Returns 0 if the worker may poll the server for a key now. If the key was polled less than
 * `pause` milliseconds ago, returns the milliseconds left.
 */
static inline unsigned push_board_ask(
	struct push_board *board, size_t slot, uint32_t tag, uint64_t now, unsigned pause)
{
	_Atomic uint64_t *asked = &board->slots[slot].asked;
	uint64_t last = atomic_load(asked), mine = (uint64_t)tag << 32 | (uint32_t)now;

	do {
		/* The clock of another worker may be ahead by one turn of its loop. */
		int32_t age = (int32_t)((uint32_t)now - (uint32_t)last);
		if (last && last >> 32 == tag && age < (int32_t)pause)
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

/* Notes a push to a list. Returns whether a command may be blocked on the list. */
static inline bool push_board_note(struct push_board *board, struct slice key)
{
	uint64_t hash = push_board_hash(board, key), tag = push_board_tag(hash), last;
	size_t slot = push_board_slot(hash);

	if (atomic_load(&board->slots[slot].waiting) == 0)
		return false;
	last = atomic_load(&board->slots[slot].pushed);
	while (!atomic_compare_exchange_weak(
		&board->slots[slot].pushed, &last, tag << 32 | (uint32_t)(last + 1)))
		;
	atomic_fetch_add(&board->groups[slot / PUSH_BOARD_GROUP], 1);
	return true;
}

/*
 * Returns the pushes of a slot, to compare with an earlier return. push_board_concerns returns
 * whether a key with this tag may have been pushed to in between: all keys of the slot, unless
 * there was only one push.
 */
static inline uint64_t push_board_pushed(struct push_board *board, size_t slot)
{
	return atomic_load(&board->slots[slot].pushed);
}

static inline bool push_board_concerns(uint64_t before, uint64_t after, uint32_t tag)
{
	return (uint32_t)after - (uint32_t)before != 1 || after >> 32 == tag;
}

#endif
