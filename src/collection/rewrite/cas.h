/*
 * A write that preserves the time to live of an item that does not store its date: an item of an
 * adopted encoding, or any item that moves. For bases of oplog, which store it, see keep.h.
 * memcached sets a new time to live with each `cas`, and `touch` changes it without changing the
 * CAS token.
 *
 *     read the time to live, and pipeline the write after it
 *         -> stored, and that time is not the one of the first read
 *                -> touch the item with that time -> done;
 *                   if it is a date, read the server's clock before
 *         -> else                                 -> done
 *
 * A time to live of more than 30 days is written as a date, by the server's clock; so is one
 * that is copied from another item. If a date were derived from our own clock and corrected
 * later, other proxies that rewrite the item meanwhile would take it for the true one. So the
 * server's clock is read first, between two reads of the time to live: if both return the same,
 * the date is exact.
 *
 *     read time to live, clock, time to live
 *         -> the two differ: again
 *         -> else: read time to live and clock, and pipeline the write after them, as above
 */
#ifndef COLLECTION_REWRITE_CAS_H
#define COLLECTION_REWRITE_CAS_H

#include "collection/env.h"
#include "protocol/failure.h"

struct cas {
	struct env *env;
	struct waiter waiter, look, clock;
	size_t pending;       /* calls in flight */
	struct result looked; /* without slices, like `last` */
	struct result last;   /* of `waiter` */
	struct failure failure;
	int64_t now; /* seconds by the server's clock; 0 if unknown */
	/*
	 * When the write was answered, and when the clock was requested: milliseconds
	 * by our clock.
	 */
	uint64_t written, asked;
	struct call call;
	struct buf value; /* value of the call, until it is sent */
	struct slice like;
	bool exact; /* the exptime is a date by the server's clock */
	unsigned tries;
	int64_t ttl; /* seconds; time to live of the item when `done` is called */
	/*
	 * In the same unit as `written`: the time to live was read, or copied, after `since`;
	 * the last calls were sent at `sent`.
	 */
	uint64_t since, sent;
	struct cas_life {
		int64_t ttl;
		uint64_t since; /* a moment before it was set or read */
		/* The date by the server's clock; 0 if it is unknown or the item never expires. */
		int64_t end;
	} first, former, given; /* set by the write; our call before the last; the last call */
	void (*next)(struct cas *cas);
	void (*done)(struct cas *cas, const struct result *r);
};

/*
 * Sends `call`, a CAS or ADD whose exptime means `ttl` seconds, the time to live of the item
 * `like`. Calls `done` with its result, never within this function; the result is MISS also if
 * that item is gone. `cas` and the keys must stay valid until then; other slices are borrowed
 * until the return. If `like` is the key of the call, a touch by another client right before
 * the write is preserved.
 */
void cas_send(struct cas *cas, struct env *env, struct call call, struct slice like, int64_t ttl,
	void (*done)(struct cas *cas, const struct result *r));

#endif
