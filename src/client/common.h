/* All clients of a worker have this in common. */
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

/* Of all clients of the daemon. Any thread may read it. */
struct clients_total {
	atomic_int connections; /* accepted and open; the thread that accepts one counts it */
	atomic_size_t bytes;    /* that they hold */
};

/* A command that waits for the statistics of the servers. */
struct clients_wait {
	STAILQ_ENTRY(clients_wait) link;
	void (*done)(struct clients_wait *wait);
};

/* The worker does this for its clients. `arg` is clients.arg. */
struct clients_ops {
	/*
	 * Carries out a PROXY_COMMAND of commands.def. Returns its reply, or the last part of it: `text` is the lines before, or
	 * holds the bytes of the reply.
	 */
	struct reply (*command)(void *arg, const struct request *request, struct buf *text);
	/* Whether the statistics of the servers are too old. */
	bool (*must_wait)(void *arg);
	/* Gets newer ones: wait->done is called later, once. */
	void (*await)(void *arg, struct clients_wait *wait);
	/* A client was closed, or a task without a client is done: the worker may have nothing left to do. */
	void (*idle)(void *arg);
	/* All clients of the daemon hold too much. Gives false if none holds as much as the largest one here; else asks its worker. */
	bool (*reclaim)(void *arg);
	/* Takes the socket of a client that was handed over, and its session or NULL. `to` is that of clients_hand_over. */
	void (*move)(void *to, int fd, struct tls *tls);
};

struct clients {
	struct loop *loop;
	struct meter *meter;
	struct clients_total *total;
	const struct clients_ops *ops;
	void *arg;
	const struct config *config;         /* the latest */
	struct generation *generation;       /* in which new requests begin */
	TAILQ_HEAD(client_list, client) all; /* in the order in which they last sent something, to a second */
	TAILQ_HEAD(, client_auth) strangers; /* those that are not authenticated, the oldest first */
	struct bounds *bounds;               /* see bounds.h */
	struct server_turns *turns;          /* of each server of the generation; see turns.h */
	size_t first_value; /* a moving average of the size of the first value of each client, in bytes; see window.h */
	struct account_list changed; /* accounts of clients, for clients_settle */
	size_t gone;      /* bytes of clients that were closed, since memory was last returned to the system */
	struct buf trash; /* for replies that are discarded */
	struct {
		struct buf at[CLIENTS_SPILLS];
		size_t count;
	} spills; /* empty buffers for short replies that wait for earlier ones */
	bool draining;
	/* For any thread: the rank of the client that holds most; as clients_oldest. */
	atomic_uint highest;
	atomic_uint_fast64_t oldest;
};

#endif
