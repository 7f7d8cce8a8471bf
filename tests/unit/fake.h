/*
 * A host without a network: the calls that tasks and lanes make are kept until the test answers
 * them, and what a client would be sent is kept as text. It knows nothing of Check, so that fuzzers
 * can use it too; what is wrong in itself is an assert.
 *
 *     fake_ask("sadd k a\r\n")                         a client's request
 *     fake_calls()  ->  "append k 0 0 3\r\n+a \r\n"      what a server is asked for it, in the meta dialect
 *     fake_answer("STORED\r\n")                        what the server says
 *     fake_told()   ->  "STORED\r\n"                   what the client is told
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
	struct fake_call *calls; /* all that were ever made */
	size_t count, capacity, answered;
	size_t first; /* those before it are answered */
	size_t shown; /* calls that fake_calls has told */
	STAILQ_HEAD(, task) tasks;
	struct account account; /* of the client */
	struct account *other;  /* of another client, whose requests come from now on; NULL: none do */
	struct fake_turn {      /* those that want to be told of the time */
		struct waiter *waiter;
		uint64_t at;
	} * turns;
	size_t turn_count;
	size_t slice;        /* steps of work in a slice, but for the last one */
	struct buf out;      /* what the client was sent and the test has not seen */
	struct buf trash;    /* what quiet tasks say */
	struct buf text;     /* what was shown last */
	uint64_t connection; /* on which answers come */
};

void fake_init(struct fake *f);
/* The same with other options: nothing has been asked yet. */
void fake_take(struct fake *f, const struct collection_options *options);
/* Everything must have been answered and be done. */
void fake_fini(struct fake *f);

/* Bytes that tasks hold and use. */
size_t fake_used(const struct fake *f);

/* Starts the requests in `text`, one client's, up to one whose data block is too long. NULL when all went well, else what did not. */
const char *fake_ask(struct fake *f, const char *text);

/* The calls that were made since the last time. */
const char *fake_calls(struct fake *f);

/* Answers the oldest calls that wait, as many as `text` has replies for. NULL when all of it was
 * understood. */
const char *fake_answer(struct fake *f, const char *text);

/* Answers one call, counted from 0 among those ever made. */
void fake_result(struct fake *f, size_t i, const struct result *r);
/* Answers the oldest call that waits, with a failure. */
void fake_fail(struct fake *f, enum result_status status);

/* How many calls wait for an answer, and the first of them. */
size_t fake_waiting(const struct fake *f);
size_t fake_oldest(const struct fake *f);

/* From now on there is a time to wait for, and work is done in slices, as `slice` says: host.env.later, is_over and pause. */
void fake_has_time(struct fake *f);
/* So many milliseconds pass, and those that waited for that long are told; gives how many those were. */
size_t fake_pass(struct fake *f, uint64_t ms);

/* What the client was sent since the last time. */
const char *fake_told(struct fake *f);

#endif
