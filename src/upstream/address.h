/*
 * From the name of a server to a connected socket, without blocking the loop. There is one resolver for each worker, which looks up
 * names, and one server_address for each server.
 *
 * libevent's evdns asks the name servers. It keeps no answers, but it reads /etc/hosts and /etc/resolv.conf only once. So they are
 * read here again before a lookup if they have changed. The C library's getaddrinfo would follow them by itself. But it blocks
 * for as long as no name server answers, so it would need a thread, for which an exit has to wait. It also loads modules, whose
 * system calls the sandbox cannot know.
 */
#ifndef UPSTREAM_ADDRESS_H
#define UPSTREAM_ADDRESS_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "net/loop.h"
#include "upstream/ring.h"

struct lookup;
struct resolver;

/* Borrows `base` until resolver_destroy. */
struct resolver *resolver_create(struct event_base *base);

/* All addresses must have been stopped. Runs the base for the lookups that evdns has not ended yet. */
void resolver_destroy(struct resolver *resolver);

union server_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

/*
 * The address of a server: looks up its name, and tries the next of its addresses. Later it checks whether the name still has the
 * address, and connects to another one if it has not.
 */
struct server_address {
	struct loop *loop;
	struct resolver *resolver;
	const struct ring_server *where;
	void (*done)(void *arg, int fd, const char *why);
	void *arg;
	struct lookup *lookup;               /* NULL if none is under way */
	struct event connecting;             /* the socket that is being connected */
	union server_sockaddr current, next; /* of the connection, and the one that is being connected to */
	uint64_t began;                      /* the attempt or check, in milliseconds */
	unsigned tried;                      /* addresses; chooses among those of a name */
	bool is_name;
	bool checks;   /* there is a connection, which stays if the name still has its address */
	bool failing;  /* the last lookup or check failed */
	bool is_news;  /* the one before it had not failed: to be logged */
	char why[120]; /* of a failure */
};

/*
 * Borrows all but `address` until server_address_stop is called for the last time. `done` gets a connected socket, which it owns,
 * or -1 and the reason.
 */
void server_address_init(struct server_address *address, struct loop *loop, struct resolver *resolver,
	const struct ring_server *where, void (*done)(void *arg, int fd, const char *why), void *arg);

/* Starts to connect. `done` is called once, perhaps within this function, unless server_address_stop is called before. */
void server_address_connect(struct server_address *address);

/*
 * Looks up the name of an open connection. If it has lost the address of the connection, starts to connect to another one. `done`
 * is called as above, but not if the name still has the address. Without a name, or while an earlier check is younger than `limit`
 * milliseconds, this does nothing. An older check is given up.
 */
void server_address_check(struct server_address *address, uint64_t limit);

/* Gives up the lookup or the connecting that is under way: `done` is called, within this function, with the reason. */
void server_address_give_up(struct server_address *address);

/* The same without a call of `done`. Does nothing if nothing is under way. */
void server_address_stop(struct server_address *address);

#endif
