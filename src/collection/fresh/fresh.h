/*
 * Reads that are answered from memory, for keys whose rule has fresh_for: a layer between lanes
 * and servers, one for each generation of a worker.
 *
 *     read  -> in memory, valid and young enough: the result, at the end of the turn
 *           -> in flight, and was sent recently: shares its result
 *           -> else a call, whose result is kept
 *     write -> a call; the result in memory is invalid from then on. If it stored a whole item,
 *              the item is kept
 *
 * A result ages from the time at which its call was made, since the server may have answered the
 * call at any time after that. So a read returns a state that is less than fresh_for milliseconds
 * old. The worker's clock is read again for each read, since a turn may take long.
 *
 * Only reads that no write depends on (call.only_reads) are answered from memory. A machine that
 * reads a base again, because it lacked a part, asks the server (READS_LATEST).
 * Writes of other workers are noticed by slots.h. A client's own writes on the same connection
 * have begun before its next reads do: these ask the server while a write is in progress.
 */
#ifndef COLLECTION_FRESH_FRESH_H
#define COLLECTION_FRESH_FRESH_H

#include "collection/env.h"
#include "collection/fresh/slots.h"

struct fresh;

/* Totals; `bytes` is in use now. Several struct fresh may count in one of these. */
struct fresh_stats {
	uint64_t hits, shared, misses, bytes;
};

struct fresh_options {
	struct env *env;
	/* As env.call: sends a call to its server. */
	void (*call)(struct env *env, const struct call *call, struct waiter *waiter);
	/* Returns the current monotonic time in milliseconds. */
	uint64_t (*clock)(struct env *env);
	/*
	 * Returns a time by the same clock that is never earlier than now, and takes less than
	 * `clock`. NULL: there is none.
	 */
	uint64_t (*not_before)(struct env *env);
	/*
	 * Calls the waiter with an empty result after the return: in the same turn of the loop,
	 * or if `later`, after all ready I/O.
	 */
	void (*soon)(struct env *env, struct waiter *waiter, bool later);
	/*
	 * Returns whether all writers of the process use the slots, with these rules. NULL: they
	 * always do.
	 */
	bool (*usable)(struct env *env);
	struct fresh_slots *slots;
	struct fresh_stats *stats;
	size_t limit; /* maximum bytes in memory */
};

/* Borrows what the options point to until fresh_destroy, which requires that no call is pending. */
struct fresh *fresh_create(const struct fresh_options *options);
/* NULL does nothing. */
void fresh_destroy(struct fresh *fresh);

/* The same as env.call. */
void fresh_call(struct fresh *fresh, const struct call *call, struct waiter *waiter);

#endif
