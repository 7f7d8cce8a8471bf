/*
 * The memory and time that a client uses, compared with the other clients of the worker.
 * clients.c closes clients that use too much.
 *
 *     memory      clients are ranked by the bytes that they hold, to find the largest one at once
 *     time        since when a client is idle, reads no replies, or has an incomplete request
 *
 * A client is in up to three lists: of all clients; of clients that hold about as many bytes;
 * and of clients that a timer checks.
 */
#ifndef CLIENT_BOUNDS_H
#define CLIENT_BOUNDS_H

#include "client/window.h"

/*
 * At each tick, `check` is called for each client that may have to be closed, and then `tick`.
 * `reclaim` is called at the end of a turn of the loop in which the total of all clients of the
 * daemon exceeded client_memory.
 */
struct bounds_ops {
	void (*check)(struct client *client);
	void (*tick)(struct clients *clients);
	void (*reclaim)(struct clients *clients);
};

void bounds_init(struct clients *clients, const struct bounds_ops *ops);
void bounds_fini(struct clients *clients);

/* Must be called when the configuration has changed. */
void bounds_renew(struct clients *clients);

/* Must be called when a client is opened, and when it is closed. */
void bounds_open(struct client *client);
void bounds_close(struct client *client);

/* Schedules a check of the client at the next tick. */
void bounds_check(struct client *client);

/* Returns the bytes that the client uses. */
static inline size_t bounds_memory(const struct client *client)
{
	return stream_memory(&client->stream) + client->input.progress.quoted.words.cap +
		client->account.used + client->account.held;
}

/*
 * Updates the rank of the client. Replies that are about to be written are not counted unless
 * they are very large.
 */
void bounds_weigh(struct client *client);

/*
 * Returns the client that has been in the highest rank longest, or NULL. A client that reads
 * its replies soon changes rank.
 */
struct client *bounds_largest(const struct clients *clients);

/*
 * If more than `most` clients have sent their last request and wait for memory of a room, calls
 * `close` for the excess, starting with the client that has been paused longest.
 */
void bounds_end(const struct clients *clients, size_t most, void (*close)(struct client *client));

/* Must be called when the client has sent or read something. */
void bounds_active(struct client *client);

/*
 * bounds_progress must be called when output is queued after there was none, and when output
 * was written. bounds_waited returns the milliseconds since then.
 */
void bounds_progress(struct client *client);
uint64_t bounds_waited(const struct client *client);

/*
 * Sets whether a request is incomplete. Its time starts now if `restart`, else with its first
 * part.
 */
void bounds_unfinished(struct client *client, bool is_unfinished, bool restart);

/* Must be called when the client starts to linger. */
void bounds_linger(struct client *client);

/*
 * Return whether the client has exceeded its time: to read replies; to complete a request; to
 * linger. A client lingers until its system has acknowledged all replies, but no longer than
 * some seconds, or shutdown_timeout while the daemon shuts down.
 */
bool bounds_is_slow(const struct client *client);
bool bounds_is_unfinished(const struct client *client);
bool bounds_has_lingered(const struct client *client);

/*
 * Returns whether the connection of a client that is not read has failed. No event reports that,
 * and its requests would take time from other clients.
 */
bool bounds_is_gone(const struct client *client);

/*
 * Must be called at a tick. Returns whether the client is late now and was late at the last
 * tick. One late tick is not enough, because after a standstill of the process a tick may
 * precede the client's pending input and output.
 */
bool bounds_is_late(struct client *client, bool is_late);

/*
 * Returns approximately the client that has been idle longest, if for at least `ms`
 * milliseconds; else NULL.
 */
struct client *bounds_first_idle(struct clients *clients, uint64_t ms);

/*
 * Sets the time when the oldest unauthenticated client was opened, in milliseconds of the loop;
 * UINT64_MAX if there is none.
 */
void bounds_set_stranger(struct clients *clients, uint64_t since);

/* clients.oldest is less than this while a client is not authenticated. */
#define BOUNDS_AUTHENTICATED (UINT64_C(1) << 63)

#endif
