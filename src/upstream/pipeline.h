/*
 * The unanswered calls to a server, in order. Encoded calls go to the back; a reply answers the call at the front.
 *
 *     push -> [ not written | written, unanswered ] -> read
 *
 * It does no I/O: the owner writes the encoded bytes, says how many were written, and passes in what it reads.
 */
#ifndef UPSTREAM_PIPELINE_H
#define UPSTREAM_PIPELINE_H

#include <sys/types.h>

#include "protocol/call.h"
#include "protocol/dialect.h"
#include "util/buf.h"

struct histogram;
struct pipeline_entry;

struct pipeline {
	uint64_t now;                /* set by the owner before it pushes: microseconds of its clock */
	struct pipeline_entry *ring; /* its capacity is a power of two */
	size_t capacity, first, count;
	uint64_t encoded, written; /* bytes since the connection began */
	uint64_t expected;         /* bytes of large values on the way: call.expected of all calls */
};

/* While a waiter gets its result: the server, and when the call was pushed. Else `server` is NULL. */
struct pipeline_answer {
	const char *server;
	uint64_t since;
};

/*
 * Facts for the results: the server's name, and the number of the connection. A reply with a larger value is an error. The
 * other three are all set or none: where to count how long calls took, the time, and where others see whose reply is read.
 */
struct pipeline_peer {
	const char *server;
	uint64_t connection;
	size_t value_max;
	uint64_t now; /* as pipeline.now */
	struct histogram *latency;
	struct pipeline_answer *answer;
};

/* Frees the memory of a pipeline, which must be empty. One of all zeroes is empty. */
void pipeline_free(struct pipeline *p);

/* Appends the encoded `call` to `out`. Borrows `waiter` until it gets its result. */
void pipeline_push(struct pipeline *p, const struct dialect *dialect, const struct call *call, struct waiter *waiter,
	struct buf *out);

/* `n` more of the encoded bytes were written. */
void pipeline_written(struct pipeline *p, size_t n);

/*
 * Decodes the replies in `in`, and gives each to its waiter. A waiter may push. Gives the number of bytes consumed. Gives -1 if the
 * connection must be closed: after garbage, a reply without a call, or a reply to a call that was not written in full.
 */
ssize_t pipeline_read(struct pipeline *p, struct slice in, const struct pipeline_peer *peer);

/*
 * Fails all calls. Calls that were written, even in part, get `sent` (RESULT_TIMED_OUT or RESULT_LOST), others
 * RESULT_UNAVAILABLE. The pipeline is empty before the first waiter gets its result, so waiters may push.
 */
void pipeline_fail(struct pipeline *p, enum result_status sent, const struct pipeline_peer *peer);

/*
 * How many bytes, up to `max`, a receiver should get at once, behind `skip` unwritten ones: whole calls, as many as fit, or the next
 * part of a call that does not fit. Gives `max` if there is no call.
 */
size_t pipeline_together(const struct pipeline *p, size_t skip, size_t max);

/* Whether the oldest call is not written to its end; false if there is none. */
bool pipeline_is_writing_first(const struct pipeline *p);

#endif
