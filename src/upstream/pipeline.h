/*
 * The unanswered calls to a server, in order. Encoded calls are appended at the back; a reply
 * answers the call at the front.
 *
 *     push -> [ not written | written, unanswered ] -> read
 *
 * A get of a key that was requested before, in a call of which nothing was written yet, shares the
 * reply to that call. The server carries out that call after both requests have arrived, so the
 * reply shows a state within the time of each. A call that was written may have been answered
 * before the second request arrived, so its reply may be too old. Nor is a call shared after a
 * write: a client that writes and then reads must not receive an older state.
 *
 * It does no I/O: the owner writes the encoded bytes, reports how many were written, and passes
 * in what it reads.
 */
#ifndef UPSTREAM_PIPELINE_H
#define UPSTREAM_PIPELINE_H

#include <sys/types.h>

#include "protocol/call.h"
#include "protocol/dialect.h"
#include "util/buf.h"

struct histogram;
struct pipeline_entry;

enum { PIPELINE_RECENT = 64 };

struct pipeline {
	/* Microseconds of the owner's clock; set by the owner before it pushes a call. */
	uint64_t now;
	struct pipeline_entry *ring; /* Ring buffer; its capacity is a power of two. */
	size_t capacity, first, count;
	uint64_t encoded, written; /* Bytes since the start of the connection. */
	/* Expected bytes of large values: the sum of call.expected of all unanswered calls. */
	uint64_t expected;
	size_t patient; /* Number of unanswered calls with call.patient. */
	/*
	 * Calls are counted from 1 when they are pushed, modulo 2^32. Gets after `barrier` may be
	 * shared: by a hash of the last bytes of the key, the last one.
	 */
	uint32_t pushed, barrier;
	struct pipeline_recent {
		uint32_t number, tail;
	} recent[PIPELINE_RECENT];
};

/*
 * The call whose result is being delivered: its server, and when it was pushed. Otherwise
 * `server` is NULL.
 */
struct pipeline_answer {
	const char *server;
	uint64_t since;
};

/*
 * Data for the results: the server's name and the number of the connection. A reply with a
 * value larger than `value_max` is an error. The next three are either all set or all zero: the
 * time, the histogram of call latencies, and where the call being answered is published.
 */
struct pipeline_peer {
	const char *server;
	uint64_t connection;
	size_t value_max;
	uint64_t now; /* As pipeline.now. */
	struct histogram *latency;
	struct pipeline_answer *answer;
	size_t most; /* Maximum number of results that pipeline_read delivers; 0: no limit. */
};

/* Frees the memory of an empty pipeline. A pipeline of all zeroes is empty. */
void pipeline_free(struct pipeline *p);

/*
 * Appends the encoded `call` to `out`, or shares the reply to an earlier call; then returns
 * false. Borrows `waiter` until its result is delivered.
 */
bool pipeline_push(struct pipeline *p, const struct dialect *dialect, const struct call *call,
	struct waiter *waiter, struct buf *out);

/* Reports that `n` more of the encoded bytes were written. */
void pipeline_written(struct pipeline *p, size_t n);

/*
 * Decodes the replies in `in` and delivers each result to its waiter. A waiter may push calls.
 * Returns the number of bytes consumed, or -1 if the connection must be closed: after garbage,
 * a reply without a call, or a reply to a call that was not written completely.
 */
ssize_t pipeline_read(struct pipeline *p, struct slice in, const struct pipeline_peer *peer);

/*
 * Fails all calls. Calls that were written, even in part, get the status `sent`
 * (RESULT_TIMED_OUT or RESULT_LOST), others RESULT_UNAVAILABLE. The pipeline is empty before
 * the first result is delivered, so waiters may push calls.
 */
void pipeline_fail(struct pipeline *p, enum result_status sent, const struct pipeline_peer *peer);

/*
 * Fails the oldest calls with RESULT_UNAVAILABLE that are older than `age`, in microseconds, and of
 * which no byte was written. Requires that `out` begins with the unwritten bytes, and removes
 * the bytes of the failed calls, which count as written. Returns the number of these calls. Waiters
 * may push calls.
 */
size_t pipeline_drop(
	struct pipeline *p, uint64_t age, const struct pipeline_peer *peer, struct buf *out);

/*
 * Returns how many bytes, at most `max`, should be sent as one unit after `skip` unwritten
 * ones: as many whole calls as fit, or the next part of a call that does not fit. Returns `max`
 * if there is no call.
 */
size_t pipeline_together(const struct pipeline *p, size_t skip, size_t max);

/* Returns whether the oldest call is not completely written; false if there is none. */
bool pipeline_is_writing_first(const struct pipeline *p);

#endif
