/*
 * Moves one unit from its former server `o` to the new one, `n`. The item on `o` is
 * authoritative as long as it exists. A copy on `n` is marked (mark.h), and becomes
 * authoritative when the item on `o` is deleted, by its cas id: this is the single atomic step.
 *
 *     look at o, and at n
 *         -> missing on o: n is authoritative
 *                 -> there a copy: its mover has not finished; make it the item, as below
 *         -> there
 *     claim: add a claim to n, and read the item on n
 *     read o    -> missing: look again
 *     copy the parts; copy the item, by the cas id of the claim     -> lost: look again
 *     delete o, by the cas id of the read; read n                   -> lost: look again
 *     make the copy the item, by its cas id                         -> lost: read n again
 *     delete the parts on o
 *
 * Any number of proxies may move a unit concurrently. Each reads o after it has read the claim
 * or the copy on n that its own copy replaces. So a copy is never older than the one it
 * replaces, and the copy on n at the time of a successful deletion is a copy of the deleted
 * item. A proxy that was overtaken loses its cas on n. If n has an item without a mark while o
 * has one, a setlistd that still has the old ring wrote to o. Then join.h decides: either both
 * are joined into the item on n, with the time to live of that; or the item on n is kept, and
 * the one on o is deleted.
 *
 * If n has a claim and o has nothing, the claim was late: another proxy moved the item, and it
 * was deleted afterwards. The claim is dropped with everything that was appended to it. A proxy
 * appends only after it has seen an item on n (moves.c), so the append counts as one that took
 * effect right before the deletion.
 */
#ifndef COLLECTION_MOVE_MOVER_H
#define COLLECTION_MOVE_MOVER_H

#include "collection/move/join.h"
#include "collection/move/mark.h"
#include "collection/move/mover_parts.h"
#include "collection/rewrite/cas.h"
#include "protocol/failure.h"

/* What an item was when it was read. */
struct mover_item {
	struct buf value;
	uint64_t cas, connection;
	uint32_t flags;
	int64_t ttl;
};

struct mover {
	struct mover_world *world;
	struct slice key; /* borrowed; the key of all waiters */
	bool knows;       /* n is known to have no mark if o has nothing */
	struct waiter waiter, second, at_n;
	struct cas cas;
	size_t pending;
	void (*next)(struct mover *mover);
	struct mover_item *target;   /* the item that the read in flight fills in, or NULL */
	enum result_status status;   /* status of the last call */
	enum result_status n_status; /* status of the last read of n */
	struct mover_item o, n;
	struct mark mark; /* parsed from n.value */
	struct buf here;  /* the item on n to be joined, without marks */
	int64_t last_ttl; /* time to live on o right before the deletion; 0 if not read */
	struct mover_parts parts;
	struct failure failure;
	unsigned attempts, waits;
	uint64_t number; /* random number in the copies of this mover */
	bool claimed;    /* n had nothing, and this mover has added the claim */
	bool sole;       /* no other mover has written to n since */
	bool bare;       /* the copy would be too large with a mark */
	bool moves;      /* o had the item when last read */
	bool moved;      /* the item on o was deleted */
	/* what becomes of both items; JOIN_FORMER unless n had one that was not a copy */
	enum join join;
	bool dropped;                   /* the item on o was another one, and was dropped */
	struct buf part;                /* key of a part of another mover's copy */
	enum result_status part_status; /* of the read of that part on o */
	uint64_t seen;                  /* cas id of the item on o when that part was there */
	uint64_t fresh; /* cas id of an item on o that is not a later state of the copy on n */
	bool there;     /* n has an item without a mark, as was seen last */
	uint64_t asked; /* world->calls when the call that showed `there` was sent */
	bool imitated;  /* n has an item with the flags of a mark, which is none */
	void (*done)(struct mover *mover);
};

/*
 * Starts a move. `done` is called once, never within this call. mover->failure.happened is set
 * if the move could not be completed because of a server. `mover` must be all zeroes except
 * `world`, `key` and `knows`.
 */
void mover_start(struct mover *mover, void (*done)(struct mover *mover));

/*
 * Called after `done`: deletes the parts on the former server, and calls `done` again when all
 * are deleted. Returns false if there are none; then `done` is not called.
 */
bool mover_clean(struct mover *mover, void (*done)(struct mover *mover));

/* Frees the memory of the mover. */
void mover_fini(struct mover *mover);

#endif
