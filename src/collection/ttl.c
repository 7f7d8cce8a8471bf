#include "collection/ttl.h"

#include <stdlib.h>

bool ttl_exptime(const struct env *env, int64_t ttl, int64_t *exptime)
{
	/* An expired time shows as 0 or, if it is below 0, as a huge number. */
	if (ttl == TTL_UNKNOWN || ttl == 0 || ttl > INT32_MAX)
		return false;
	*exptime = ttl == TTL_NEVER ? 0 : !ttl_is_date(ttl) ? ttl : env->unix_time + ttl;
	return true;
}

bool ttl_touch_is_due(const struct env *env, int64_t ttl, const struct result *looked, int64_t *exptime)
{
	return looked->status == RESULT_HIT && looked->ttl != ttl && ttl_exptime(env, looked->ttl, exptime);
}

bool ttl_date_is_off(int64_t ttl, const struct result *after, int64_t *exptime)
{
	enum { NEAR = 2 };

	if (after->status != RESULT_HIT || after->ttl == TTL_NEVER || after->ttl == ttl ||
		llabs(after->ttl - ttl) > NEAR)
		return false;
	*exptime += ttl - after->ttl;
	return true;
}
