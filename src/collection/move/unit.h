/* The state of a unit in moves.c: its mover and its queued calls. */
#ifndef COLLECTION_MOVE_UNIT_H
#define COLLECTION_MOVE_UNIT_H

#include <sys/queue.h>

#include "collection/move/mover.h"
#include "collection/move/peek.h"

struct moves;

/*
 * A queued call, with a copy of its slices; or a call in flight whose result is checked
 * before it is passed on.
 */
struct moved_call {
	STAILQ_ENTRY(moved_call) link;
	struct moves *moves;
	struct call call;
	struct waiter waiter; /* of the call, or of a lookup of its key */
	struct waiter *asker;
	/* The unit whose queue is blocked until this call has a result, or NULL. */
	struct unit *unit;
	enum result_status status;
	struct failure failure; /* an error that a mark may have caused */
	uint64_t number;        /* world.calls when the call was queued */
	bool part;              /* the part was copied from the former server, if it was there */
	/* The key has an item with the flags of a mark that is not a mark. */
	bool imitated;
	unsigned tries; /* attempts that met a mark, or a write of another client */
	char bytes[];
};

STAILQ_HEAD(moved_calls, moved_call);

struct unit {
	LIST_ENTRY(unit) link;
	struct moves *moves;
	uint64_t hash;
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
	uint64_t former; /* number of the last call before the lookup at its former server */
	/* Number of the last call before that lookup, or before the one that set `there`. */
	uint64_t asked;
	size_t peeks; /* reads of both servers in flight; no call is sent until they are answered */
	bool writes;  /* one of the calls may be more than a read */
	bool found;   /* the calls are being sent; the mover is no longer needed */
	bool there;   /* its item was seen just now */
	bool failed;  /* The unit was removed from the list; the end of its last peek frees it. */
	bool marked;  /* a call has met a mark since */
	char key[];
};

/* A read that is sent to both servers. */
struct moved_peek {
	struct peek peek;
	struct moved_call *call;
	struct unit *unit;
	bool finds; /* Only this read decides where the unit is. */
};

/* Copies a call. */
struct moved_call *moved_call_keep(struct moves *moves, const struct call *call, struct waiter *asker);

/* Ends a call that was not sent with the result `why`, and frees it. */
void moved_call_refuse(struct moved_call *c, const struct result *why);

/* The same for all queued calls of a unit. */
void unit_refuse(struct unit *u, const struct result *why);

#endif
