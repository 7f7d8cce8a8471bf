/*
 * Clients that speak memcached's binary protocol. A request is a task like any other, and its reply has the form of binary.h.
 */
#ifndef CLIENT_BINARY_H
#define CLIENT_BINARY_H

#include "client/client.h"
#include "protocol/binary.h"

/* Whether the client speaks it. As in memcached, the first byte of the connection decides. `in` is not empty. */
static inline bool client_binary_speaks(struct client *client, struct slice in)
{
	if (!client->input.has_spoken) {
		client->input.has_spoken = true;
		client->input.is_binary = (unsigned char)in.p[0] == BINARY_REQUEST;
	}
	return client->input.is_binary;
}

/* Carries out a request of a client that need not authenticate, or has. It is borrowed for the call, like that of the next one. */
void client_binary_start(struct client *client, const struct binary_request *request);

/* Responds with the error of a refused request, after what memcached does as well. */
void client_binary_refuse(struct client *client, const struct binary_request *request);

/*
 * As auth_take. The client authenticates by SASL with the mechanism PLAIN, as memcached's option -S has it. If it asks for anything
 * else before, it is refused and closed, as by memcached.
 */
size_t client_binary_authenticate(struct client *client, struct slice in);

#endif
