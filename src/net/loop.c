#include "net/loop.h"

#include <event2/event.h>
#include <stdlib.h>

#include "net/stream.h"
#include "protocol/call.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/linux.h"

struct answer {
	struct loop_job job;
	struct loop *loop;
	struct waiter *waiter;
	struct result result;
};

/* --- deferred jobs --- */

/* libevent runs timers that are due after the events of all ready sockets. */
static void set_timer(struct loop *loop)
{
	const struct loop_job *first = TAILQ_FIRST(&loop->timed);
	uint64_t ms = first && first->due > loop->now ? first->due - loop->now : 0;
	struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

	if (first)
		event_add(loop->timer, &tv);
}

void loop_forget(struct loop *loop, struct loop_job *job)
{
	struct loop_jobs *queue = job->due == JOB_THIS_TURN ? &loop->jobs : &loop->timed;

	if (job->due == JOB_WORK) {
		work_forget(&loop->work, job);
	} else if (job->due) {
		TAILQ_REMOVE(queue, job, link);
		job->due = JOB_NOT_QUEUED;
	}
}

void loop_later(struct loop *loop, struct loop_job *job)
{
	if (job->due)
		return;
	job->due = JOB_THIS_TURN;
	TAILQ_INSERT_TAIL(&loop->jobs, job, link);
}

void loop_after(struct loop *loop, struct loop_job *job, uint64_t ms)
{
	struct loop_job *before;

	loop_forget(loop, job);
	before = TAILQ_LAST(&loop->timed, loop_jobs);
	job->due = loop->now + ms;
	while (before && before->due > job->due)
		before = TAILQ_PREV(before, loop_jobs, link);
	if (before) {
		TAILQ_INSERT_AFTER(&loop->timed, before, job, link);
		return;
	}
	TAILQ_INSERT_HEAD(&loop->timed, job, link);
	set_timer(loop);
}

static void run_first(struct loop *loop, struct loop_jobs *queue)
{
	struct loop_job *job = TAILQ_FIRST(queue);

	loop_forget(loop, job);
	job->run(job);
}

/*
 * Moves the jobs that are due to the jobs of this turn. Jobs that these queue with 0 ms run
 * when the timer fires again.
 */
static void loop_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	struct loop_job *job;

	(void)fd;
	(void)what;
	loop_enter(loop);
	while ((job = TAILQ_FIRST(&loop->timed)) && job->due <= loop->now) {
		loop_forget(loop, job);
		loop_later(loop, job);
	}
	set_timer(loop);
}

static void loop_deliver(struct loop_job *job)
{
	struct answer *a = (struct answer *)job;

	a->waiter->done(a->waiter, &a->result);
	free(a);
}

static void loop_deliver_answer(struct loop_job *job)
{
	struct loop *loop = ((struct answer *)job)->loop;

	loop->turn.answering = true;
	loop_deliver(job);
	loop->turn.answering = false;
}

static struct loop_job *new_answer(struct waiter *waiter, const struct result *result)
{
	struct answer *a = xmalloc(sizeof(*a));

	*a = (struct answer){ .job = { .run = loop_deliver }, .waiter = waiter, .result = *result };
	return &a->job;
}

void loop_answer(struct loop *loop, struct waiter *waiter, const struct result *result)
{
	struct loop_job *job = new_answer(waiter, result);

	job->run = loop_deliver_answer;
	((struct answer *)job)->loop = loop;
	loop_later(loop, job);
}

static const struct result nothing;

void loop_wake(struct loop *loop, struct waiter *waiter, uint64_t ms)
{
	loop_after(loop, new_answer(waiter, &nothing), ms);
}

void loop_wake_in_turn(struct loop *loop, struct payer *payer, struct waiter *waiter)
{
	work_add(&loop->work, payer, new_answer(waiter, &nothing));
}

void loop_finish(struct loop *loop)
{
	for (;;) {
		if (!TAILQ_EMPTY(&loop->jobs))
			run_first(loop, &loop->jobs);
		else if (work_is_queued(&loop->work))
			work_once(&loop->work);
		else if (!TAILQ_EMPTY(&loop->timed))
			run_first(loop, &loop->timed);
		else
			return;
	}
}

/* --- turns --- */

static void loop_on_patience(struct loop_job *job)
{
	((struct loop *)((char *)job - offsetof(struct loop, patience)))->impatient = true;
}

void loop_init(struct loop *loop)
{
	struct event_config *config = event_config_new();

	*loop = (struct loop){ 0 };
	TAILQ_INIT(&loop->jobs);
	TAILQ_INIT(&loop->timed);
	for (int rank = 0; rank < LOOP_RANKS; rank++)
		TAILQ_INIT(&loop->dirty[rank]);
	TAILQ_INIT(&loop->held);
	TAILQ_INIT(&loop->handshakes.line);
	work_init(&loop->work);
	if (config) {
		event_config_set_flag(
			config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
		loop->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (!loop->base)
		abort();
	loop->timer = evtimer_new(loop->base, loop_on_timer, loop);
	if (!loop->timer)
		abort();
	loop->patience.run = loop_on_patience;
	loop->handshakes.job.run = stream_shake_hands;
	loop->scratch = xmalloc(LOOP_SCRATCH);
	loop_enter(loop);
}

void loop_fini(struct loop *loop)
{
	event_free(loop->timer);
	event_base_free(loop->base);
	while (loop->spares.count)
		buf_free(&loop->spares.at[--loop->spares.count]);
	free(loop->scratch);
}

uint64_t loop_clock(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

uint64_t loop_clock_not_before(void)
{
	return clock_us(LINUX_COARSE) / 1000 + 1 + LINUX_TICK_MS;
}

void loop_enter(struct loop *loop)
{
	if (loop->fresh)
		return;
	loop->now_us = clock_us(CLOCK_MONOTONIC);
	loop->now = loop->now_us / 1000;
	loop->unix_time = (int64_t)time(NULL);
	work_begin_turn(&loop->work, loop->now_us);
	loop->fresh = true;
	if (loop->turn.begin)
		loop->turn.begin(loop->turn.arg);
}

static void notify_end(struct loop *loop)
{
	if (loop->turn.end)
		loop->turn.end(loop->turn.arg);
}

static void run_jobs(struct loop *loop)
{
	do {
		while (!TAILQ_EMPTY(&loop->jobs))
			run_first(loop, &loop->jobs);
		notify_end(loop);
	} while (!TAILQ_EMPTY(&loop->jobs));
}

static bool servers_are_busy(const struct loop *loop)
{
	return loop->awaited >= LOOP_BUSY;
}

static void flush(struct stream_list *list)
{
	struct stream *stream;

	while ((stream = TAILQ_FIRST(list)))
		stream_flush(stream);
}

/* `idle`: no event was ready in this turn. */
static void end_turn(struct loop *loop, bool idle)
{
	struct stream *stream;

	work_do(&loop->work);
	run_jobs(loop);
	if (loop->impatient || !servers_are_busy(loop))
		flush(&loop->held);
	loop->impatient = false;
	flush(&loop->dirty[LOOP_SERVERS]);
	while ((stream = TAILQ_FIRST(&loop->dirty[LOOP_CLIENTS]))) {
		if (idle || !stream_hold(stream))
			stream_flush(stream);
	}
	notify_end(loop);
	if (servers_are_busy(loop) && !TAILQ_EMPTY(&loop->held) && !loop_is_queued(&loop->patience))
		loop_after(loop, &loop->patience, LOOP_PATIENCE_MS);
}

/*
 * A write to a client may make room for calls to servers, and a write that fails queues jobs.
 * So there may be more to do.
 */
static bool may_sleep(const struct loop *loop)
{
	if (!TAILQ_EMPTY(&loop->jobs) || work_is_queued(&loop->work))
		return false;
	for (int rank = 0; rank < LOOP_RANKS; rank++) {
		if (!TAILQ_EMPTY(&loop->dirty[rank]))
			return false;
	}
	return TAILQ_EMPTY(&loop->held) || servers_are_busy(loop);
}

void loop_run(struct loop *loop)
{
	while (!loop->stopping) {
		bool idle;

		loop->fresh = false;
		if (event_base_loop(
			    loop->base, EVLOOP_ONCE | (may_sleep(loop) ? 0 : EVLOOP_NONBLOCK)) < 0)
			abort();
		idle = !loop->fresh;
		loop_enter(loop);
		end_turn(loop, idle);
	}
}

void loop_stop(struct loop *loop)
{
	loop->stopping = true;
}
