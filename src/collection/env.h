/*
 * The world, as machines see it: calls to servers, time, random numbers, rules, options. A worker, a test or the
 * simulation fills it in.
 */
#ifndef COLLECTION_ENV_H
#define COLLECTION_ENV_H

#include <stdint.h>

#include "collection/rules.h"
#include "protocol/call.h"
#include "util/pool.h"

/* Settings that all collections of a process share. */
struct collection_options {
	size_t base_size;    /* bytes of a list's base, or of an item in an adopted encoding, that trigger compaction */
	size_t segment_size; /* maximum bytes of a list's segment */
	size_t log_size;     /* bytes of a set's log that trigger folding, and spilling to a table */
	size_t table_size;   /* maximum bytes of a table */
	size_t cache;        /* bytes of memory for views, tables and indexes */
	size_t result_max;   /* bytes that a result may have which is collected before it is sent; 0 for no limit */
	size_t block;        /* bytes that such a command reads of a set at once; 0 for as many as usual */
	size_t merges;       /* concurrent merges of runs in one worker */
	size_t lease_time;   /* seconds for which a lease runs that says nothing else */
};

struct account;
struct large_filter;

struct env {
	/*
	 * Sends a call. Its slices are borrowed until the return. The waiter must stay, and gets exactly one result,
	 * after the return.
	 */
	void (*call)(struct env *env, const struct call *call, struct waiter *waiter);
	/*
	 * Calls the waiter with an empty result after `ms` milliseconds, or after all ready I/O when `ms` is 0. NULL
	 * if there are no timers: then work is not sliced, and appends are never held back.
	 */
	void (*later)(struct env *env, struct waiter *waiter, unsigned ms);

	/*
	 * Work is done in slices. Once it has made `grain` steps, of about 50 ns each, env_is_over asks whether the slice is over,
	 * which sets `grain` again. Then the work calls `pause`, which calls the waiter with an empty result in the next slice of
	 * the account's payer; `account` is NULL if no client waits. NULL both if work is not sliced.
	 */
	bool (*is_over)(struct env *env);
	void (*pause)(struct env *env, struct waiter *waiter, const struct account *account);
	size_t grain;

	/*
	 * Reports the size of a set or list that was read or compacted: its members or elements, and its stored bytes,
	 * approximately. Called at most once a second for a key, which is borrowed for the call. NULL for no reports.
	 */
	void (*measured)(struct env *env, struct slice key, uint64_t members, uint64_t bytes);

	/* A set or list under a key of this rule was read: it exists, or is missing. NULL: reads are not counted. */
	void (*was_read)(struct env *env, const struct collection_rule *rule, bool exists);

	/* Elements were pushed to the list of this key, which is borrowed. NULL: nobody waits for any. */
	void (*pushed)(struct env *env, struct slice key);

	uint64_t connects; /* counts the connections to servers that came up, fixed during one turn of the event loop */
	uint64_t now;      /* monotonic clock in milliseconds, fixed during one turn of the event loop */
	int64_t unix_time; /* seconds */
	uint64_t random;   /* state of random_next() */
	uint64_t seed;     /* of hash tables */
	int servers;
	unsigned
		background_pause; /* milliseconds before each compaction, in `make check-slow`; needs `later`. Else 0 */
	const struct rules *rules;
	const struct collection_options *options;
	struct pool *pool;
	struct large_filter *large; /* shared by all workers; NULL for none */
};

/* Counts steps of work. True if the work must pause. */
static inline bool env_is_over(struct env *env, size_t steps)
{
	if (env->grain > steps) {
		env->grain -= steps;
		return false;
	}
	return env->is_over && env->is_over(env);
}

/* Sends a GET of `want`. The key is the waiter's. */
static inline void env_get(struct env *env, unsigned want, struct waiter *waiter)
{
	env->call(env, &(struct call){ .verb = CALL_GET, .want = want, .server = CALL_ANY_SERVER, .key = waiter->key },
		waiter);
}

#endif
