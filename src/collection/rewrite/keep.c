#include "collection/rewrite/keep.h"

#include "collection/ttl.h"

int64_t keep_date(const struct lane *lane, const struct result *r, struct slice base)
{
	int64_t date = date_last(base), now, exptime;

	if (date == 0 || (date == DATE_NONE && r->ttl == TTL_NEVER))
		return date;
	now = env_server_time(lane_env(lane), lane->waiter.key);
	if (date > now)
		return date;
	/* The touch of the item may not have been executed yet. */
	if (date > now - DATE_LATE)
		return KEEP_UNKNOWN;
	if (r->ttl == TTL_NEVER)
		return 0;
	return ttl_exptime(lane_env(lane), r->ttl, &exptime) ? now + r->ttl : KEEP_UNKNOWN;
}

int64_t keep_date_from(const struct lane *lane, int64_t exptime)
{
	if (exptime == 0 || ttl_is_date(exptime))
		return exptime;
	return env_server_time(lane_env(lane), lane->waiter.key) + exptime;
}

int64_t keep_ttl(const struct lane *lane, int64_t date)
{
	int64_t left;

	if (date <= 0)
		return TTL_NEVER;
	left = date - env_server_time(lane_env(lane), lane->waiter.key);
	return left < 1 ? 1 : left;
}

int64_t keep_exptime(const struct lane *lane, int64_t date)
{
	int64_t ttl = keep_ttl(lane, date);

	return ttl == TTL_NEVER ? 0 : ttl_is_date(ttl) ? date : ttl;
}

struct call keep_cas(struct buf *value, const struct result *read, int64_t date)
{
	date_set(value, date);
	return (struct call){
		.verb = CALL_CAS,
		.value = buf_slice(value),
		.expected = (uint32_t)buf_size(value),
		.flags = read->flags,
		.exptime = date > 0 ? date : 0,
		.number = read->cas,
		.connection = read->connection,
	};
}

enum outcome_status keep_check(const struct result *read, int64_t date)
{
	if (read->cas == 0)
		return OUTCOME_NO_CAS;
	return date == KEEP_UNKNOWN ? OUTCOME_BUSY : OUTCOME_DONE;
}

void keep_send(struct lane *lane, struct buf *value, const struct result *read, int64_t date,
	struct call_role role, lane_step *done)
{
	struct call call = keep_cas(value, read, date);

	call.role = role;
	lane_charge(lane, call.value.n);
	lane_call(lane, &call, done);
}

void keep_append(struct lane *lane, const struct result *read, struct slice base, int64_t date,
	struct slice words, lane_step *done)
{
	const struct call_role role = {
		.change = CHANGE_WORDS,
		.words = (uint32_t)words.n,
		.claims = lane_first(lane)->kind == OP_CLAIM,
	};
	struct buf value = BUF_EMPTY;

	buf_add_slice(&value, base);
	buf_add_slice(&value, words);
	keep_send(lane, &value, read, date, role, done);
	buf_free(&value);
}
