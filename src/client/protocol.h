/*
 * The interface of a protocol for clients. protocols.def is the table. Each protocol parses
 * requests, and writes replies in its form; the other files of this room do not depend on the
 * protocol.
 */
#ifndef CLIENT_PROTOCOL_H
#define CLIENT_PROTOCOL_H

#include "protocol/request.h"

struct client;

/* Maximum bytes that a form may need from a request. */
enum { PROTOCOL_ASKED = 272 };

/* A request, with room for the data that the form of its reply needs. */
struct parsed {
	struct request request;
	struct request_reply reply;
	_Alignas(8) char asked[PROTOCOL_ASKED];
};

struct protocol {
	const char *name;
	int first; /* The first byte of a connection in this protocol; -1 for any other byte. */
	/* Parses a request like request_parse. */
	enum request_status (*parse)(struct slice in, const struct request_limits *limits,
		struct request_progress *progress, struct parsed *out);
	/*
	 * Carries out a request of a client that is authenticated, or need not be. It is
	 * borrowed for the call.
	 */
	void (*start)(struct client *client, struct parsed *parsed);
	/*
	 * Handles a request at the front of `in`, of a client that must authenticate. Returns
	 * its size, or 0 if it is incomplete.
	 */
	size_t (*authenticate)(struct client *client, struct slice in);
	bool frames; /* Replies are framed: a message can only be sent as the reply to a request. */
};

#endif
