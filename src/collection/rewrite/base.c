#include "collection/rewrite/base.h"

#include <stddef.h>

#include "collection/machines.h"
#include "collection/text/oplog.h"
#include "collection/ttl.h"
#include "util/pool.h"

static void base_read(struct waiter *waiter, const struct result *r);
static void base_on_stored(struct cas *cas, const struct result *r);
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
	rewrite->cas.waiter = (struct waiter){ base_read, rewrite->lane->waiter.key };
	env_get(lane_env(rewrite->lane), WANT_VALUE | WANT_CAS | WANT_TTL, &rewrite->cas.waiter);
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

/* Finds the old bytes anywhere in the base. */
static bool find_old(const struct base_rewrite *rewrite, struct slice base, size_t *at)
{
	struct slice old = rewrite->old;

	for (*at = 0; old.n <= base.n - *at; ++*at) {
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

static void found(struct base_rewrite *rewrite, const struct result *r)
{
	struct env *env = lane_env(rewrite->lane);
	struct buf *value = &rewrite->value;
	int64_t exptime;
	size_t at = 0;

	if (result_failed(r)) {
		end(rewrite, OUTCOME_FAILED, r);
	} else if (r->status == RESULT_MISS) {
		end(rewrite, OUTCOME_MISSING, NULL);
	} else if (!(rewrite->anywhere ? find_old(rewrite, r->value, &at)
				       : has_old_at(rewrite, r->value, 0)) ||
		!ttl_exptime(env, r->ttl, &exptime)) {
		count_lost(rewrite, true);
		end(rewrite, OUTCOME_BUSY, NULL);
	} else {
		buf_consume(value, buf_size(value));
		buf_add(value, r->value.p, at);
		buf_add_slice(value, rewrite->replacement);
		buf_add_slice(value, slice_skip(r->value, at + rewrite->old.n));
		lane_charge(rewrite->lane, buf_size(value));
		cas_replace(&rewrite->cas, env, rewrite->lane->waiter.key, buf_slice(value), r,
			exptime, base_on_stored);
	}
}

static void base_read(struct waiter *waiter, const struct result *r)
{
	found((struct base_rewrite *)((char *)waiter - offsetof(struct base_rewrite, cas.waiter)),
		r);
}

static void base_on_stored(struct cas *cas, const struct result *r)
{
	struct base_rewrite *rewrite = (struct base_rewrite *)cas;
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
	struct slice replacement, const struct result *read, lane_after *after)
{
	*rewrite = (struct base_rewrite){
		.lane = lane, .old = prefix, .replacement = replacement, .after = after
	};
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
		base_rewrite_head(rewrite, lane, op->prefix, op->log, NULL, base_on_committed);
}

/* The outcome's result carries the time to live of the base. */
static void base_on_committed(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct base_rewrite *rewrite = lane->work;
	struct result base = { .status = RESULT_HIT, .ttl = rewrite->cas.ttl };

	lane->work = NULL;
	lane_end_all(lane,
		&(struct outcome){
			.status = status, .result = status == OUTCOME_FAILED ? failure : &base });
	pool_put(lane_env(lane)->pool, rewrite, sizeof(*rewrite));
	lane_next(lane);
}
