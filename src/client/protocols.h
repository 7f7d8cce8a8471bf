/* The table of all protocols. */
#ifndef CLIENT_PROTOCOLS_H
#define CLIENT_PROTOCOLS_H

#include "client/protocol.h"

/* The functions of the table, documented in struct protocol. */
#define PROTOCOL(name, first, parse, start, authenticate, frames) \
	enum request_status parse(struct slice in, const struct request_limits *limits, \
		struct request_progress *progress, struct parsed *out); \
	void start(struct client *client, struct parsed *parsed); \
	size_t authenticate(struct client *client, struct slice in);
#include "client/protocols.def"
#undef PROTOCOL

/* Returns the protocol of a connection that begins with this byte. */
const struct protocol *protocol_of(unsigned char first);

#endif
