/*
 * The environment of machines: calls to servers, time, random numbers, rules, options. It is
 * filled in by a worker, a test or the simulation.
 */
#ifndef COLLECTION_ENV_H
#define COLLECTION_ENV_H

#include <stdint.h>

#include "collection/rules.h"
#include "protocol/call.h"
#include "util/pool.h"

/* Settings for all collections of a process. */
struct collection_options {
	/* Bytes of a list's base, or of an item in an adopted encoding, that trigger compaction. */
	size_t base_size;
	size_t segment_size; /* maximum bytes of a list's segment */
	/* Bytes of a set's log that trigger folding, and spilling to a table. */
	size_t log_size;
	size_t table_size; /* maximum bytes of a table, before packing */
	size_t pack_size;  /* bytes from which a table is packed; 0 for never */
	size_t cache;      /* bytes of memory for views, tables and indexes */
	/* Maximum bytes of a result that is collected before it is sent; 0 for no limit. */
	size_t result_max;
	size_t block;      /* bytes of a set that such a command reads at once; 0 for the default */
	size_t merges;     /* maximum number of concurrent merges of runs in one worker */
	size_t lease_time; /* default duration of a lease, in seconds */
};

struct account;
struct large_filter;
struct rooms;

struct env {
	/*
	 * Sends a call. Its slices are borrowed until the function returns. The waiter must
	 * stay valid until it receives its single result, which is always after the return.
	 */
	void (*call)(struct env *env, const struct call *call, struct waiter *waiter);
	/*
	 * Calls the waiter with an empty result after `ms` milliseconds, or after all ready
	 * I/O if `ms` is 0. NULL if there are no timers: then work is not sliced, and appends
	 * are never delayed.
	 */
	void (*later)(struct env *env, struct waiter *waiter, unsigned ms);

	/*
	 * Work is done in slices. After `grain` steps of about 50 ns each, env_is_over calls
	 * `is_over`, which returns whether the slice is over, and resets `grain`. If it is
	 * over, the work calls `pause`, which calls the waiter with an empty result in the next
	 * slice of the account's payer; `account` is NULL for work without a client. Both are
	 * NULL if work is not sliced.
	 */
	bool (*is_over)(struct env *env);
	void (*pause)(struct env *env, struct waiter *waiter, const struct account *account);
	size_t grain;

	/*
	 * Reports the approximate size of a set or list that was read or compacted: the number
	 * of its members or elements, and its stored bytes. Called at most once a second for a
	 * key. The key is borrowed until the function returns. NULL for no reports.
	 */
	void (*measured)(struct env *env, struct slice key, uint64_t members, uint64_t bytes);

	/*
	 * Counts a read of a set or list with this rule, and whether it exists. NULL:
	 * reads are not counted.
	 */
	void (*was_read)(struct env *env, const struct collection_rule *rule, bool exists);

	/*
	 * Returns the clock of the key's server, in seconds since 1970, or 0 if it is unknown.
	 * NULL: it is always unknown.
	 */
	int64_t (*server_time)(struct env *env, struct slice key);

	/* Reports a push to the list `key`, which is borrowed. NULL: no client blocks on lists. */
	void (*pushed)(struct env *env, struct slice key);

	/*
	 * Reports that the list `key`, which is borrowed, has no elements, but that held ones may
	 * be given back in this many seconds. NULL, as for `pushed`.
	 */
	void (*due)(struct env *env, struct slice key, int64_t seconds);

	/*
	 * Number of connections to servers established so far, constant during one turn
	 * of the event loop.
	 */
	uint64_t connects;
	/* Monotonic clock in milliseconds, constant during one turn of the event loop. */
	uint64_t now;
	int64_t unix_time; /* seconds */
	uint64_t random;   /* state of random_next() */
	uint64_t seed;     /* of hash tables */
	int servers;
	/* Milliseconds before each compaction, in `make check-slow`; needs `later`. Else 0. */
	unsigned background_pause;
	const struct rules *rules;
	const struct collection_options *options;
	struct pool *pool;
	struct large_filter *large; /* shared by all workers; NULL for none */
	struct rooms *rooms;        /* of the worker; NULL: memory for requests is not limited */
};

/*
 * Returns the clock of the key's server, by which dates of items count; our own one if it is
 * unknown.
 */
static inline int64_t env_server_time(struct env *env, struct slice key)
{
	int64_t time = env->server_time ? env->server_time(env, key) : 0;

	return time ? time : env->unix_time;
}

/* Counts steps of work. Returns true if the work must pause. */
static inline bool env_is_over(struct env *env, size_t steps)
{
	if (env->grain > steps) {
		env->grain -= steps;
		return false;
	}
	return env->is_over && env->is_over(env);
}

/* Sends a GET of the waiter's key; `want` are the fields to return. */
static inline void env_get(struct env *env, unsigned want, struct waiter *waiter)
{
	env->call(env,
		&(struct call){ .verb = CALL_GET,
			.want = want,
			.server = CALL_ANY_SERVER,
			.key = waiter->key },
		waiter);
}

#endif
