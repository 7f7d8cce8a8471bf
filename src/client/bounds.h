/*
 * The memory and the time that a client takes, and how it compares with the other clients of the worker. clients.c closes clients
 * that take too much.
 *
 *     memory      clients are ranked by the bytes that they hold, so that the largest one is found at once
 *     time        since when a client is silent, does not take its replies, or leaves a request incomplete
 *
 * A client is in up to three lists: of all clients; of those that hold about as many bytes; and of those that a timer checks.
 */
#ifndef CLIENT_BOUNDS_H
#define CLIENT_BOUNDS_H

#include "client/window.h"

/*
 * At each tick, `check` is called for all clients that may have to be closed, and `tick` behind them. `reclaim` is called at the end of
 * a turn in which all clients of the daemon came to hold more than client_memory.
 */
struct bounds_ops {
	void (*check)(struct client *client);
	void (*tick)(struct clients *clients);
	void (*reclaim)(struct clients *clients);
};

void bounds_init(struct clients *clients, const struct bounds_ops *ops);
void bounds_fini(struct clients *clients);

/* There is a new configuration. */
void bounds_renew(struct clients *clients);

/* A client is opened; is closed. */
void bounds_open(struct client *client);
void bounds_close(struct client *client);

/* Has the client checked at the next tick. */
void bounds_check(struct client *client);

/* Bytes that the client takes. */
static inline size_t bounds_memory(const struct client *client)
{
	return stream_memory(&client->stream) + client->account.used + client->account.held;
}

/* Weighs the client again. Replies that are about to be written count only after that, unless they are very large. */
void bounds_weigh(struct client *client);

/* The client that holds about the most for the longest time, or NULL. A client that reads its replies soon changes rank. */
struct client *bounds_largest(const struct clients *clients);

/* The client sent or took something. */
void bounds_active(struct client *client);

/* Something waits to be written where nothing did, or something was written; for how many milliseconds nothing was since. */
void bounds_progress(struct client *client);
uint64_t bounds_waited(const struct client *client);

/* Says whether a part of a request waits for its rest. Its time begins now if `restart`, else with the first part. */
void bounds_unfinished(struct client *client, bool is_unfinished, bool restart);

/* The client lingers from now on. */
void bounds_linger(struct client *client);

/*
 * Whether its time is over: to take replies; to complete a request; to linger. A client lingers until its system has acknowledged all
 * replies, but no longer than some seconds, or shutdown_timeout while the daemon shuts down.
 */
bool bounds_is_slow(const struct client *client);
bool bounds_is_unfinished(const struct client *client);
bool bounds_has_lingered(const struct client *client);

/*
 * At a tick: whether the client is late, and was so at the last tick. After a standstill of the process a tick may come before what
 * the client has sent or taken meanwhile.
 */
bool bounds_is_late(struct client *client, bool is_late);

/* About the client that was silent longest, if it was for `ms` milliseconds; else NULL. */
struct client *bounds_first_idle(struct clients *clients, uint64_t ms);

/* When the oldest client that is not authenticated was opened, in milliseconds of the loop; UINT64_MAX if there is none. */
void bounds_set_stranger(struct clients *clients, uint64_t since);

/* Of clients.oldest: it is less while a client is not authenticated. */
#define BOUNDS_AUTHENTICATED (UINT64_C(1) << 63)

#endif
