#include "collection/rewrite/base.h"

#include "collection/machines.h"
#include "collection/text/oplog.h"
#include "util/pool.h"

static void base_on_read(struct waiter *waiter, const struct result *r);
static void base_on_stored(struct waiter *waiter, const struct result *r);
static lane_after base_on_committed;

static void end(
	struct base_rewrite *rewrite, enum outcome_status status, const struct result *failure)
{
	buf_free(&rewrite->value);
	rewrite->after(rewrite->lane, status, failure);
}

static void count_lost(const struct base_rewrite *rewrite, bool rewritten)
{
	struct lane *lane = rewrite->lane;

	lane->lanes->stats.conflicts++;
	crowd_lost(&lane->lanes->crowds, lane->hash, lane_env(lane)->now, rewritten);
}

static void read_base(struct base_rewrite *rewrite)
{
	struct env *env = lane_env(rewrite->lane);

	rewrite->waiter = (struct waiter){ base_on_read, rewrite->lane->waiter.key };
	env->call(env,
		&(struct call){ .verb = CALL_GET,
			.want = WANT_VALUE | WANT_CAS | WANT_TTL,
			.server = CALL_ANY_SERVER,
			.key = rewrite->waiter.key,
			.role.settled = true },
		&rewrite->waiter);
}

/*
 * Whether the base has the old bytes at this offset, where a token begins. Bytes without a
 * block must be in a base without one: else the base was replaced, or moved and joined with one
 * that has a block.
 */
static bool has_old_at(const struct base_rewrite *rewrite, struct slice base, size_t at)
{
	struct slice old = rewrite->old, rest = slice_skip(base, at);

	return slice_starts(rest, old) &&
		((!oplog_has_block(slice_of(base.p, at)) &&
			 !oplog_has_block(slice_skip(rest, old.n))) ||
			oplog_has_block(old));
}

/* Finds the old bytes anywhere in the base; usually they are at its start. */
static bool find_old(const struct base_rewrite *rewrite, struct slice base, size_t *at)
{
	struct slice old = rewrite->old;

	*at = 0;
	/* A search takes much longer than a comparison. */
	if (has_old_at(rewrite, base, 0))
		return true;
	for (; old.n <= base.n - *at; ++*at) {
		struct slice rest = slice_skip(base, *at);
		const char *found = memmem(rest.p, rest.n, old.p, old.n);
		if (!found)
			return false;
		*at = (size_t)(found - base.p);
		if ((*at == 0 || base.p[*at - 1] == ' ') && has_old_at(rewrite, base, *at))
			return true;
	}
	return false;
}

/* Sends the CAS with the bytes replaced at this offset. */
static void store(struct base_rewrite *rewrite, const struct result *r, size_t at)
{
	struct env *env = lane_env(rewrite->lane);
	struct buf *value = &rewrite->value;
	struct call call;

	buf_consume(value, buf_size(value));
	buf_add(value, r->value.p, at);
	buf_add_slice(value, rewrite->replacement);
	buf_add_slice(value, slice_skip(r->value, at + rewrite->old.n));
	call = keep_cas(value, r, rewrite->date);
	call.key = rewrite->lane->waiter.key;
	call.server = CALL_ANY_SERVER;
	call.role.change = CHANGE_SETTLED;
	lane_charge(rewrite->lane, call.value.n);
	rewrite->waiter = (struct waiter){ base_on_stored, call.key };
	env->call(env, &call, &rewrite->waiter);
}

static void found(struct base_rewrite *rewrite, const struct result *r)
{
	size_t at = 0;

	if (result_failed(r)) {
		end(rewrite, OUTCOME_FAILED, r);
	} else if (r->status == RESULT_MISS) {
		end(rewrite, OUTCOME_MISSING, NULL);
	} else if (!(rewrite->anywhere ? find_old(rewrite, r->value, &at)
				       : has_old_at(rewrite, r->value, 0)) ||
		rewrite->date == KEEP_UNKNOWN) {
		count_lost(rewrite, true);
		end(rewrite, OUTCOME_BUSY, NULL);
	} else {
		store(rewrite, r, at);
	}
}

static void base_on_read(struct waiter *waiter, const struct result *r)
{
	struct base_rewrite *rewrite = (struct base_rewrite *)waiter;

	if (r->status == RESULT_HIT)
		rewrite->date = keep_date(rewrite->lane, r, r->value);
	found(rewrite, r);
}

static void base_on_stored(struct waiter *waiter, const struct result *r)
{
	struct base_rewrite *rewrite = (struct base_rewrite *)waiter;
	struct lane *lane = rewrite->lane;

	if (result_failed(r)) {
		end(rewrite, OUTCOME_FAILED, r);
	} else if (r->status == RESULT_MISS) {
		end(rewrite, OUTCOME_MISSING, NULL);
	} else if (r->status == RESULT_DONE) {
		if (rewrite->attempts == 0)
			crowd_won(&lane->lanes->crowds, lane->hash);
		end(rewrite, OUTCOME_DONE, NULL);
	} else {
		count_lost(rewrite, false);
		if (++rewrite->attempts > LANE_ATTEMPTS)
			end(rewrite, OUTCOME_BUSY, NULL);
		else
			read_base(rewrite);
	}
}

void base_rewrite_head(struct base_rewrite *rewrite, struct lane *lane, struct slice prefix,
	struct slice replacement, const struct result *read, int64_t date, lane_after *after)
{
	*rewrite = (struct base_rewrite){ .lane = lane,
		.old = prefix,
		.replacement = replacement,
		.date = date,
		.after = after };
	if (read)
		found(rewrite, read);
	else
		read_base(rewrite);
}

void base_rewrite_anywhere(struct base_rewrite *rewrite, struct lane *lane, struct slice old,
	struct slice replacement, lane_after *after)
{
	*rewrite = (struct base_rewrite){ .lane = lane,
		.old = old,
		.replacement = replacement,
		.anywhere = true,
		.after = after };
	read_base(rewrite);
}

void base_commit_start(struct lane *lane)
{
	const struct op *op = lane_first(lane);
	struct base_rewrite *rewrite = pool_get(lane_env(lane)->pool, sizeof(*rewrite));

	lane->work = rewrite;
	if (op->anywhere)
		base_rewrite_anywhere(rewrite, lane, op->prefix, op->log, base_on_committed);
	else
		base_rewrite_head(
			rewrite, lane, op->prefix, op->log, NULL, DATE_NONE, base_on_committed);
}

/* The outcome's result carries the time to live of the base. */
static void base_on_committed(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct base_rewrite *rewrite = lane->work;
	struct result base = { .status = RESULT_HIT, .ttl = keep_ttl(lane, rewrite->date) };

	lane->work = NULL;
	lane_end_all(lane,
		&(struct outcome){
			.status = status, .result = status == OUTCOME_FAILED ? failure : &base });
	pool_put(lane_env(lane)->pool, rewrite, sizeof(*rewrite));
	lane_next(lane);
}
