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

/* Whether a touch with `exptime` makes an item live longer that has `ttl` seconds left. If these are not known, it may. */
static inline bool ttl_prolongs(const struct env *env, int64_t exptime, int64_t ttl)
{
	if (ttl_is_date(exptime))
		exptime -= env->unix_time;
	return ttl != TTL_NEVER && (exptime == 0 || ttl == TTL_UNKNOWN || exptime > ttl);
}

/*
 * Gives the exptime of a part whose base has, or will have, `exptime`. The part lives longer: the seconds of both are counted from
 * moments that differ, and what is read of a base that has just expired must be that it is gone. A date may be by another clock.
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
