/*
 * Asks the servers for their statistics: only when a client asks for sums of them, and once in POLL_MS for all workers together, so that
 * requests do not pay for it. A server that is down counts nothing.
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
struct poll_part;

enum {
	POLL_MS = 5000, /* the age of statistics that are still told */
	POLL_PATIENCE_MS =
		250 /* a server that takes longer counts nothing for the clients that wait: it may be stuck */
};

/* All zeroes but `daemon` and `loop` at first. */
struct poll {
	struct daemon *daemon;
	struct loop *loop;
	struct generation *generation; /* whose servers are asked; it stays until they have answered */
	struct poll_part *parts;       /* of each server; NULL: none is asked */
	size_t pending;                /* servers that have not answered */
	struct sums sums;              /* of those that have */
	STAILQ_HEAD(, clients_wait) waiting;
	struct loop_job patience; /* a timer, while clients wait */
	bool is_late;             /* it has run: some server is slow, and no more clients wait */
};

void poll_init(struct poll *poll, struct daemon *daemon, struct loop *loop);

/* Whether the statistics in the meter are too old, and a client is to wait for newer ones. */
bool poll_is_due(const struct poll *poll);

/* Asks the servers of the generation, unless they are being asked. `wait` is called later, once; the poll borrows it until then. */
void poll_wait(struct poll *poll, struct generation *generation, struct clients_wait *wait);

#endif
