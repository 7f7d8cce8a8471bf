/*
 * Changes of the pool: a layer between lanes and servers that moves each item to its new server
 * when it is next used. To the layers above, each key has exactly one server.
 *
 *     before the time, less the margin   all keys are where the former ring places them
 *     until the time                     reads try the former server, then the new one; writes
 *                                        of keys that move are queued
 *     from the time on                   a key that moves is moved, and is then where the new
 *                                        ring places it
 *
 * The clocks of proxies may differ by up to the margin. So nothing is written to a former
 * server once any proxy moves keys, except by a proxy that was not reloaded in time, or by a
 * late call. Keys in use are looked up at their former servers once per MOVES_LOOK_MS, in
 * parallel to the call that uses them. An item that is found there is merged with that on the
 * new server. The call itself does not see it yet, but the next ones do.
 *
 * A unit is moved as a whole: the base of a set or list in oplog with its parts, or any
 * other item. See mover.h for how it moves.
 */
#ifndef COLLECTION_MOVE_MOVES_H
#define COLLECTION_MOVE_MOVES_H

#include "collection/move/found.h"
#include "collection/move/mover_world.h"

struct moves;

struct moves_options {
	/*
	 * Sends calls to call->server, which is never CALL_ANY_SERVER. Its clock is used.
	 * Connections to different servers must have different numbers.
	 */
	struct env *env;
	/*
	 * Returns the server of a key, which may be that of a part, by the new ring, and stores
	 * the one by the former ring in `former`. Both rings use the same server numbers.
	 */
	int (*place)(void *arg, struct slice key, int *former);
	void *arg;
	int64_t at;     /* unix time in seconds */
	int64_t margin; /* seconds */
};

/* Borrows what the options point to until moves_destroy, which requires moves_idle. */
struct moves *moves_create(const struct moves_options *options);
void moves_destroy(struct moves *moves);

/* The same as env.call. A call with an explicit server is sent there. */
void moves_call(struct moves *moves, const struct call *call, struct waiter *waiter);

/* Returns true if no call is queued, and no move is in progress. */
bool moves_idle(const struct moves *moves);

const struct moves_stats *moves_statistics(const struct moves *moves);

#endif
