/* A worker thread: its loop, its clients, its connections to the servers, its lanes. Workers share nothing that changes. */
#ifndef WORKER_H
#define WORKER_H

#include "balance.h"
#include "command/host.h"
#include "daemon.h"
#include "deferred.h"
#include "net/loop.h"
#include "upstream/servers.h"

struct client;

struct worker {
	struct host host; /* what the pure layers know of this worker; first, so that one is the other */
	struct daemon *daemon;
	struct loop loop;
	struct pool pool;
	struct server_options server_options;
	struct collection_options collection_options;
	struct servers *servers;
	TAILQ_HEAD(, client) clients;
	struct buf trash; /* replies that nobody wants */
	struct deferred deferred;
	struct balance balance;
	uint64_t asked; /* bytes that clients had sent when work in slices last rested */
	bool draining;
	uint64_t drain_until; /* when what is left is cut off */
	int mailbox[2];       /* a pipe of ints: an accepted socket, or one of the words below */
	struct event mail, deadline;
	pthread_t thread;
	atomic_uint_fast64_t counters[COUNTERS];
};

enum { WORKER_DRAIN = -1, WORKER_STOP = -2 };

/* Starts the thread. `daemon` is borrowed until worker_join. */
struct worker *worker_start(struct daemon *daemon, uint64_t seed);

/* Sends a socket, which the worker owns from then on, or a word. From any thread. */
void worker_send(struct worker *worker, int message);

/* Waits until the thread has ended and frees all. */
void worker_join(struct worker *worker);

/* Adds to a counter. From the worker's own thread only. */
static inline void worker_count(struct worker *worker, enum counter counter, uint64_t n)
{
	atomic_uint_fast64_t *c = &worker->counters[counter];

	/* One writer: no locked instruction is needed. */
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

/* For clients: one has gone. */
void worker_client_gone(struct worker *worker);

#endif
