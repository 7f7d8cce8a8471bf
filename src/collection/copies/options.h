/* What the layer of copies needs from its owner, and its counters: see copies.h. */
#ifndef COLLECTION_COPIES_OPTIONS_H
#define COLLECTION_COPIES_OPTIONS_H

#include "collection/env.h"

/* The timeout of the daemon, whatever request_timeout is, because all proxies need the same. */
enum { COPIES_TIMEOUT = 2500 };

/* Since copies_create, except for `waiting`. */
struct copies_stats {
	uint64_t repairs;    /* sets whose copies differed and were made equal */
	uint64_t incomplete; /* sets that were not whole, and count as missing */
	uint64_t absences;   /* raised */
	uint64_t joins;      /* reads that needed both copies */
	size_t waiting;      /* sets that are waiting for repair, or being repaired */
};

struct copies_options {
	struct env *env; /* `rules`, the clock, `later`, `pause` and memory */
	/* As env.call: sends a call to its server. */
	void (*call)(struct env *env, const struct call *call, struct waiter *waiter);
	/*
	 * Returns the server of a key, and stores in `former` the one that it is being moved from,
	 * or the same one. Both are below `servers`.
	 */
	int (*place)(void *arg, struct slice key, int *former);
	/* Returns the name of a server, as all proxies know it. */
	struct slice (*name)(void *arg, int server);
	/*
	 * Returns when the process of a server was started, in seconds by its own clock; 0 if it is
	 * unknown. Another time after a new connection means that its items are lost. NULL: it is
	 * unknown of all.
	 */
	int64_t (*started)(void *arg, int server);
	/* Returns Unix time in microseconds. */
	uint64_t (*clock)(void *arg);
	void *arg;
	int servers;      /* at least 3 */
	uint64_t timeout; /* of calls, in milliseconds */
};

#endif
