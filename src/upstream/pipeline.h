/*
 * The calls on their way to one server, in order: what is encoded goes out at the back, what comes in answers the front.
 *
 *     push -> [ not written | written, unanswered ] -> read
 *
 * No I/O is done here: the owner writes what was encoded, says how much of it went, and hands in what it has read.
 */
#ifndef UPSTREAM_PIPELINE_H
#define UPSTREAM_PIPELINE_H

#include <sys/types.h>

#include "protocol/call.h"
#include "protocol/dialect.h"
#include "util/buf.h"

struct pipeline_entry;

struct pipeline {
	struct pipeline_entry *ring; /* its capacity is a power of two */
	size_t capacity, first, count;
	uint64_t encoded, written; /* bytes, ever since the connection began */
};

/* Who speaks for the results: a name for errors, and which connection it is. A reply with a larger value is an error. */
struct pipeline_peer {
	const char *server;
	uint64_t connection;
	size_t value_max;
};

/* All zeroes is an empty pipeline; pipeline_free gives its memory back. The pipeline must be empty. */
void pipeline_free(struct pipeline *p);

/* Encodes `call` to the back of `out`; `waiter` is borrowed until it gets its result. */
void pipeline_push(struct pipeline *p, const struct dialect *dialect, const struct call *call, struct waiter *waiter,
	struct buf *out);

/* Says that `n` more of the encoded bytes were written. */
void pipeline_written(struct pipeline *p, size_t n);

/*
 * Reads replies from `in` and gives each to its waiter, in order. Gives the bytes taken, or -1 when the connection must not
 * be used any more: garbage, a reply to nothing, an answer to what was not wholly asked. A waiter may push meanwhile.
 */
ssize_t pipeline_read(struct pipeline *p, struct slice in, const struct pipeline_peer *peer);

/*
 * Ends everything: what was written at all gets `sent` (RESULT_TIMED_OUT or RESULT_LOST), the rest RESULT_UNAVAILABLE. The
 * pipeline is empty and as new before the first waiter hears of it, so that waiters may push.
 */
void pipeline_fail(struct pipeline *p, enum result_status sent, const struct pipeline_peer *peer);

#endif
