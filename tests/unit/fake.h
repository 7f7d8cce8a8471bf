/*
 * A host without a network: the calls that tasks and lanes make are kept until the test answers
 * them, and the replies to the client are kept as text. It does not use Check, so that fuzzers can
 * use it too; invalid use is an assert.
 *
 *     fake_ask("sadd k a\r\n")                         a client's request
 *     fake_calls()  ->  "append k 0 0 3\r\n+a \r\n"      the call to a server, in the meta dialect
 *     fake_answer("STORED\r\n")                        the server's reply
 *     fake_told()   ->  "STORED\r\n"                   the reply to the client
 */
#ifndef UNIT_FAKE_H
#define UNIT_FAKE_H

#include <sys/queue.h>

#include "collection/lane/lanes.h"
#include "command/task.h"

struct fake_call {
	struct call call; /* its slices are the fake's own copies */
	struct waiter *waiter;
	char *bytes;
	bool answered;
};

struct fake {
	struct host host;
	struct rules rules;
	struct pool pool;
	struct fake_call *calls; /* all calls that were ever made */
	size_t count, capacity, answered;
	size_t first; /* earlier calls are answered */
	size_t shown; /* number of calls that fake_calls has returned */
	STAILQ_HEAD(, task) tasks;
	struct account account; /* of the client */
	/* of another client, which sends the requests from now on; NULL: none */
	struct account *other;
	struct fake_turn { /* subscribers of the time */
		struct waiter *waiter;
		uint64_t at;
	} * turns;
	size_t turn_count;
	size_t slice;        /* steps of work in a slice, except for the last one */
	struct buf out;      /* bytes for the client that the test has not read */
	struct buf trash;    /* replies of quiet tasks */
	struct buf text;     /* the last returned text */
	uint64_t connection; /* on which replies arrive */
};

void fake_init(struct fake *f);
/* The same with other options, before any request. */
void fake_take(struct fake *f, const struct collection_options *options);
/* All calls must be answered, and all tasks done. */
void fake_fini(struct fake *f);

/* Returns the number of bytes that tasks hold and use. */
size_t fake_used(const struct fake *f);

/*
 * Starts the requests of one client in `text`, up to one whose data block is too long. Returns
 * NULL, or the error.
 */
const char *fake_ask(struct fake *f, const char *text);

/* Returns the calls that were made since the last time. */
const char *fake_calls(struct fake *f);

/*
 * Answers the oldest pending calls, one for each reply in `text`. Returns NULL if all of it was
 * valid.
 */
const char *fake_answer(struct fake *f, const char *text);

/* Answers one call, counted from 0 among all calls. */
void fake_result(struct fake *f, size_t i, const struct result *r);
/* Answers the oldest pending call with a failure. */
void fake_fail(struct fake *f, enum result_status status);

/* Return how many calls are pending; the first of them. */
size_t fake_waiting(const struct fake *f);
size_t fake_oldest(const struct fake *f);

/*
 * From now on the host has timers, and work is done in slices, as `slice` specifies:
 * host.env.later, is_over and pause.
 */
void fake_has_time(struct fake *f);
/*
 * Advances the time by these milliseconds, and calls the timers that are due. Returns how many
 * there were.
 */
size_t fake_pass(struct fake *f, uint64_t ms);

/* Returns the bytes for the client since the last time. */
const char *fake_told(struct fake *f);

#endif
