/*
 * Fetches the statistics of the servers: only when a client requests their sums, and at most
 * once in POLL_MS for all workers together, so that other requests do not pay for it. A server
 * that is down adds nothing to the sums.
 *
 *     poll_is_due -> poll_wait -> a call to each server -> all answered or timeout -> wait.done
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
	POLL_MS = 5000, /* Statistics older than this are fetched again. */
	/*
	 * After this time, pending clients get the sums without the servers that have not
	 * answered.
	 */
	POLL_PATIENCE_MS = 250
};

/* The first three members are set by poll_init(); all others are initially zero. */
struct poll {
	struct daemon *daemon;
	struct meter *meter; /* Meter of the worker; stores the sums that were fetched. */
	struct loop *loop;
	/* Generation whose servers are polled; kept until they have answered. */
	struct generation *generation;
	struct poll_part *parts; /* One for each server; NULL if no poll is in progress. */
	size_t pending;          /* Servers that have not answered yet. */
	uint64_t asked;          /* When the poll started, in the loop's milliseconds. */
	struct sums sums;        /* Sums of the answers so far. */
	STAILQ_HEAD(, clients_wait) waiting;
	struct loop_job patience; /* Timer, running while clients are pending. */
	struct loop_job replies;  /* Sends further replies to clients. */
	/* The timer has expired: a server is slow, and further clients get the sums at once. */
	bool is_late;
};

void poll_init(struct poll *poll, struct daemon *daemon, struct meter *meter, struct loop *loop);

/*
 * Returns whether the statistics of all workers are too old, so that a client should wait for
 * newer ones.
 */
bool poll_is_due(const struct poll *poll);

/*
 * Polls the servers of the generation, unless a poll is in progress. `wait` is called back
 * once, later; it is borrowed until then.
 */
void poll_wait(struct poll *poll, struct generation *generation, struct clients_wait *wait);

#endif
