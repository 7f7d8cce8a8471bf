/*
 * The arithmetic of times to live. A rewrite has to give an item the time that it had, and memcached tells only how many
 * seconds are left.
 */
#ifndef COLLECTION_TTL_H
#define COLLECTION_TTL_H

#include "collection/env.h"

enum { TTL_RELATIVE_MAX = 60 * 60 * 24 * 30 /* seconds; memcached takes a longer time to live for a date */ };

/*
 * The exptime with which an item lives `ttl` seconds from now on. False when the time to live cannot be kept: it is unknown, or
 * the item is about to expire.
 */
bool ttl_exptime(const struct env *env, int64_t ttl, int64_t *exptime);

/*
 * After a CAS that kept the time `ttl` of the read: whether somebody touched the item meanwhile, which `looked`, a read right
 * before the CAS, shows. Then `exptime` is the time to touch it with.
 */
bool ttl_touch_is_due(const struct env *env, int64_t ttl, const struct result *looked, int64_t *exptime);

/*
 * After a CAS with the date `exptime`: whether `after`, a read behind it, shows a time that is a little off, since memcached's
 * clock and ours need not tick together. Then `exptime` is corrected. A time that is off by more is somebody's touch.
 */
bool ttl_date_is_off(int64_t ttl, const struct result *after, int64_t *exptime);

static inline bool ttl_is_date(int64_t exptime)
{
	return exptime > TTL_RELATIVE_MAX;
}

#endif
