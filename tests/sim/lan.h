/*
 * A small network for simulations: proxies with the code under test, servers, and what is on its way between them. Calls and results of one
 * connection do not overtake each other. Connections break, and proxies are killed: then a call that was sent may still be executed.
 */
#ifndef SIM_LAN_H
#define SIM_LAN_H

#include "command/host.h"
#include "unit/memcached.h"
#include "util/pool.h"

enum { LAN_SERVERS = 2 };

struct lan;

/* A proxy. Whoever made it fills in the rest of its host. */
struct lan_proxy {
	struct host host;
	struct pool pool;
	struct lan *lan;
	int index;
	bool dead;
	uint64_t calls; /* that it has sent */
	uint64_t slices;
	struct {
		uint64_t id, there, back; /* when the last call arrives, and the last result */
	} wires[LAN_SERVERS];
};

/* A call on its way to a server, its result on the way back, or a timer. */
struct lan_message {
	uint64_t at, number;
	struct lan_proxy *proxy; /* NULL if its connection was lost, or if it is late */
	struct waiter *waiter;
	struct call call;
	char *bytes;
	int server, from; /* -1: a timer; the index of its proxy */
	bool executed, dropped, late;
	struct result result;
	struct buf value;
};

struct lan {
	struct memcached servers[LAN_SERVERS];
	struct lan_message **heap; /* the earliest first */
	size_t count, capacity;
	uint64_t now, random, number, connection; /* microseconds */
	void *arg;
	/* The microseconds on the way of a call, or with NULL of a result. */
	uint64_t (*delay)(struct lan *lan, const struct call *call);
	/* The server of a key. */
	int (*place)(struct slice key);
	/* A call was sent, and may be changed; is about to be executed, true if message->result has its result already; was executed. Each may
	 * be NULL. */
	void (*sent)(struct lan *lan, struct lan_message *message);
	bool (*execute)(struct lan *lan, struct lan_message *message);
	void (*executed)(struct lan *lan, struct lan_message *message);
};

uint64_t lan_random(struct lan *lan, uint64_t below);

/* Makes a proxy, with nothing in its host but the env, which lacks rules, options and `pushed`. */
void lan_init_proxy(struct lan *lan, struct lan_proxy *proxy, int index);
void lan_set_clock(struct lan_proxy *proxy);

/* When the next message comes; UINT64_MAX if there is none. Lets it come. */
uint64_t lan_next(const struct lan *lan);
void lan_step(struct lan *lan);

/* The item of a key, or NULL. */
struct memcached_item *lan_find(struct lan *lan, struct slice key);

/* For `sent`: the proxy is told at once that the call is done. It is executed so much later, unless the proxy is killed before. */
void lan_acknowledge(struct lan *lan, struct lan_message *message, uint64_t later);

/* A connection breaks. All of a proxy do, and its timers come, until it waits for nothing; what it sends gets no answer. */
void lan_break(struct lan_proxy *proxy, int server);
void lan_kill(struct lan_proxy *proxy);

/* Forgets all that is on its way, and all items. */
void lan_fini(struct lan *lan);

#endif
