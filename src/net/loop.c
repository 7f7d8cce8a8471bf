#include "net/loop.h"

#include <event2/event.h>
#include <stdlib.h>
#include <time.h>

#include "net/stream.h"
#include "util/alloc.h"

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;

	(void)fd;
	(void)what;
	loop_enter(loop);
	loop->impatient = true;
}

void loop_init(struct loop *loop)
{
	struct event_config *config = event_config_new();

	*loop = (struct loop){ 0 };
	STAILQ_INIT(&loop->jobs);
	for (int rank = 0; rank < LOOP_RANKS; rank++)
		TAILQ_INIT(&loop->dirty[rank]);
	TAILQ_INIT(&loop->held);
	if (config) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
		loop->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (!loop->base)
		abort();
	loop->patience = evtimer_new(loop->base, on_patience, loop);
	if (!loop->patience)
		abort();
	loop->scratch = xmalloc(LOOP_SCRATCH);
	loop_enter(loop);
}

void loop_fini(struct loop *loop)
{
	event_free(loop->patience);
	event_base_free(loop->base);
	while (loop->spare_count)
		buf_free(&loop->spares[--loop->spare_count]);
	free(loop->scratch);
}

static uint64_t microseconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t loop_clock(void)
{
	return microseconds() / 1000;
}

void loop_enter(struct loop *loop)
{
	if (loop->fresh)
		return;
	loop->now_us = microseconds();
	loop->now = loop->now_us / 1000;
	loop->unix_time = (int64_t)time(NULL);
	loop->fresh = true;
	if (loop->turn)
		loop->turn(loop, loop->turn_arg);
}

void loop_later(struct loop *loop, struct loop_job *job)
{
	if (job->queued)
		return;
	job->queued = true;
	STAILQ_INSERT_TAIL(&loop->jobs, job, link);
}

void loop_forget(struct loop *loop, struct loop_job *job)
{
	if (!job->queued)
		return;
	job->queued = false;
	STAILQ_REMOVE(&loop->jobs, job, loop_job, link);
}

static void run_jobs(struct loop *loop)
{
	struct loop_job *job;

	while ((job = STAILQ_FIRST(&loop->jobs))) {
		STAILQ_REMOVE_HEAD(&loop->jobs, link);
		job->queued = false;
		job->run(job);
	}
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
	static const struct timeval patience = { 0, LOOP_PATIENCE_MS * 1000 };
	struct stream *stream;

	run_jobs(loop);
	if (loop->impatient || !servers_are_busy(loop))
		flush(&loop->held);
	loop->impatient = false;
	flush(&loop->dirty[LOOP_SERVERS]);
	while ((stream = TAILQ_FIRST(&loop->dirty[LOOP_CLIENTS]))) {
		if (idle || !stream_hold(stream))
			stream_flush(stream);
	}
	if (servers_are_busy(loop) && !TAILQ_EMPTY(&loop->held) && !event_pending(loop->patience, EV_TIMEOUT, NULL))
		event_add(loop->patience, &patience);
}

/* A write to a client may make room for calls to servers, and one that fails queues jobs. So more may be left to do. */
static bool may_sleep(const struct loop *loop)
{
	if (!STAILQ_EMPTY(&loop->jobs))
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
		if (event_base_loop(loop->base, EVLOOP_ONCE | (may_sleep(loop) ? 0 : EVLOOP_NONBLOCK)) < 0)
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
