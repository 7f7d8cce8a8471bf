#include "net/work.h"

#include "util/clock.h"

void payer_init(struct payer *payer)
{
	*payer = (struct payer){ 0 };
	TAILQ_INIT(&payer->works);
}

void payer_leave(struct payer *payer, struct work *work)
{
	struct loop_job *job;

	while ((job = TAILQ_FIRST(&payer->works))) {
		work_forget(work, job);
		work_add(work, NULL, job);
	}
}

void work_init(struct work *work)
{
	*work = (struct work){ 0 };
	turns_init(&work->payers, WORK_SLICE_US);
	payer_init(&work->own);
}

/*
 * Reading the CPU time is a system call, so it is not done in each turn: several short turns
 * may count as one.
 */
static void look_for_long_turn(struct work *work, uint64_t now_us)
{
	uint64_t used;

	if (now_us - work->looked_at < WORK_LOOK_US)
		return;
	used = clock_us(CLOCK_THREAD_CPUTIME_ID);
	work->long_turns += used > work->used + WORK_LONG_US;
	work->used = used;
	work->looked_at = now_us;
}

void work_begin_turn(struct work *work, uint64_t now_us)
{
	look_for_long_turn(work, now_us);
	work->slice_end = now_us + WORK_SLICE_US;
	work->input_end = now_us + WORK_INPUT_US;
	work->result_end = 0;
}

bool work_is_queued(const struct work *work)
{
	return !turns_are_empty(&work->payers);
}

void work_add(struct work *work, struct payer *payer, struct loop_job *job)
{
	if (job->due)
		return;
	job->due = JOB_WORK;
	job->payer = payer ? payer : &work->own;
	TAILQ_INSERT_TAIL(&job->payer->works, job, link);
	if (!job->payer->turn.waits)
		turns_wait(&work->payers, &job->payer->turn);
}

static void take_job(struct payer *payer, struct loop_job *job)
{
	TAILQ_REMOVE(&payer->works, job, link);
	job->due = JOB_NOT_QUEUED;
}

void work_forget(struct work *work, struct loop_job *job)
{
	struct payer *payer = job->payer;

	if (job->due != JOB_WORK)
		return;
	take_job(payer, job);
	if (TAILQ_EMPTY(&payer->works) && payer->turn.waits)
		turns_leave(&work->payers, &payer->turn);
}

bool work_is_over(const struct work *work)
{
	return clock_us(CLOCK_MONOTONIC) >= work->slice_end;
}

/* Each request has a fixed cost, however short it is. */
bool work_input_is_over(struct work *work, size_t bytes)
{
	enum { REQUEST = 64, LOOK = 8 * 1024 };

	work->input_seen += bytes + REQUEST;
	if (work->input_seen < LOOK)
		return false;
	work->input_seen = 0;
	return clock_us(CLOCK_MONOTONIC) >= work->input_end;
}

bool work_results_are_over(struct work *work)
{
	uint64_t now = clock_us(CLOCK_MONOTONIC);

	if (!work->result_end)
		work->result_end = now + WORK_INPUT_US;
	return now >= work->result_end;
}

/*
 * Runs the first job of the next payer, and charges the payer. A payer that calls payer_leave()
 * in its own job must still exist afterwards. Returns the time.
 */
static uint64_t do_next(struct work *work)
{
	struct payer *payer =
		(struct payer *)((char *)turns_next(&work->payers) - offsetof(struct payer, turn));
	struct loop_job *job = TAILQ_FIRST(&payer->works);
	uint64_t before = clock_us(CLOCK_MONOTONIC), now;

	take_job(payer, job);
	job->run(job);
	if (!payer->turn.waits && !TAILQ_EMPTY(&payer->works))
		turns_wait(&work->payers, &payer->turn);
	now = clock_us(CLOCK_MONOTONIC);
	turn_charge(&payer->turn, now - before);
	return now;
}

void work_once(struct work *work)
{
	(void)do_next(work);
}

void work_do(struct work *work)
{
	if (!work_is_queued(work))
		return;
	work->slice_end = work->input_end = clock_us(CLOCK_MONOTONIC) + WORK_SLICE_US;
	while (work_is_queued(work) && do_next(work) < work->slice_end)
		;
}
