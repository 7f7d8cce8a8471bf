/*
 * Gets the statistics of the servers: only when a client asks for their sums, and once in POLL_MS for all workers
 * together, so that other requests do not pay for it. A server that is down adds nothing to the sums.
 *
 *     poll_is_due -> poll_wait -> a call to each server -> answered, or POLL_PATIENCE_MS are over -> wait.done
 */
#ifndef WORKER_POLL_H
#define WORKER_POLL_H

#include "client/common.h"
#include "measure/sums.h"
#include "net/loop.h"

struct daemon;
struct generation;
struct meter;
struct poll_part;

enum {
	POLL_MS = 5000,        /* Statistics older than this are fetched again. */
	POLL_PATIENCE_MS = 250 /* Waiting clients get 0 for a server that takes longer. */
};

/* Initially zero except for the first three. */
struct poll {
	struct daemon *daemon;
	struct meter *meter; /* of the worker; holds the sums that it has found */
	struct loop *loop;
	struct generation *generation; /* whose servers are asked; it stays until they have answered */
	struct poll_part *parts;       /* of each server; NULL: none is asked */
	size_t pending;                /* servers that have not answered */
	uint64_t asked;                /* when they were asked: the loop's milliseconds */
	struct sums sums;              /* of those that have answered */
	STAILQ_HEAD(, clients_wait) waiting;
	struct loop_job patience; /* a timer, while clients wait */
	struct loop_job replies;  /* sends some more of them */
	bool is_late; /* The timer has expired: a server is slow, and further clients get the sums without waiting. */
};

void poll_init(struct poll *poll, struct daemon *daemon, struct meter *meter, struct loop *loop);

/* Whether the statistics of all workers are too old, so that a client is to wait for newer ones. */
bool poll_is_due(const struct poll *poll);

/* Asks the servers of the generation, unless they are being asked. `wait` is called later, once; the poll borrows it until then. */
void poll_wait(struct poll *poll, struct generation *generation, struct clients_wait *wait);

#endif
