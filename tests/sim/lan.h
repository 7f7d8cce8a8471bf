/*
 * The network of all simulations: proxies with the code under test, servers, and the messages between them, ordered by time. Calls and
 * results of one connection do not overtake each other. Connections break, servers restart, and proxies are killed: then a call that
 * was sent may still be executed, but its result is lost.
 */
#ifndef SIM_LAN_H
#define SIM_LAN_H

#include <sys/queue.h>

#include "command/host.h"
#include "unit/memcached.h"
#include "util/pool.h"

enum { LAN_SERVERS = 10 /* at most */ };

struct lan;

/* A host on a proxy. lan_init_host() sets its env; the caller sets the other members. */
struct lan_host {
	struct host host;
	struct lan_proxy *proxy;
	void *owner; /* owned by the caller */
};

struct lan_proxy {
	union {
		struct host host;
		struct lan_host first; /* most proxies have only this host */
	};
	TAILQ_ENTRY(lan_proxy) link;
	struct pool pool;
	struct lan *lan;
	int index;
	int64_t skew;     /* milliseconds by which its clock is ahead */
	bool lacks_clock; /* it does not know the clocks of servers */
	bool dead;
	uint64_t calls;    /* number of calls that it has sent */
	uint64_t connects; /* number of its connections that were broken */
	uint64_t slices;   /* state of random_next(), for the lengths of slices */
	struct lan_wire {
		uint64_t id, there, back; /* when the last call arrives, and the last result */
		/*
		 * Of a stalled connection: the first message that has not left the proxy's kernel;
		 * its end; otherwise 0.
		 */
		uint64_t stuck, recovers, timeout;
		struct waiter clock;
		struct lan_proxy *proxy;
	} wires[LAN_SERVERS];
};

/* A call on its way to a server, its result on the way back, or a timer. */
struct message {
	uint64_t at, number; /* the time of its arrival; numbers are in the order of sending */
	/* Extra delay: after its arrival the message is queued again for this long before it is executed. */
	uint64_t later;
	struct lan_proxy *proxy; /* NULL if no proxy receives the result */
	struct env *env;         /* the sender */
	struct waiter *waiter;
	struct call call;
	char *bytes;      /* memory of the call's slices */
	int server, from; /* -1: a timer; the index of its proxy */
	bool answered; /* `result` is set before the call arrives, so that the call is not executed */
	bool executed, gone, late;
	struct result result;
	struct buf value; /* memory of the result's value; if a hook fills it, it is the value */
	void *note;       /* the simulation's own data about the message */
};

/* The differences between simulations. All hooks except `arrival` may be NULL. */
struct lan_hooks {
	size_t note_size;
	/*
	 * Returns the time at which a call arrives at its server or, if it was executed, its result
	 * at the proxy. `last` is the arrival of the previous message on the connection, which is
	 * never overtaken, whatever this returns.
	 */
	uint64_t (*arrival)(struct lan *lan, const struct message *message, uint64_t last);
	/* Returns the server of a key. NULL: each call names its server. */
	int (*place)(struct slice key);
	/*
	 * Returns by how many milliseconds the estimate of a server's clock is off that a proxy
	 * has. NULL: it is right.
	 */
	int64_t (*clock_error)(const struct lan_proxy *proxy, int server);
	/* Returns the server whose clock a proxy reads for a key. NULL: that of `place`. */
	int (*clock)(const struct lan_proxy *proxy, struct slice key);
	/* Sets the clocks of all hosts of a proxy. NULL: it has one host. */
	void (*set_clock)(struct lan_proxy *proxy);
	/*
	 * Returns whether a call is in one packet with `last`, the previous call on the same
	 * connection: then the server executes nothing between them.
	 */
	bool (*is_in_packet)(
		struct lan *lan, const struct message *last, const struct message *message);
	/*
	 * Called when a call was sent, and may be changed; when it is about to be executed (returns
	 * true if message->result is already set); after it was executed.
	 */
	void (*sent)(struct lan *lan, struct message *message);
	bool (*execute)(struct lan *lan, struct message *message);
	void (*executed)(struct lan *lan, struct message *message);
	/*
	 * Called when a connection breaks; returns whether a call to a server that restarts is sent
	 * again instead of lost.
	 */
	void (*broken)(struct lan_proxy *proxy, int server);
	bool (*sent_again)(struct lan *lan, struct message *message);
};

struct lan {
	const struct lan_hooks *hooks;
	void *arg;
	struct memcached *servers;
	int server_count;
	TAILQ_HEAD(, lan_proxy) proxies; /* that are alive */
	struct message **heap;           /* the earliest first; messages with `gone` do not count */
	size_t count, capacity;
	const struct message *delivered; /* the proxy that has its result acts on it now */
	/* the last call that was sent since the last arrival of a message */
	const struct message *last;
	uint64_t start, now, random, number, connection; /* microseconds since 1970 */
	bool verbose;
	bool gentle; /* for a mutation: proxies close stalled connections without an abort */
};

/* The lan must be zeroed. */
void lan_init(struct lan *lan, const struct lan_hooks *hooks, void *arg, int servers,
	size_t item_max, uint64_t seed);
/* Drops all messages and items. */
void lan_fini(struct lan *lan);

uint64_t lan_random(struct lan *lan, uint64_t below);
uint64_t lan_ms(const struct lan *lan);
/* With `verbose`, prints the time and a text. */
void lan_say(const struct lan *lan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Creates a proxy with its first host, or another host. A host has only `begin`, which does
 * nothing, and the env, which lacks rules, options and `pushed`.
 */
void lan_init_proxy(struct lan *lan, struct lan_proxy *proxy, int index);
void lan_init_host(struct lan_proxy *proxy, struct lan_host *host);
void lan_set_clock(struct lan_proxy *proxy);
void lan_set_env_clock(const struct lan_proxy *proxy, struct env *env);

/* Starts the request of a client, which is a line, as a task of this owner. False if it was refused. */
bool lan_ask(struct lan_host *host, int client, struct slice line, void *owner);

/* The implementation of env.call. */
void lan_call(struct env *env, const struct call *call, struct waiter *waiter);
/* Executes a call without a proxy as the next one. */
void lan_call_lost(struct lan *lan, const struct call *call);
/*
 * For `sent`: returns the result "done" to the proxy soon. The call is executed later by this
 * time, unless the proxy is killed before.
 */
void lan_acknowledge(struct lan *lan, struct message *message, uint64_t later);

/* Returns the time of the next message; UINT64_MAX if there is none. lan_step() delivers it. */
uint64_t lan_next(struct lan *lan);
void lan_step(struct lan *lan);

/* Return the item of a key; a random item of a server; NULL if there is none. */
struct memcached_item *lan_find(struct lan *lan, struct slice key);
struct memcached_item *lan_any_item(struct lan *lan);
/*
 * Return the last call on that key whose result a proxy still needs, or NULL; whether an env has
 * anything in flight.
 */
const struct message *lan_last_call(
	const struct lan *lan, const struct lan_proxy *proxy, struct slice key);
bool lan_is_waiting(const struct lan *lan, const struct env *env);

/*
 * Stalls a connection for `length` microseconds: nothing is delivered. When a result is overdue by
 * at most `timeout`, the proxy aborts the connection, so that calls which it has sent meanwhile
 * are never executed. If the proxy is killed instead, its kernel continues to send, and they may
 * be executed when the stall ends.
 */
void lan_stall(struct lan_proxy *proxy, int server, uint64_t length, uint64_t timeout);
/* Returns the time at which all calls of the proxy have arrived. */
uint64_t lan_last_arrival(const struct lan_proxy *proxy);

/*
 * Break a connection; all connections to a server that restarts: then no call that was sent is
 * executed. The caller restarts the memcached.
 */
void lan_break(struct lan_proxy *proxy, int server);
void lan_restart(struct lan *lan, int server);
/*
 * Breaks all connections of a proxy, and ends its timers, until nothing is in flight. Its later
 * calls fail.
 */
void lan_kill(struct lan_proxy *proxy);

#endif
