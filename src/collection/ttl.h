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

/*
 * Called after a CAS with the date `exptime`; `after` is a read behind it. True if its time to live differs from
 * `ttl` by at most 2 seconds, because memcached's clock is not in step with ours: then touch the item with the
 * corrected `exptime`. A larger difference is the touch of another client.
 */
bool ttl_date_is_off(int64_t ttl, const struct result *after, int64_t *exptime);

static inline bool ttl_is_date(int64_t exptime)
{
	return exptime > TTL_RELATIVE_MAX;
}

#endif
