/*
 * The servers as moves see them: by the former ring and by the new one. For lanes and machines
 * that call a server by env.call, each of both is an env of its own.
 */
#ifndef COLLECTION_MOVE_MOVER_WORLD_H
#define COLLECTION_MOVE_MOVER_WORLD_H

#include "collection/env.h"

struct mover_world;

/* Totals since moves_create. */
struct moves_stats {
	/* units that were found at their former server, and are not there any more */
	uint64_t moved;
	uint64_t
		merged; /* of these, units of which both servers had something, which were joined */
	/* of these, units of which the new server had another item, which stayed */
	uint64_t dropped;
	uint64_t waited; /* calls that waited for the time */
	uint64_t failed; /* moves that a server did not let end */
};

/*
 * The world, with one of the two rings: a call with CALL_ANY_SERVER goes to the key's server by
 * it.
 */
struct mover_side {
	struct env env;
	struct mover_world *world;
	bool former;
	bool copies; /* GET and STATS go to the former server, all else to the new one */
};

struct mover_world {
	struct env *env; /* sends calls to call->server */
	int (*place)(void *arg, struct slice key, int *former);
	void *arg;
	uint64_t calls; /* the number of calls that were queued so far */
	size_t busy;    /* units, and kept calls that were sent */
	struct moves_stats stats;
	struct mover_side from, to, copy;
};

/* Sets up all fields except `env`, `place` and `arg`. `world` is all zeroes except these. */
void mover_world_init(struct mover_world *world);

/* The server of a key by the former ring, or by the new one. */
static inline int mover_place(const struct mover_world *world, struct slice key, bool former)
{
	int before, here = world->place(world->arg, key, &before);

	return former ? before : here;
}

/* Whether both rings have the key on different servers. */
static inline bool mover_moves(const struct mover_world *world, struct slice key)
{
	int before;

	return world->place(world->arg, key, &before) != before;
}

/*
 * The unit of a key that moves: its base, if that moves, else the key itself. Empty if neither
 * moves. Borrows from the key.
 */
struct slice mover_unit(const struct mover_world *world, struct slice key);

/*
 * Sends a call to a server. A key with spaces or control bytes goes in base64; then a TOUCH
 * becomes a GAT.
 */
void mover_send(const struct mover_world *world, const struct call *call, struct waiter *waiter,
	int server);

/* The env of a side, with the clock of the world. It is valid until the world's clock changes. */
struct env *mover_env(struct mover_side *side);

#endif
