/*
 * A unit that is being looked for or moved, and the queue of calls on it. The calls are sent in
 * their order once the unit was found, and some are guarded against marks (guard.h).
 *
 * The claim of a mover may arrive when others have moved the unit and a client has deleted it.
 * memcached would take that mark for an item: append would store, and add would not. No claim
 * arrives later than the margin. So for that long after a unit was found, and until a later read
 * has seen no mark, calls that need an item, or that need none, are guarded.
 */
#ifndef COLLECTION_MOVE_UNIT_H
#define COLLECTION_MOVE_UNIT_H

#include "collection/move/found.h"
#include "collection/move/guard.h"

enum { MOVES_BUCKETS = 1024 };

LIST_HEAD(units, unit);

/* What moves.c and unit.c share. */
struct moves {
	struct mover_world world;
	int64_t at, margin;
	uint64_t seed;
	uint64_t behind; /* env.now from which on a move may start for which no call waits */
	struct units units[MOVES_BUCKETS];
	struct founds found;
};

enum unit_state {
	UNIT_SOUGHT, /* it is looked for, or moved; or its time has not come */
	UNIT_FOUND,  /* it is on its new server, and its calls are sent */
	UNIT_SEEN,   /* the same, and its item was just seen there */
	UNIT_MARKED, /* a call has met a mark since: it is looked for again */
	UNIT_GONE,   /* it is in no list any more, and is freed after its last peek */
};

struct unit {
	LIST_ENTRY(unit) link;
	struct moves *moves;
	uint64_t hash;
	enum unit_state state;
	struct mover mover;
	struct waiter waiter; /* of a timer, or of a lookup of its key */
	/* env.now when that lookup, or the first read of both servers, was sent. */
	uint64_t looked;
	/*
	 * Reads that were sent to both servers and could not be answered yet. They precede
	 * `calls`.
	 */
	struct moved_calls reads;
	struct moved_calls calls;
	uint64_t former; /* the number of the last call before the look at its former server */
	uint64_t asked; /* the number of the last call before the look by which its item was seen */
	/* reads that were sent to both servers and have no answer: no call is sent meanwhile */
	size_t peeks;
	bool writes; /* one of the calls may be more than a read */
	char key[];
};

/*
 * The unit with this key, whose hash with moves->seed is given; NULL if it is neither looked for
 * nor moved.
 */
struct unit *unit_find(const struct moves *m, uint64_t hash, struct slice key);

/* Adds one in UNIT_SOUGHT, which is not started. */
struct unit *unit_add(struct moves *m, uint64_t hash, struct slice key);

/* Looks for the unit, and moves it. */
void unit_start(struct unit *u);

/* Takes the unit from the list: UNIT_GONE. It must be freed when it has no peeks. */
void unit_leave(struct unit *u);
void unit_free(struct unit *u);

/*
 * Notes that the unit is on its new server, where its item was just seen if `seen`. unit_go_on
 * must follow.
 */
void unit_found(struct unit *u, bool seen, bool moved);

/*
 * Sends the queued calls until one of them needs another result first. Nothing happens while
 * there are peeks.
 */
void unit_go_on(struct unit *u);

/*
 * Queues the call on the unit with this key, which is started if it is new: when moves->at has
 * come, or `at_once`.
 */
void unit_queue(
	struct moves *m, struct moved_call *c, struct slice key, uint64_t hash, bool at_once);

/* Sends a call on a unit that was found. */
void unit_send(struct moved_call *c, enum guard guard);

/* Sends a read to the new server, after the former one has missed. */
void unit_read(struct moved_call *c);

#endif
