/*
 * Room for the memory of requests whose size depends on stored data, not on the request or its
 * reply. Work asks for its bytes before it takes them, and is delayed until they are free. Each
 * account may have `share` bytes, and at least one stay, so one client cannot take all. The
 * accounts that wait take turns.
 *
 *     room_enter -> true: go on
 *                -> false: stay->waiter is called in a slice of the account when it is its turn
 *     room_leave, after which the bytes are free for others
 *
 * A stay must not wait for another one in the same room, or in one that others wait for while
 * they have this one. Then all of them end: a stay that is larger than the room is alone in it.
 */
#ifndef COLLECTION_ROOM_H
#define COLLECTION_ROOM_H

#include "collection/account.h"
#include "protocol/call.h"

struct env;

struct room {
	size_t limit, share; /* Bytes of all accounts together, and of each. */
	size_t used;
	/* Waiting accounts whose next stay is within their share. */
	TAILQ_HEAD(room_queue, room_share) queue;
};

struct rooms {
	struct room of[ROOMS];
};

/* The place of a stay, embedded in the work. Initially all zeroes. */
struct stay {
	TAILQ_ENTRY(stay) link;
	struct waiter waiter; /* Set by the owner. */
	struct account *account;
	struct room *room; /* NULL if it has no bytes and waits for none. */
	size_t bytes;
	bool waits;
};

/* Sets the limit of each room. */
void rooms_init(struct rooms *rooms);
void rooms_set_limit(struct rooms *rooms, size_t bytes);

/*
 * Takes the bytes, or queues the stay and returns false. A host without rooms has no limits.
 */
bool room_enter(struct env *env, enum room_kind kind, struct stay *stay, struct account *account,
	size_t bytes);

/* Returns some of the bytes, or all of them. A stay that waits is no longer queued. */
void room_return(struct env *env, struct stay *stay, size_t bytes);
void room_leave(struct env *env, struct stay *stay);

#endif
