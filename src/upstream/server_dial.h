/* An attempt to connect to a server: its name is resolved, and a socket is connected. */
#ifndef UPSTREAM_SERVER_DIAL_H
#define UPSTREAM_SERVER_DIAL_H

#include <event2/event_struct.h>

#include "net/loop.h"
#include "upstream/ring.h"

struct evdns_base;
struct evdns_getaddrinfo_request;

struct server_dial {
	struct loop *loop;
	struct evdns_base *dns;
	struct evdns_getaddrinfo_request *resolving; /* or NULL */
	struct event connected;
	unsigned attempts; /* chooses among the addresses of a name */
	void (*done)(struct server_dial *dial, int fd, const char *why);
};

/*
 * Borrows all arguments as long as the dial is used. `done` takes a connected socket, which is non-blocking, or -1 and the reason,
 * whose text is valid in this call.
 */
void server_dial_init(struct server_dial *dial, struct loop *loop, struct evdns_base *dns,
	void (*done)(struct server_dial *dial, int fd, const char *why));

/* Starts an attempt. It may be done within this call. `where` is borrowed for the call. */
void server_dial_start(struct server_dial *dial, const struct ring_server *where);

/* Gives up the attempt, if there is one; `done` is not called. */
void server_dial_cancel(struct server_dial *dial);

#endif
