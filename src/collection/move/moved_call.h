/* A call on a key that moves, kept until it has a result. */
#ifndef COLLECTION_MOVE_MOVED_CALL_H
#define COLLECTION_MOVE_MOVED_CALL_H

#include <sys/queue.h>

#include "collection/move/mover.h"

struct moves;
struct unit;
struct moved_call;

/* What the result of a call shows: see guard.h. */
enum verdict {
	VERDICT_DONE,   /* the result is true */
	VERDICT_AGAIN,  /* the item has changed meanwhile: the call has to be sent again */
	VERDICT_MARKED, /* the key has a mark: its unit has to be moved first */
};

typedef void moved_call_judged(struct moved_call *c, enum verdict verdict, const struct result *r);

struct moved_call {
	STAILQ_ENTRY(moved_call) link;
	struct moves *moves;
	struct mover_world *world;
	struct call call;     /* with copies of its slices */
	struct waiter waiter; /* of the call, or of a look at its key */
	struct waiter *asker; /* receives the result; NULL for none */
	struct unit
		*unit; /* the unit whose queue is blocked until this call has a result, or NULL */
	moved_call_judged *judged;
	enum result_status status; /* of the call while its key is looked at */
	struct failure failure;    /* an error that a mark may have caused */
	uint64_t number;           /* world->calls when it was received */
	bool part;                 /* a part, which was looked for on the former server */
	bool imitated;             /* the key has an item with the flags of a mark that is none */
	unsigned tries;            /* attempts that met a mark, or a write of another client */
	char bytes[];
};

STAILQ_HEAD(moved_calls, moved_call);

/*
 * Copies a call and its slices, and numbers it. The caller owns the result until the call ends. All
 * that is sent for the call is answered before, so its account is still valid.
 */
struct moved_call *moved_call_keep(struct moves *moves, struct mover_world *world,
	const struct call *call, struct waiter *asker);

/*
 * Sends `call` for a kept call, to the server by the former ring or by the new one. `done`
 * receives `c->waiter`, and must call moved_call_received first.
 */
void moved_call_send(struct moved_call *c, const struct call *call, bool former,
	void (*done)(struct waiter *waiter, const struct result *r));

/* The kept call of a waiter that moved_call_send has set. */
struct moved_call *moved_call_received(struct waiter *waiter);

/* Frees the call, and passes the result to its asker. */
void moved_call_end(struct moved_call *c, const struct result *r);

/*
 * Ends a call that was not sent: its asker receives the failure, without a doubt about the
 * outcome.
 */
void moved_call_refuse(struct moved_call *c, const struct result *why);

/* The same for all calls of a queue. */
void moved_calls_refuse(struct moved_calls *calls, const struct result *why);

#endif
