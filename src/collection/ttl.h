/*
 * The arithmetic of times to live. A rewrite must keep the time to live of an item, but memcached gives a new one
 * with each write, and reports only the seconds that are left.
 */
#ifndef COLLECTION_TTL_H
#define COLLECTION_TTL_H

#include "collection/env.h"

enum { TTL_RELATIVE_MAX = 60 * 60 * 24 * 30 /* seconds; memcached takes a larger exptime as a unix time */ };

/*
 * Gives the exptime with which an item lives `ttl` seconds from now. False if the time to live is unknown, or about
 * to run out: then it cannot be kept.
 */
bool ttl_exptime(const struct env *env, int64_t ttl, int64_t *exptime);

/*
 * Called after a CAS that kept the time `ttl` of the read. `looked` is a read right before the CAS. True if it shows
 * that another client touched the item after the read: then touch the item with `exptime`.
 */
bool ttl_touch_is_due(const struct env *env, int64_t ttl, const struct result *looked, int64_t *exptime);

/* The server's clock, from the result of a STATS: seconds since 1970, or 0 if it does not say. */
int64_t ttl_clock(const struct result *stats);

/*
 * Gives the exptime of an item that had `ttl` seconds left when the server's clock showed `now`: a date by that clock. If `now`
 * is 0, the same as ttl_exptime. False as there.
 */
bool ttl_date(const struct env *env, int64_t now, int64_t ttl, int64_t *exptime);

/*
 * The same as ttl_touch_is_due, after a CAS with the exptime `date` of ttl_date. `now` is the server's clock at the time of
 * `looked`, or later. `ttl` was read before, so a longer one is the touch of another client.
 */
bool ttl_touch_of_date_is_due(
	const struct env *env, int64_t now, int64_t ttl, int64_t date, const struct result *looked, int64_t *exptime);

static inline bool ttl_is_date(int64_t exptime)
{
	return exptime > TTL_RELATIVE_MAX;
}

#endif
