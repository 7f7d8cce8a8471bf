/*
 * What the pure layers need of the world around them: somebody who carries calls to servers, the time, chance, and the
 * rules of the configuration. The daemon's worker is one host, a test or a simulation another.
 */
#ifndef COLLECTION_HOST_H
#define COLLECTION_HOST_H

#include <stdint.h>

#include "collection/options.h"
#include "collection/rules.h"
#include "collection/tally.h"
#include "protocol/call.h"
#include "util/pool.h"

struct lanes;
struct large_filter;
struct shared;
struct task;

struct host {
	/* Sends a call; its slices are done with on return, the waiter gets one result, later. */
	void (*call)(struct host *host, const struct call *call, struct waiter *waiter);
	/*
	 * Has the waiter told, with a result that says nothing, `ms` milliseconds from now, or with 0 once others had their turn:
	 * for what lost a race, and for long work in slices. NULL where there is no such thing as time.
	 */
	void (*later)(struct host *host, struct waiter *waiter, unsigned ms);
	/* A task begins: its reply comes behind those of its owner's earlier tasks. */
	void (*begin)(struct task *task);
	/* Where the next bytes of a task's reply go: valid until anything else is done with the host. */
	struct buf *(*reply)(struct task *task);
	/*
	 * Puts a text into a task's reply, behind what is there, without a copy; false where it has to be copied. NULL where it
	 * always has to be.
	 */
	bool (*share)(struct task *task, struct shared *text);
	/* Whether the task's client has room for more; NULL for always. Where it has not, task->resume is called when it has. */
	bool (*room)(const struct task *task);
	/* Whose requests must keep their order, by the owner of a task; NULL where that is the owner itself. */
	const void *(*client)(const void *owner);
	/* The task has replied in full; it is not touched again by whoever says so. */
	void (*done)(struct task *task);

	uint64_t now;      /* milliseconds of a clock that never jumps, for this turn of the loop */
	int64_t unix_time; /* seconds */
	uint64_t random;   /* state of random_next() */
	uint64_t seed;     /* of the hash tables */
	int servers;       /* how many there are */
	struct tally_memo bucket;
	const struct rules *rules;
	const struct collection_options *options;
	struct lanes *lanes;
	struct pool *pool;
	struct large_filter *large; /* shared with other hosts; NULL for none */

	uint64_t event_size; /* bytes of a stored event, of those that were read lately */
};

#endif
