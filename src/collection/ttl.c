#include "collection/ttl.h"

#include "protocol/dialect.h"
#include "util/num.h"

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

int64_t ttl_clock(const struct result *stats)
{
	struct slice text = stats->status == RESULT_TEXT ? stats->line : SLICE(""), line;
	int64_t now;
	size_t n;

	while (dialect_line(text, &line, &n)) {
		text = slice_skip(text, n);
		(void)slice_token(&line);
		if (slice_equal(slice_token(&line), SLICE("time")))
			return num_parse_i64(slice_token(&line), &now) ? now : 0;
	}
	return 0;
}

bool ttl_date(const struct env *env, int64_t now, int64_t ttl, int64_t *exptime)
{
	if (!ttl_exptime(env, ttl, exptime))
		return false;
	if (now && ttl != TTL_NEVER)
		*exptime = now + ttl;
	return true;
}

bool ttl_touch_of_date_is_due(
	const struct env *env, int64_t now, int64_t ttl, int64_t date, const struct result *looked, int64_t *exptime)
{
	if (looked->status != RESULT_HIT || !ttl_date(env, now, looked->ttl, exptime))
		return false;
	if (ttl == TTL_NEVER || looked->ttl == TTL_NEVER)
		return ttl != looked->ttl;
	return looked->ttl > ttl || (ttl_is_date(date) && *exptime + 1 < date);
}
