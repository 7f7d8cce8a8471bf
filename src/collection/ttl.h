/*
 * Arithmetic of times to live. A rewrite must preserve the time to live of an item, but
 * memcached sets a new one with each write, and reports only the seconds left.
 */
#ifndef COLLECTION_TTL_H
#define COLLECTION_TTL_H

#include "collection/env.h"

enum { TTL_RELATIVE_MAX = 60 * 60 * 24 * 30 /* seconds; a larger exptime is a unix time */ };

static inline bool ttl_is_date(int64_t exptime)
{
	return exptime > TTL_RELATIVE_MAX;
}

/*
 * Stores in `exptime` the value with which an item lives `ttl` seconds from now. Returns false
 * if the time to live is unknown or about to run out: then it cannot be preserved.
 */
static inline bool ttl_exptime(const struct env *env, int64_t ttl, int64_t *exptime)
{
	/* An expired time is reported as 0 or, if it is negative, as a huge number. */
	if (ttl == TTL_UNKNOWN || ttl == 0 || ttl > INT32_MAX)
		return false;
	*exptime = ttl == TTL_NEVER ? 0 : !ttl_is_date(ttl) ? ttl : env->unix_time + ttl;
	return true;
}

/*
 * Returns whether a touch with `exptime` extends the life of an item with `ttl` seconds left.
 * True if `ttl` is unknown.
 */
static inline bool ttl_prolongs(const struct env *env, int64_t exptime, int64_t ttl)
{
	if (ttl_is_date(exptime))
		exptime -= env->unix_time;
	return ttl != TTL_NEVER && (exptime == 0 || ttl == TTL_UNKNOWN || exptime > ttl);
}

/*
 * Returns the exptime of a part whose base has, or will have, `exptime`. The part lives longer:
 * the seconds of both are counted from different moments, and a base that has just expired must
 * be read as missing. A date may be by another clock.
 */
static inline int64_t ttl_of_part(const struct env *env, int64_t exptime)
{
	enum { MARGIN = 10, MARGIN_OF_DATE = 600 /* seconds */ };

	if (exptime == 0)
		return 0;
	if (ttl_is_date(exptime))
		return exptime + MARGIN_OF_DATE;
	exptime = (exptime < 0 ? 0 : exptime) + MARGIN;
	return ttl_is_date(exptime) ? env->unix_time + exptime + MARGIN_OF_DATE : exptime;
}

#endif
