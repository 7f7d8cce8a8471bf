/*
 * The pool changes: between lanes and servers, moves each item whose server the new ring has changed when it is next used. For all that is
 * above, there is one server for each key.
 *
 *     before the time, less the margin    all keys are where the former ring says
 *     until the time                      reads ask the former server, then the new one; writes of keys that move wait
 *     from the time on                    a key that moves is moved, and then it is where the new ring says
 *
 * The clocks of proxies may differ by up to the margin. So nothing is written to a former server once anybody moves, except by a proxy
 * that was not reloaded in time, or a call that was late. Keys that are used are looked for at their former servers once in
 * MOVES_LOOK_MS, beside the call that uses them. An item that is found there is merged with that on the new server. The call itself does
 * not see it yet; the next ones do.
 *
 * A unit is what moves together: the base of a set or list in oplog with its parts, or any other item. See mover.h for how it moves.
 */
#ifndef COLLECTION_MOVE_MOVES_H
#define COLLECTION_MOVE_MOVES_H

#include "collection/move/found.h"
#include "collection/move/mover_world.h"

struct moves;

struct moves_options {
	/* Sends calls to call->server, and never CALL_ANY_SERVER. Its clock decides. Connections to two servers differ in their numbers. */
	struct env *env;
	/* The server of a key, which may be that of a part, by the new ring, and by the former one. Both number the servers alike. */
	int (*place)(void *arg, struct slice key, int *former);
	void *arg;
	int64_t at;     /* unix time in seconds */
	int64_t margin; /* seconds */
};

/* Borrows what the options point to until moves_destroy, which requires moves_idle. */
struct moves *moves_create(const struct moves_options *options);
void moves_destroy(struct moves *moves);

/* As env.call. A call with a server of its own goes there. */
void moves_call(struct moves *moves, const struct call *call, struct waiter *waiter);

/* True if no call waits, and no move is under way. */
bool moves_idle(const struct moves *moves);

const struct moves_stats *moves_statistics(const struct moves *moves);

#endif
