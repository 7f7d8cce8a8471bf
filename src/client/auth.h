/*
 * Clients that must authenticate first. Until then the only accepted request of a client is
 * `set` with a user and a password. All others are refused here, and are not sent to servers.
 *
 *     open -> take -> authenticated: handled like any other client
 *              |  ^
 *              v  |   after each refused request, a growing pause; closed after LOGIN_REFUSED_MOST
 *             pause
 *
 * The memory of such a client is limited: login_parse limits its input, HELD_MOST the input
 * after a refused request, and client_buffer its replies. It must authenticate within
 * request_read_timeout, and may be closed for a new client when all connections are in use.
 */
#ifndef CLIENT_AUTH_H
#define CLIENT_AUTH_H

#include "client/client.h"

/* State of a client that is not authenticated. */
struct client_auth {
	TAILQ_ENTRY(client_auth) link; /* In the worker's list, the oldest first. */
	struct client *client;
	struct event timer;
	uint64_t since;   /* Time of the connect, in milliseconds of the loop. */
	unsigned refused; /* Number of refused requests. */
	bool is_begun;    /* SASL: the client's next message is that of PLAIN. */
};

/* Initializes a new client, which need not authenticate if no users are configured. */
void auth_open(struct client *client);

/* Must be called when the client is closed or authenticated. */
void auth_end(struct client *client);

/* Returns whether this is the password of the user. */
bool auth_is_right(const struct client *client, struct slice user, struct slice password);

/*
 * Count a success, after which the client is handled like any other; or a failure. The caller
 * sends the reply.
 */
void auth_succeed(struct client *client);
void auth_fail(struct client *client);

/*
 * Counts a refused request, and pauses before the next one is read, or closes the client after
 * too many. `waiting` is the number of bytes received after the request.
 */
void auth_slow_down(struct client *client, size_t waiting);

/*
 * Must be called when a request was answered. If replies are still unsent, closes the client if
 * `waiting`, the number of bytes received after the request, is not small.
 */
void auth_bound(struct client *client, size_t waiting);

/* Returns whether the client has not authenticated in time. */
bool auth_is_late(const struct client *client);

/*
 * Returns the client that has been unauthenticated longest, if for at least `ms` milliseconds;
 * else NULL.
 */
struct client *auth_oldest(const struct clients *clients, uint64_t ms);

#endif
