/*
 * How a client's input is handled: the transitions of its state, and the pauses in which its
 * requests are not carried out. No other file changes either, except that a close ends both.
 *
 *     open -> departing -> closing -> lingering -> closed    any state but the last may be skipped
 *
 * A client is paused while it has at least one reason (enum client_pause). client_pause adds a
 * reason; reading from the socket continues until client_hold.
 */
#ifndef CLIENT_STATE_H
#define CLIENT_STATE_H

#include "client/bounds.h"

static inline void client_pause(struct client *client, enum client_pause why)
{
	client->pauses |= why;
}

/*
 * Removes these reasons. After the last one, the held input is carried out in this turn, and
 * the socket is read again.
 */
void client_go_on(struct client *client, unsigned why);

/*
 * Does the same for the reasons that are caused by the client's own tasks and replies, if there
 * is enough room again.
 */
void client_look_for_room(struct client *client);

/*
 * Returns whether the client's next request may be carried out. Pauses the client if it has
 * reached a limit.
 */
static inline bool client_may_start(struct client *client)
{
	if (!client->pauses)
		client->pauses = window_is_full(client);
	return !client->pauses && !client_is_closing(client);
}

/*
 * client_skip discards the data of a refused request; client_is_skipping returns whether some
 * of them are still to be received.
 */
static inline void client_skip(struct client *client, const struct request *request)
{
	client->input.skip = request->skip;
}

static inline bool client_is_skipping(const struct client *client)
{
	return client->input.skip.bytes || client->input.skip.line_end;
}

/*
 * Holds the input of a paused client, `held` bytes so far. Stops reading, except to detect the
 * end of the connection.
 */
void client_hold(struct client *client, size_t held);

/*
 * Returns whether commands of the client must not block: it sends no more, will be closed, or
 * has sent more requests than are buffered.
 */
bool client_has_ended(const struct client *client);

/* Stops the client after the requests that were read so far. */
void client_depart(struct client *client);

/* Carries out no more requests. The client is closed once all is answered and written. */
void client_stop(struct client *client);

/* Discards the input of a stopped client, to which all is written, until it is closed. */
void client_linger(struct client *client);

#endif
