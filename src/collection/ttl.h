/*
 * The arithmetic of times to live. A rewrite must keep the time to live of an item, but memcached gives a new one
 * with each write, and reports only the seconds that are left.
 */
#ifndef COLLECTION_TTL_H
#define COLLECTION_TTL_H

#include "collection/env.h"

enum { TTL_RELATIVE_MAX = 60 * 60 * 24 * 30 /* seconds; memcached takes a larger exptime as a unix time */ };

static inline bool ttl_is_date(int64_t exptime)
{
	return exptime > TTL_RELATIVE_MAX;
}

/*
 * Gives the exptime with which an item lives `ttl` seconds from now. False if the time to live is unknown, or about
 * to run out: then it cannot be kept.
 */
static inline bool ttl_exptime(const struct env *env, int64_t ttl, int64_t *exptime)
{
	/* An expired time shows as 0 or, if it is below 0, as a huge number. */
	if (ttl == TTL_UNKNOWN || ttl == 0 || ttl > INT32_MAX)
		return false;
	*exptime = ttl == TTL_NEVER ? 0 : !ttl_is_date(ttl) ? ttl : env->unix_time + ttl;
	return true;
}

#endif
