/*
 * Holding appends to a crowded key back: see crowd.h. Operations that arrive meanwhile wait in the lane and become
 * one append.
 */
#include "collection/lane/batch.h"
#include "collection/lane/lane.h"
#include "util/random.h"

static void woke(struct waiter *waiter, const struct result *r);
static lane_step looked;

static unsigned share_of(const struct lane *lane)
{
	return crowd_share(&lane->lanes->crowds, lane->hash, lane_env(lane)->now);
}

bool lane_looks_often(struct lane *lane)
{
	return share_of(lane) > 1 && (random_next(&lane_env(lane)->random) & 3) == 0;
}

void lane_grew(struct lane *lane, size_t size)
{
	unsigned share = share_of(lane);

	if (size <= crowd_limit(share, lane_log_size(lane), lane->written))
		return;
	if (share > 1 && lane_env(lane)->later)
		lane->grown = true;
	else
		lane_compact(lane);
}

void lane_request_compaction(struct lane *lane)
{
	if (share_of(lane) <= 2 || !lane_env(lane)->later)
		lane_compact(lane);
}

static void wait(struct lane *lane)
{
	enum { FEW = 4 };
	struct env *env = lane_env(lane);

	lane->hold.done = woke;
	env->later(env, &lane->hold, (share_of(lane) > FEW) + (unsigned)(random_next(&env->random) & 1));
}

bool hold_start(struct lane *lane)
{
	struct env *env = lane_env(lane);

	if (!lane->grown)
		return false;
	lane->running = true;
	if (lane->hold_until == 0)
		lane->hold_until = env->now + HOLD_MAX;
	wait(lane);
	return true;
}

static void woke(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, hold));

	(void)r;
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_SIZE }, looked);
}

static void end(struct lane *lane)
{
	lane->grown = false;
	lane->hold_until = 0;
	lane_next(lane);
}

/* A merge that waits to commit has found its quiet moment: its COMMIT runs next. */
static bool take_commit(struct lane *lane)
{
	struct op *op;

	STAILQ_FOREACH(op, &lane->waiting, link) {
		if (op->kind != OP_COMMIT)
			continue;
		STAILQ_REMOVE(&lane->waiting, op, op, link);
		STAILQ_INSERT_HEAD(&lane->waiting, op, link);
		return true;
	}
	return false;
}

static void looked(struct lane *lane, const struct result *r)
{
	struct env *env = lane_env(lane);
	unsigned share = share_of(lane);

	if (r->status != RESULT_HIT || r->size <= crowd_limit(share, lane_log_size(lane), lane->written)) {
		end(lane);
	} else if (take_commit(lane)) {
		lane_run(lane);
	} else if (random_next(&env->random) % share == 0) {
		lane->grown = false;
		lane->hold_until = 0;
		lane_compact(lane);
		lane_run(lane);
	} else if (env->now >= lane->hold_until) {
		end(lane);
	} else {
		wait(lane);
	}
}
