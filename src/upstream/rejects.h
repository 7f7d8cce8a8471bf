/* Calls that are not sent. Their waiters get the failure at the end of the turn, since none may get it within the call. */
#ifndef UPSTREAM_REJECTS_H
#define UPSTREAM_REJECTS_H

#include "net/loop.h"
#include "protocol/call.h"

struct reject;

struct rejects {
	struct loop *loop;
	const char *server; /* its name, for the results */
	struct reject *list;
	size_t count, capacity;
	struct loop_job job;
};

/* Borrows both until the last one has run. */
void rejects_init(struct rejects *rejects, struct loop *loop, const char *server);

/* Borrows the waiter until it gets this status. */
void rejects_add(struct rejects *rejects, struct waiter *waiter, enum result_status status);

/* Gives all their failures now; these may add new ones. Gives whether there were any. */
bool rejects_run(struct rejects *rejects);

#endif
