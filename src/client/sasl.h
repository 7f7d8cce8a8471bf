/* Authentication in the binary protocol: SASL with the mechanism PLAIN, as memcached's option -S has it. */
#ifndef CLIENT_SASL_H
#define CLIENT_SASL_H

#include "client/client.h"
#include "protocol/binary.h"

/* As auth_take. A client that asks for anything else before it is authenticated is refused and closed, as by memcached. */
size_t sasl_take(struct client *client, struct slice in);

/* Carries out SASL_... of a client that need not authenticate, or has. `request` is borrowed for the call. */
void sasl_start(struct client *client, const struct binary_request *request);

/* Whether it is one of them. */
static inline bool sasl_is(const struct binary_request *request)
{
	return request->head.opcode >= BINARY_SASL_LIST && request->head.opcode <= BINARY_SASL_STEP;
}

#endif
