/*
 * Connects a socket to a server's address, without blocking the loop. Each worker has one
 * resolver, which notifies its servers of finished lookups, and one server_address per server.
 */
#ifndef UPSTREAM_ADDRESS_H
#define UPSTREAM_ADDRESS_H

#include <event2/event_struct.h>
#include <sys/queue.h>

#include "net/loop.h"
#include "upstream/names.h"
#include "upstream/ring.h"

struct resolver;

/* Borrows both arguments until resolver_destroy(). */
struct resolver *resolver_create(struct loop *loop, struct names *names);

/* All addresses must have been finished with server_address_fini(). */
void resolver_destroy(struct resolver *resolver);

struct server_address_ops {
	void (*done)(
		/*
		 * Called at the end of an attempt: with a connected socket, which the callee
		 * owns, or with -1 and the reason.
		 */
		void *arg, int fd, const char *why);
	/* Called after a lookup of any name, not necessarily that of this server. */
	void (*looked_up)(void *arg);
};

/*
 * The address of a server. If its name has an address of each family, attempts to connect
 * alternate between them.
 */
struct server_address {
	LIST_ENTRY(server_address) link;
	struct loop *loop;
	const struct ring_server *where;
	void (*done)(void *arg, int fd, const char *why);
	void (*looked_up)(void *arg);
	void *arg;
	struct name *name;             /* NULL if the host is a numeric address or a path. */
	union server_sockaddr numeric; /* The address if there is no name. */
	union server_sockaddr current; /* Address of the current connection. */
	union server_sockaddr next;    /* Address of the attempt in progress. */
	struct event connecting;       /* Event of the socket that is being connected. */
	uint64_t began;                /* Start of the check, in milliseconds. */
	/* Number of attempts; selects one of the addresses of a name. */
	unsigned tried;
	bool awaits;     /* The attempt is pending until the first lookup ends. */
	bool unresolved; /* The last attempt found no address. */
	/* The attempt is a check of an open connection, which is kept if the attempt fails. */
	bool checks;
	bool failing; /* The last check failed. */
	/* The last check failed and the one before it had not: the failure is logged. */
	bool is_news;
	char why[NAME_WHY]; /* Why the lookup failed. */
};

/* Borrows all arguments but `address` until server_address_fini(). */
void server_address_init(struct server_address *address, struct loop *loop,
	struct resolver *resolver, const struct ring_server *where,
	const struct server_address_ops *ops, void *arg);
/* No attempt may be in progress; see server_address_stop(). */
void server_address_fini(struct server_address *address);

/*
 * Starts to connect. `done` is called once, possibly within this function, unless
 * server_address_stop() is called first.
 */
void server_address_connect(struct server_address *address);

/*
 * If the name no longer has the address of the open connection, starts to connect to its new
 * one; `done` is called as above. Does nothing while an earlier check is younger than `limit`
 * milliseconds; an older check is cancelled.
 */
void server_address_check(struct server_address *address, uint64_t limit);

/* Returns whether an address is known now although the last attempt found none. */
bool server_address_is_found(const struct server_address *address);

/* Cancels the attempt in progress, and calls `done` with the reason within this function. */
void server_address_give_up(struct server_address *address);

/* Cancels the attempt in progress, if any, without calling `done`. */
void server_address_stop(struct server_address *address);

#endif
