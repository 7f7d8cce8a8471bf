/* What machines need of the world: calls to servers, time, chance, rules and options. The daemon's worker implements it, as do the tests. */
#ifndef COLLECTION_ENV_H
#define COLLECTION_ENV_H

#include <stdint.h>

#include "collection/options.h"
#include "collection/rules.h"
#include "protocol/call.h"
#include "util/pool.h"

struct large_filter;

struct env {
	/* Sends a call. Its slices may change after the return. The waiter gets exactly one result, after the return. */
	void (*call)(struct env *env, const struct call *call, struct waiter *waiter);
	/*
	 * Calls the waiter, with an empty result, after `ms` milliseconds; with 0, after all ready I/O. NULL where no time
	 * passes: then work is not sliced and nothing backs off.
	 */
	void (*later)(struct env *env, struct waiter *waiter, unsigned ms);

	uint64_t now;      /* milliseconds of a monotonic clock, fixed during a loop turn */
	int64_t unix_time; /* seconds */
	uint64_t random;   /* state of random_next() */
	uint64_t seed;     /* of the hash tables */
	int servers;       /* the number of servers */
	const struct rules *rules;
	const struct collection_options *options;
	struct pool *pool;
	struct large_filter *large; /* shared with other workers; NULL for none */
};

#endif
