/*
 * The parts of a base that moves: copied before the base refers to them on its new server, and
 * deleted when the base is gone.
 */
#ifndef COLLECTION_MOVE_MOVER_PARTS_H
#define COLLECTION_MOVE_MOVER_PARTS_H

#include "collection/move/mover_world.h"
#include "protocol/failure.h"

struct mover_parts {
	struct mover_world *world;
	struct slice key;        /* of the base; borrowed */
	struct failure *failure; /* keeps the first failure, which ends the copying */
	int64_t exptime;         /* of the base */
	struct buf ids;          /* of all parts that are known, each followed by a space */
	size_t next, pending;    /* bytes of `ids` that were begun; parts under way */
	struct buf
		own; /* the parts of the item on n that are read to join both, in the same form */
	size_t next_own; /* bytes of `own` that were begun */
	bool reads_own;  /* the parts in `ids` are done */
	bool drops, deletes;
	struct buf *former, *here;
	void (*done)(struct mover_parts *parts);
};

/*
 * Copies all parts of the base `former` to the new server, or none if it is to be dropped
 * (`drops`): then only their ids are found. If `here` is not NULL, it is the base that is joined
 * with `former`, and join_drop_words is called for both with each table that join.h needs.
 * `done` is called once, perhaps within this call.
 */
void mover_parts_copy(struct mover_parts *parts, struct buf *former, struct buf *here, bool drops,
	void (*done)(struct mover_parts *parts));

/*
 * Deletes the parts on the former server that were found. False if there are none; then `done`
 * is not called.
 */
bool mover_parts_delete(struct mover_parts *parts, void (*done)(struct mover_parts *parts));

/* Frees what the struct holds. */
void mover_parts_fini(struct mover_parts *parts);

#endif
