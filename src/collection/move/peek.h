/*
 * Reads an item that may have moved, without waiting for the move: sends the read to its former
 * server and the new one in parallel. The item on the former server is authoritative as long as
 * it exists; see mover.h.
 */
#ifndef COLLECTION_MOVE_PEEK_H
#define COLLECTION_MOVE_PEEK_H

#include "collection/move/mover.h"

enum peek_place {
	PEEK_FORMER,  /* the former server has it */
	PEEK_HERE,    /* only the new one has it */
	PEEK_NOWHERE, /* neither has it, unless it was moved between the two replies */
	PEEK_UNCLEAR, /* it is being moved, or both have it */
	PEEK_FAILED
};

struct peek {
	struct slice key; /* borrowed */
	struct waiter former, here;
	bool is_part;      /* a part, which never changes, so both may have it */
	bool has_value;    /* the results include values */
	bool has_one;      /* one of the two results has arrived */
	struct result one; /* the first result, without its line */
	struct buf value;  /* value of the first result */
	struct failure failure;
	void (*done)(struct peek *peek, enum peek_place place, const struct result *r);
};

/*
 * Sends a GET, of a base or another item, or of a part of one that moves. `done` is called
 * once, never within this call. Its result is the item of PEEK_FORMER or PEEK_HERE, or the
 * failure; valid until `done` returns. The slices of the call other than its key are
 * borrowed until the return.
 */
void peek_start(struct peek *peek, struct mover_world *world, const struct call *call, bool is_part,
	void (*done)(struct peek *peek, enum peek_place place, const struct result *r));

/* Frees the memory of the peek. */
void peek_fini(struct peek *peek);

#endif
