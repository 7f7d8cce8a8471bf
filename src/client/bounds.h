/*
 * What bounds a client: how much memory it takes, and how long it may let others wait for a place or for memory.
 *
 *     memory      all clients together take client_memory; above it those that take most are closed
 *     time        a request that was begun, replies that nobody takes, a client that says nothing
 *
 * A client stands in up to two lists of its worker: of those that take about as much memory, and of those that the worker's timer
 * looks after.
 */
#ifndef CLIENT_BOUNDS_H
#define CLIENT_BOUNDS_H

#include "client/client.h"

enum { LIMITS_AFTER_READ = 16 * 1024, LIMITS_WITHIN_TURN = 256 * 1024 };

void limits_init(struct worker *worker);
void limits_fini(struct worker *worker);

/* Of one client: once it stands among the worker's, and once it does no longer. */
void limits_open(struct client *client);
void limits_close(struct client *client);

/* It sent or took something. */
void limits_active(struct client *client);

/* Says whether a part of a request waits for its rest. Its time begins now if `restart`, else with the first part. */
void limits_unfinished(struct client *client, bool is_unfinished, bool restart);

/* Something waits to be written where nothing did. */
void limits_waits(struct client *client);

/* What it takes may have changed, and `more` bytes are about to come on top. */
void limits_weigh(struct client *client, size_t more);

/* Whether it takes so much more than when it was last weighed that this cannot wait until something is written. */
static inline bool limits_have_grown(const struct client *client, size_t by)
{
	return stream_memory(&client->stream) + client->asked + client->spilled > client->limits.held + by;
}

/* Throws away what still comes from it, for a time. */
void limits_linger(struct client *client);

/* The worker has new settings. */
void limits_renew(struct worker *worker);

/* Closes clients until all together take no more than they may. */
void limits_reclaim(struct worker *worker);

/* Closes a client that is not authenticated, or with replace_idle one that is idle, whichever is so longest; false if none is. */
bool limits_replace(struct worker *worker);

/*
 * How near a client of the worker is to losing its place to a new one: less is nearer. First come those that are not authenticated,
 * then those that have been silent longest. From any thread.
 */
uint64_t limits_oldest(const struct worker *worker);

/* Whether any client of the worker is not authenticated. From any thread. */
bool limits_has_stranger(const struct worker *worker);

/* The client is authenticated. */
void limits_authenticated(struct client *client);

#endif
