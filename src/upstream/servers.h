/*
 * A worker's connections to all servers. The ring determines the server of each call. After a
 * change of the configuration a worker has two of these for a while; servers that both have are
 * shared, with their connections.
 *
 * If keys move from a former ring, this has the servers of both rings: first all servers of the
 * new ring, then the other servers of the former one.
 */
#ifndef UPSTREAM_SERVERS_H
#define UPSTREAM_SERVERS_H

#include "upstream/ring.h"
#include "upstream/server.h"

struct resolver;
struct servers;

struct servers_rings {
	const struct ring *ring;
	const struct ring *former; /* NULL if no keys move. */
	/* For each server of `former`, whether it counts as empty; NULL if none does. */
	const bool *lost;
	int64_t at; /* Unix time in seconds, from which on the new ring is used. */
};

/*
 * Creates the servers of the rings. Borrows all arguments until servers_free(); `random` is a
 * state of random_next(). Servers that `before` has too are shared with it. `before` may be
 * NULL, and may be freed first.
 */
struct servers *servers_create(struct loop *loop, struct resolver *resolver,
	struct servers_rings rings, const struct server_options *options, uint64_t *random,
	const struct servers *before);

/*
 * Closes the connections, which fails all calls. Servers that are shared stay connected, unless
 * `all` is set. Later calls fail at the end of their turn.
 */
void servers_stop(struct servers *servers, bool all);

/* Frees stopped servers. The results of all calls must have been delivered. */
void servers_free(struct servers *servers);

/*
 * Starts to connect to all servers that are not shared. `tried` is called once, when the
 * first attempt at each of them has succeeded or failed; possibly within this call.
 */
void servers_start(struct servers *servers, void (*tried)(void *arg), void *arg);

/* Sends a call to call->server, or to the server of its key. As env.call. */
void servers_call(struct servers *servers, const struct call *call, struct waiter *waiter);

/*
 * Keeps `share` up to date until servers_free(): the number of calls that one client may have
 * in flight, from 1 to `most`, so that others find room in the fullest queue. servers_turn(),
 * called once per turn, takes into account the calls that were answered.
 */
void servers_share(struct servers *servers, size_t *share, size_t most);
void servers_turn(struct servers *servers);

/*
 * Returns the index of the server that holds a key. If keys move, the current time determines
 * which ring is used.
 */
int servers_index(struct servers *servers, struct slice key);

/* Returns the clock of a key's server, in seconds since 1970; 0 if it is unknown. */
int64_t servers_time(struct servers *servers, struct slice key);

/*
 * Returns the index of a key's server on the new ring, and stores that on the former ring in
 * `former`. Only if keys move. The former index is servers_count() if that server is lost:
 * reads of it miss, and writes to it fail.
 */
int servers_place(struct servers *servers, struct slice key, int *former);

/*
 * servers_have_room() is as server_has_room(). Without room, servers_await_room() registers a
 * job that is queued as soon as there is some; one job for each server.
 */
bool servers_have_room(const struct servers *servers, int index);
void servers_await_room(struct servers *servers, int index, struct loop_job *job);
/* Cancels servers_await_room(). */
void servers_forget_room(struct servers *servers, int index, const struct loop_job *job);

/*
 * Restarts the latencies of all servers at 0. May be called from any thread; see
 * histogram_reset().
 */
void servers_reset_latencies(struct servers *servers);

/*
 * Return the number of servers, and one of them. Other threads may read its name, its stats,
 * and the entry to which told.news points.
 */
int servers_count(const struct servers *servers);
const struct server *servers_get(const struct servers *servers, int index);

/* Sets server_stats.absent of a server. */
void servers_mark_absent(struct servers *servers, int index, bool absent);

/* Returns the name of a server, or "lost" for the index of lost servers. */
const char *servers_name(const struct servers *servers, int index);

#endif
