/*
 * A protocol that clients speak. protocols.def is the table. To the rest of a client all are the same: each makes requests, and gives
 * them the form of their replies.
 */
#ifndef CLIENT_PROTOCOL_H
#define CLIENT_PROTOCOL_H

#include "protocol/request.h"

struct client;

/* Bytes of what a form may need to know of a request. */
enum { PROTOCOL_ASKED = 272 };

/* A request, with room for what the form of its reply needs to know. */
struct parsed {
	struct request request;
	struct request_reply reply;
	_Alignas(8) char asked[PROTOCOL_ASKED];
};

struct protocol {
	const char *name;
	int first; /* the first byte of a connection in this protocol; -1 for any other byte */
	/* As request_parse. */
	enum request_status (*parse)(struct slice in, const struct request_limits *limits,
		struct request_progress *progress, struct parsed *out);
	/* Carries out a request of a client that need not authenticate, or has. It is borrowed for the call. */
	void (*start)(struct client *client, struct parsed *parsed);
	/* Takes a request off the front of `in`, of a client that must authenticate. Returns its size, or 0 if it is incomplete. */
	size_t (*authenticate)(struct client *client, struct slice in);
	bool frames; /* a reply answers a request; without one nothing can be said */
};

#endif
