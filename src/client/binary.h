/*
 * Clients that speak memcached's binary protocol. A request is a task like any other, and its reply has the form of binary.h.
 */
#ifndef CLIENT_BINARY_H
#define CLIENT_BINARY_H

#include "client/protocol.h"
#include "protocol/binary.h"

/*
 * The functions of struct protocol. The client authenticates by SASL with the mechanism PLAIN, as memcached's option -S has it. If it asks
 * for anything else before, it is refused and closed, as by memcached.
 */
enum request_status client_binary_parse(
	struct slice in, const struct request_limits *limits, struct request_progress *progress, struct parsed *out);
void client_binary_start(struct client *client, struct parsed *parsed);
size_t client_binary_authenticate(struct client *client, struct slice in);

#endif
