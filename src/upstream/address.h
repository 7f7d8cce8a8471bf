/*
 * From the place of a server to a connected socket, without blocking the loop. Each worker has one resolver, which tells its servers when
 * a name was looked up, and one server_address for each server.
 */
#ifndef UPSTREAM_ADDRESS_H
#define UPSTREAM_ADDRESS_H

#include <event2/event_struct.h>
#include <sys/queue.h>

#include "net/loop.h"
#include "upstream/names.h"
#include "upstream/ring.h"

struct resolver;

/* Borrows both until resolver_destroy. */
struct resolver *resolver_create(struct loop *loop, struct names *names);

/* All addresses must have been finished. */
void resolver_destroy(struct resolver *resolver);

struct server_address_ops {
	void (*done)(
		void *arg, int fd, const char *why); /* connected: the callee owns the socket; or -1 and the reason */
	void (*looked_up)(void *arg);                /* a name has been looked up, perhaps that of this server */
};

/* The address of a server. If it is a name with an address of each family, each attempt to connect tries the next one. */
struct server_address {
	LIST_ENTRY(server_address) link;
	struct loop *loop;
	const struct ring_server *where;
	void (*done)(void *arg, int fd, const char *why);
	void (*looked_up)(void *arg);
	void *arg;
	struct name *name;             /* NULL if there is none */
	union server_sockaddr numeric; /* without a name */
	union server_sockaddr current; /* of the connection */
	union server_sockaddr next;    /* that is being connected to */
	struct event connecting;       /* the socket that is being connected */
	uint64_t began;                /* the check, in milliseconds */
	unsigned tried;                /* attempts; chooses among the addresses of a name */
	bool awaits;                   /* the attempt waits for the first lookup */
	bool unresolved;               /* the last attempt found no address */
	bool checks;                   /* there is a connection, which stays if this attempt fails */
	bool failing;                  /* the last check failed */
	bool is_news;                  /* the one before it had not failed: to be logged */
	char why[NAME_WHY];            /* of a failed lookup */
};

/* Borrows all but `address` until server_address_fini. */
void server_address_init(struct server_address *address, struct loop *loop, struct resolver *resolver,
	const struct ring_server *where, const struct server_address_ops *ops, void *arg);
/* It must have been stopped. */
void server_address_fini(struct server_address *address);

/* Starts to connect. `done` is called once, perhaps within this function, unless server_address_stop is called before. */
void server_address_connect(struct server_address *address);

/*
 * If the name has lost the address of an open connection, starts to connect to another one. `done` is called as above. While an earlier
 * check is younger than `limit` milliseconds, does nothing. An older check is given up.
 */
void server_address_check(struct server_address *address, uint64_t limit);

/* Whether there is an address now, and the last attempt found none. */
bool server_address_is_found(const struct server_address *address);

/* Gives up the attempt that is under way: `done` is called, within this function, with the reason. */
void server_address_give_up(struct server_address *address);

/* The same without a call of `done`. Does nothing if nothing is under way. */
void server_address_stop(struct server_address *address);

#endif
