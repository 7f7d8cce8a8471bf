/*
 * Moves one unit from its former server `o` to the new one, `n`. The item on `o` is the truth as long as it is there. A copy on `n` is
 * marked (mark.h), and becomes the truth when the item on `o` is deleted, by its cas id: the one atomic step.
 *
 *     look at o, and at n -> missing on o: the truth is on n
 *                                 -> there a copy: its mover has not finished; make it the item, as below
 *                         -> there
 *     claim: add a claim to n, and read what n has
 *     read o    -> missing: look again
 *     copy the parts; copy the item, by the cas id of the claim     -> lost: look again
 *     delete o, by the cas id of the read; read n                   -> lost: look again
 *     make the copy the item, by its cas id                         -> lost: read n again
 *     delete the parts on o
 *
 * Any number of proxies may move a unit at once. Each reads o after it has read the claim or the copy on n that its own copy replaces. So
 * a copy is never older than what it replaces, and what n has when the deletion succeeds is what was deleted. A proxy that was
 * overtaken loses its cas on n. If n has an item without a mark while o has one, a setlistd that does not know the new ring wrote to o.
 * Then join.h decides: both are joined into the item on n, with the time to live of that; or n keeps what it has, and o's is deleted.
 *
 * If n has a claim and o has nothing, the claim was late: the item was moved by another proxy, and deleted. The claim is dropped with
 * everything that was appended to it. A proxy appends only after it has seen an item on n (moves.c), so the append counts as one that
 * took effect right before the deletion.
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
	bool knows;       /* that n has no mark, if o has nothing */
	struct waiter waiter, second, at_n;
	struct cas cas;
	size_t pending;
	void (*next)(struct mover *mover);
	struct mover_item *target;   /* what the read under way fills in, or NULL */
	enum result_status status;   /* of the last call */
	enum result_status n_status; /* of the last read of n */
	struct mover_item o, n;
	struct mark mark; /* of n.value */
	struct buf here;  /* the item on n that is joined, without marks */
	int64_t last_ttl; /* of the item on o, right before its deletion; 0 if it was not read */
	struct mover_parts parts;
	struct failure failure;
	unsigned attempts, waits;
	uint64_t number; /* random: its copies have it */
	bool claimed;    /* by this mover: n had nothing before */
	bool sole;       /* no other mover has written to n since */
	bool bare;       /* with a mark the copy is too large */
	bool moves;      /* o has the item, as was seen last */
	bool moved;      /* the item on o was deleted */
	enum join join;  /* what becomes of both items; JOIN_FORMER unless n had one that was not a copy */
	bool dropped;    /* the item on o was another one, and was dropped */
	bool there;      /* n has an item without a mark, as was seen last */
	uint64_t asked;  /* world->calls when the call that showed `there` was sent */
	bool imitated;   /* n has an item with the flags of a mark, which is none */
	void (*done)(struct mover *mover);
};

/*
 * Starts: `done` is called once, never within this call. If mover->failure.happened, a server did not let it come to an end. `mover`
 * is all zeroes except `world`, `key` and `knows`.
 */
void mover_start(struct mover *mover, void (*done)(struct mover *mover));

/*
 * Behind `done`: deletes the parts on the former server, and calls `done` again when all are. False if there are none; then `done` is
 * not called.
 */
bool mover_clean(struct mover *mover, void (*done)(struct mover *mover));

/* Frees what the mover holds. */
void mover_fini(struct mover *mover);

#endif
