/*
 * Calls that are queued for a server until it has room, when their order does not matter. Each
 * client has a queue of its own, and the queues take turns, so a client with thousands of calls
 * does not delay the few of another one. Background work has one queue.
 *
 *     add -> queue of the account -> take, a turn of CALL_TURNS_WORTH for each account
 *
 * The bytes of a queued call count for its account.
 */
#ifndef UPSTREAM_CALL_TURNS_H
#define UPSTREAM_CALL_TURNS_H

#include <stdbool.h>
#include <stddef.h>

#include "collection/account.h"
#include "protocol/call.h"
#include "util/turns.h"

/* A turn is worth so many bytes. A call costs CALL_TURNS_COST, and the bytes that it expects. */
enum { CALL_TURNS_COST = 1024, CALL_TURNS_WORTH = 64 * CALL_TURNS_COST };

struct call_turn;

struct call_turns {
	struct turns turns;
	struct call_turn *current; /* The queue that has its turn; NULL: none. */
	size_t count;              /* Number of queued calls. */
	size_t background;         /* Number of queued background calls. */
	struct account own;        /* Stands for background work. */
};

void call_turns_init(struct call_turns *turns);

/*
 * Queues a call whose key is that of the waiter, and which has no other slices. Its account, if
 * any, must stay valid until the call is taken.
 */
void call_turns_add(struct call_turns *turns, const struct call *call, struct waiter *waiter);

/* Removes the next call and returns its waiter. Requires that a call is queued. */
struct waiter *call_turns_take(struct call_turns *turns, struct call *call);

#endif
