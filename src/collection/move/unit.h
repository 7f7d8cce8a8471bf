/* What moves.c keeps of a unit: its mover, and the calls that wait for it. */
#ifndef COLLECTION_MOVE_UNIT_H
#define COLLECTION_MOVE_UNIT_H

#include <sys/queue.h>

#include "collection/move/mover.h"
#include "collection/move/peek.h"

struct moves;

/* A call that waits, with a copy of its slices; or one whose result is looked at before its waiter gets it. */
struct moved_call {
	STAILQ_ENTRY(moved_call) link;
	struct moves *moves;
	struct call call;
	struct waiter waiter; /* of the call, or of a look at its key */
	struct waiter *asker;
	struct unit *unit; /* whose other calls wait for its result, or NULL */
	enum result_status status;
	struct failure failure; /* an error that may be that of a mark */
	uint64_t number;        /* world.calls when it was received */
	bool part;              /* it was copied from the former server, if it was there */
	bool imitated;          /* the key has an item with the flags of a mark, which is none */
	unsigned tries;         /* that have met a mark, or a write of another client */
	char bytes[];
};

STAILQ_HEAD(moved_calls, moved_call);

struct unit {
	LIST_ENTRY(unit) link;
	struct moves *moves;
	uint64_t hash;
	struct mover mover;
	struct waiter waiter;     /* of a timer, or of a look at its key */
	uint64_t looked;          /* when that was sent, or the first look at both servers: env.now */
	struct moved_calls reads; /* that asked both servers, and must wait after all: they come before the calls */
	struct moved_calls calls;
	uint64_t asked; /* the number of the last call before that look, or before the one that has set `there` */
	size_t peeks;   /* reads that ask both servers: no call goes out before them */
	bool writes;    /* one of the calls may be more than a read */
	bool found;     /* the calls go out, and the mover is not needed any more */
	bool there;     /* its item was seen right now */
	bool failed;    /* it is not in the list any more, and left to its peeks */
	bool marked;    /* a call has met a mark since */
	char key[];
};

/* A read that asks both servers. */
struct moved_peek {
	struct peek peek;
	struct moved_call *call;
	struct unit *unit;
	bool finds; /* nobody else looks for the unit */
};

/* Copies a call. */
struct moved_call *moved_call_keep(struct moves *moves, const struct call *call, struct waiter *asker);

/* Ends a call that was not sent, and frees it. */
void moved_call_refuse(struct moved_call *c, const struct result *why);

/* The same for all calls of a unit. */
void unit_refuse(struct unit *u, const struct result *why);

#endif
