/* The state of a unit in moves.c: its mover and its queued calls. */
#ifndef COLLECTION_MOVE_UNIT_H
#define COLLECTION_MOVE_UNIT_H

#include <sys/queue.h>

#include "collection/move/mover.h"
#include "collection/move/peek.h"

struct moves;

/* A queued call, with a copy of its slices; or a call whose result is checked before its waiter gets it. */
struct moved_call {
	STAILQ_ENTRY(moved_call) link;
	struct moves *moves;
	struct call call;
	struct waiter waiter; /* of the call, or of a look at its key */
	struct waiter *asker;
	struct unit *unit; /* The unit whose queue is blocked until this call has a result, or NULL. */
	enum result_status status;
	struct failure failure; /* an error that a mark may have caused */
	uint64_t number;        /* world.calls when it was received */
	bool part;              /* it was copied from the former server, if it was there */
	bool imitated;          /* the key has an item with the flags of a mark, which is none */
	unsigned tries;         /* attempts that met a mark, or a write of another client */
	char bytes[];
};

STAILQ_HEAD(moved_calls, moved_call);

struct unit {
	LIST_ENTRY(unit) link;
	struct moves *moves;
	uint64_t hash;
	struct mover mover;
	struct waiter waiter; /* of a timer, or of a look at its key */
	uint64_t looked;      /* env.now when that look was sent, or the first look at both servers */
	/* Reads that were sent to both servers and could not be answered yet. They precede `calls`. */
	struct moved_calls reads;
	struct moved_calls calls;
	uint64_t former; /* the number of the last call before the look at its former server */
	uint64_t asked;  /* the number of the last call before that look, or before the one that has set `there` */
	size_t peeks;    /* reads under way to both servers; no call is sent until they are answered */
	bool writes;     /* one of the calls may be more than a read */
	bool found;      /* the calls are sent; the mover is not needed any more */
	bool there;      /* its item was just seen */
	bool failed;     /* it is not in the list any more; the end of its last peek frees it */
	bool marked;     /* a call has met a mark since */
	char key[];
};

/* A read that is sent to both servers. */
struct moved_peek {
	struct peek peek;
	struct moved_call *call;
	struct unit *unit;
	bool finds; /* This read alone decides where the unit is. */
};

/* Copies a call. */
struct moved_call *moved_call_keep(struct moves *moves, const struct call *call, struct waiter *asker);

/* Ends a call that was not sent, and frees it. */
void moved_call_refuse(struct moved_call *c, const struct result *why);

/* The same for all calls of a unit. */
void unit_refuse(struct unit *u, const struct result *why);

#endif
