/* State that all clients of a worker share. */
#ifndef CLIENT_COMMON_H
#define CLIENT_COMMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "collection/account.h"
#include "protocol/reply.h"

struct bounds;
struct config;
struct generation;
struct loop;
struct meter;
struct request;
struct server_turns;
struct tls;

enum { CLIENTS_SPILLS = 64 };

/* Totals of all clients of the daemon, readable by any thread. */
struct clients_total {
	atomic_int connections; /* Accepted and open; counted by the accepting thread. */
	atomic_size_t bytes;    /* Bytes that they hold. */
};

/* A command that waits for the statistics of the servers. */
struct clients_wait {
	STAILQ_ENTRY(clients_wait) link;
	void (*done)(struct clients_wait *wait);
};

/* Functions that the worker provides for its clients. `arg` is clients.arg. */
struct clients_ops {
	/*
	 * Carries out a PROXY_COMMAND of commands.def. Returns its reply, or the last part of
	 * it. `text` receives the preceding lines, or the bytes of the reply.
	 */
	struct reply (*command)(void *arg, const struct request *request, struct buf *text);
	/* Returns whether the statistics of the servers are too old. */
	bool (*must_wait)(void *arg);
	/* Fetches newer statistics: wait->done is called later, once. */
	void (*await)(void *arg, struct clients_wait *wait);
	/*
	 * Called when a client was closed, or a task without a client is done. The worker may
	 * have become idle.
	 */
	void (*idle)(void *arg);
	/*
	 * Called when all clients of the daemon hold too much. Returns false if no other
	 * worker's client holds as much as the largest one here; else makes that worker reclaim
	 * memory.
	 */
	bool (*reclaim)(void *arg);
	/*
	 * Takes ownership of the socket of a client that was handed over, and its session or
	 * NULL. `to` is that of clients_hand_over.
	 */
	void (*hand_over)(void *to, int fd, struct tls *tls);
};

struct clients {
	struct loop *loop;
	struct meter *meter;
	struct clients_total *total;
	const struct clients_ops *ops;
	void *arg;
	const struct config *config;   /* The latest configuration. */
	struct generation *generation; /* The generation of new requests. */
	/* Ordered by the time when they last sent something, to a second. */
	TAILQ_HEAD(client_list, client) all;
	TAILQ_HEAD(, client_auth) strangers; /* Unauthenticated clients, the oldest first. */
	struct bounds *bounds;               /* See bounds.h. */
	struct server_turns *turns;          /* For each server of the generation; see turns.h. */
	/*
	 * A moving average of the size of the first value of each client, in bytes; see
	 * window.h.
	 */
	size_t first_value;
	struct account_list changed; /* Accounts of clients, for clients_end_turn. */
	/* Bytes of closed clients since memory was last returned to the system. */
	size_t gone;
	struct buf trash; /* Receives discarded replies. */
	struct {
		struct buf at[CLIENTS_SPILLS];
		size_t count;
		/*
		 * Empty buffers for short replies that are held back until earlier ones are
		 * complete.
		 */
	} spills;
	bool draining;
	/* For any thread: the rank of the largest client; the result of clients_oldest. */
	atomic_uint highest;
	atomic_uint_fast64_t oldest;
};

#endif
