/*
 * Collecting operations for one append: see crowd.h. The last of the expected operations starts the batch at once. So the timer
 * matters only if clients have left or pause.
 */
#include "collection/lane/lane.h"

static void run(struct lane *lane)
{
	lane->missing = 0;
	lane_run(lane);
}

/* A timer cannot be stopped. One that was set for an earlier batch shortens the wait. */
static void timed_out(struct waiter *waiter, const struct result *r)
{
	struct lane *lane = (struct lane *)((char *)waiter - offsetof(struct lane, collect));

	(void)r;
	lane->collect_runs = false;
	if (lane->missing)
		run(lane);
	else if (!lane->running)
		lane_next(lane);
}

static void set_timer(struct lane *lane)
{
	struct env *env = lane_env(lane);

	if (lane->collect_runs)
		return;
	lane->collect.done = timed_out;
	lane->collect_runs = true;
	env->later(env, &lane->collect, COLLECT_MS);
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
	set_timer(lane);
	return true;
}

void collect_came(struct lane *lane)
{
	if (--lane->missing == 0)
		run(lane);
}
