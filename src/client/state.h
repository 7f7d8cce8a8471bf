/*
 * What becomes of a client's input: the transitions of its state, and the pauses in which its requests are not carried out. No other
 * file changes either, except that a close ends all.
 *
 *     open -> departing -> closing -> lingering -> closed          a client may leave out any state but the last
 *
 * A client is paused while it has at least one reason (enum client_pause). client_pause adds a reason; reading from the socket
 * continues until client_hold.
 */
#ifndef CLIENT_STATE_H
#define CLIENT_STATE_H

#include "client/bounds.h"

static inline void client_pause(struct client *client, enum client_pause why)
{
	client->pauses |= why;
}

/* These reasons are gone. After the last one the input that was held is carried out, in this turn, and the socket is read again. */
void client_go_on(struct client *client, unsigned why);

/* The same for the reasons that the client's own tasks and replies have given, if these leave enough room. */
void client_look_for_room(struct client *client);

/* Whether the client's next request may be carried out. Pauses the client if it has reached a limit. */
static inline bool client_may_start(struct client *client)
{
	if (!client->pauses)
		client->pauses = window_is_full(client);
	return !client->pauses && !client_is_closing(client);
}

/* Discards the data of a refused request; whether some of them are still to come. */
static inline void client_skip(struct client *client, const struct request *request)
{
	client->input.skip = request->skip;
}

static inline bool client_is_skipping(const struct client *client)
{
	return client->input.skip.bytes || client->input.skip.line_end;
}

/* Input of a paused client is held, `held` bytes by now: no more is read, except to learn of the client's end. */
void client_hold(struct client *client, size_t held);

/* Whether commands of the client must not wait: it sends no more, will be closed, or has sent more requests than are stored. */
bool client_has_ended(const struct client *client);

/* Only the requests that were read by now are carried out; then the client stops. */
void client_depart(struct client *client);

/* No more requests are carried out. The client is closed once all is answered and written. */
void client_stop(struct client *client);

/* A client that has stopped, and to which all is written, discards its input until it is closed. */
void client_linger(struct client *client);

#endif
