/*
 * A worker's connections to all servers. The ring decides which server gets a call. After a change of the configuration a worker has
 * two of these for a while: servers that both have are shared, with their connections.
 *
 * If keys move from a former ring, there are the servers of both: those of the new ring, then those that only the former one has.
 */
#ifndef UPSTREAM_SERVERS_H
#define UPSTREAM_SERVERS_H

#include "upstream/ring.h"
#include "upstream/server.h"

struct resolver;
struct servers;

struct servers_rings {
	const struct ring *ring;
	const struct ring *former; /* NULL if no keys move */
	const bool *lost;          /* for each server of it, whether it counts as empty; NULL: none does */
	int64_t at;                /* unix time in seconds, from which on the new ring says where keys are */
};

/*
 * Borrows all arguments until servers_free; `random` is a state of random_next(). Servers that are in `before`, too, are those of
 * `before`, which may be NULL, and may be freed first.
 */
struct servers *servers_create(struct loop *loop, struct resolver *resolver, struct servers_rings rings,
	const struct server_options *options, uint64_t *random, const struct servers *before);

/*
 * Closes the connections, which fails all calls. A server that others share stays, unless `all`. Calls that are made afterwards fail at
 * the end of their turn.
 */
void servers_stop(struct servers *servers, bool all);

/* Frees servers that were stopped. All calls must have got their results. */
void servers_free(struct servers *servers);

/*
 * Starts to connect to all that are not shared. `settled` is called once, when the first attempt at each of them has succeeded or
 * failed; this may be within the call.
 */
void servers_start(struct servers *servers, void (*settled)(void *arg), void *arg);

/* Sends a call to call->server, or to the server of its key. As env.call. */
void servers_call(struct servers *servers, const struct call *call, struct waiter *waiter);

/* The index of the server that holds a key. If keys move, the ring of this moment says it. */
int servers_index(struct servers *servers, struct slice key);

/*
 * The index of the server that holds a key by the new ring, and that by the former one. Only if keys move. The former index is
 * servers_count() if that server is lost: calls to it miss, and what they store fails.
 */
int servers_place(struct servers *servers, struct slice key, int *former);

/* As server_has_room. Without room, the job is queued as soon as there is some: one job for each server. */
bool servers_have_room(const struct servers *servers, int index);
void servers_await_room(struct servers *servers, int index, struct loop_job *job);
/* The job is not queued any more. */
void servers_forget_room(struct servers *servers, int index, const struct loop_job *job);

/* Starts to count the latencies of all servers from 0 again. From any thread: see histogram_reset. */
void servers_reset_latencies(struct servers *servers);

/* The number of servers, and one of them. Other threads may read its name, its stats and what told.news points to. */
int servers_count(const struct servers *servers);
const struct server *servers_get(const struct servers *servers, int index);

/* The name of a server, or "lost" for the index of lost servers. */
const char *servers_name(const struct servers *servers, int index);

#endif
