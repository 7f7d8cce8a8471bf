/*
 * Collecting operations for one append: see crowd.h. An operation that comes last of those expected starts the batch at once. So
 * the timer fires only if clients have left or pause.
 */
#include "collection/lane/lane.h"

static void timed_out(struct waiter *waiter, const struct result *r);

static void set_timer(struct lane *lane, uint64_t ms)
{
	struct env *env = lane_env(lane);

	lane->collect.done = timed_out;
	lane->collect_runs = true;
	env->later(env, &lane->collect, (unsigned)ms);
}

static void run(struct lane *lane)
{
	lane->missing = 0;
	lane_run(lane);
}

/* A timer cannot be stopped: it may have been set for an earlier batch. */
static void timed_out(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, collect));
	uint64_t now = lane_env(lane)->now;

	(void)r;
	lane->collect_runs = false;
	if (lane->missing && now < lane->collect_until)
		set_timer(lane, lane->collect_until - now);
	else if (lane->missing)
		run(lane);
	else if (!lane->running)
		lane_next(lane);
}

/* Those that wait when an append ends are in flight beside the ones that it carried out. */
static size_t expected(const struct lane *lane, size_t waiting)
{
	size_t n = lane->appended ? lane->appended + waiting : crowd_appended(&lane->lanes->crowds, lane->hash);

	return n < COLLECT_MOST ? n : COLLECT_MOST;
}

bool collect_start(struct lane *lane)
{
	struct env *env = lane_env(lane);
	const struct op *op = STAILQ_FIRST(&lane->waiting);
	size_t waiting = 0, wanted;

	if (op->kind != OP_APPEND || !env->later || crowd_share(&lane->lanes->crowds, lane->hash, env->now) == 1)
		return false;
	for (; op && waiting < COLLECT_MOST; op = STAILQ_NEXT(op, link))
		waiting++;
	wanted = expected(lane, waiting);
	lane->appended = 0;
	if (waiting >= wanted)
		return false;
	lane->missing = wanted - waiting;
	lane->running = true;
	lane->collect_until = env->now + COLLECT_MS;
	if (!lane->collect_runs)
		set_timer(lane, COLLECT_MS);
	return true;
}

void collect_came(struct lane *lane)
{
	if (--lane->missing == 0)
		run(lane);
}
