/*
 * Clients that must authenticate first. Until then a client has no requests but `set` with a user and a password; all others are
 * refused here, and nothing of them reaches a server.
 *
 *     open -> take -> authenticated: the client is like any other
 *              |  ^
 *              v  |   after each refused request, a pause that grows; after LOGIN_REFUSED_MOST, the end
 *             pause
 *
 * Such a client can hold little: login_parse limits what is read of it, HELD_MOST what waits behind a refused request, and
 * client_buffer its replies. It has request_read_timeout to authenticate, and gives its place to a new client when there is no other.
 */
#ifndef CLIENT_AUTH_H
#define CLIENT_AUTH_H

#include "client/client.h"

/* Of a client that is not authenticated. */
struct client_auth {
	TAILQ_ENTRY(client_auth) link; /* among the worker's, the oldest first */
	struct client *client;
	struct event timer;
	uint64_t since;   /* when it connected; milliseconds of the loop */
	unsigned refused; /* requests */
	bool is_begun;    /* SASL: the client's next message is the one of PLAIN */
};

/* Of a new client. It need not authenticate if no users are configured. */
void auth_open(struct client *client);

/* The client is closed, or authenticated. */
void auth_end(struct client *client);

/* Whether this is the password of the user. */
bool auth_is_right(const struct client *client, struct slice user, struct slice password);

/* Counts a success: then the client is like any other; or a failure. The reply is the caller's. */
void auth_succeed(struct client *client);
void auth_fail(struct client *client);

/* A request was refused: the next one is read after a pause. `waiting` is how much has come behind it. */
void auth_slow_down(struct client *client, size_t waiting);

/* A request was answered. If replies wait for the client, `waiting`, how much has come behind the request, must be little. */
void auth_bound(struct client *client, size_t waiting);

/* Whether the client had its time to authenticate, and has not done so. */
bool auth_is_late(const struct client *client);

/* The client that has waited longest to be authenticated, if it has for `ms` milliseconds; else NULL. */
struct client *auth_oldest(const struct clients *clients, uint64_t ms);

#endif
