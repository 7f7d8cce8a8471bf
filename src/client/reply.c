#include "client/reply.h"

#include <assert.h>

#include "client/bounds.h"
#include "client/client.h"
#include "client/peer.h"
#include "client/window.h"
#include "worker/generation.h"

enum {
	BATCH_REPLIES = 16,  /* replies that are written without waiting for more */
	TRASH_MOST = 1 << 16 /* bytes that are kept for the next reply that is discarded */
};

static struct generation *generation_of(const struct task *task)
{
	return (struct generation *)task->host;
}

void client_task_free(struct task *task)
{
	generation_of(task)->tasks--;
	task_free(task);
}

void client_task_begin(struct task *task)
{
	struct client *c = task->owner;

	task->began = c->began;
	STAILQ_INSERT_TAIL(&c->tasks, task, link);
	generation_of(task)->tasks++;
	order_begin(&c->order, task->order);
	window_task_begin(c, task);
}

/* Counts what a task has added to its spill. */
static void count_spill(struct client *c, struct task *task)
{
	if (!task->spill.data)
		return;
	c->spilled += buf_size(&task->spill) - task->spilled;
	task->spilled = buf_size(&task->spill);
}

/* Called before anything is added to the output. */
static void begin_output(struct client *c)
{
	if (stream_waiting(&c->stream) == 0)
		limits_waits(c);
	stream_dirty(&c->stream);
}

/*
 * What comes for a client that takes nothing is weighed here: nothing is written then, and a task may not be done before there is room,
 * although it has asked for many large values.
 */
struct buf *client_task_reply(struct task *task)
{
	struct client *c = task->owner;
	bool is_first;

	if (!c || task->quiet) {
		struct buf *trash = &generation_of(task)->worker->trash;
		buf_consume(trash, buf_size(trash));
		return trash;
	}
	is_first = STAILQ_FIRST(&c->tasks) == task;
	if (is_first)
		begin_output(c);
	else
		count_spill(c, task);
	if ((c->stream.writing || !is_first) && limits_have_grown(c, LIMITS_WITHIN_TURN))
		limits_weigh(c, 0);
	return is_first ? &c->stream.out : &task->spill;
}

bool client_task_share(struct task *task, struct shared *text)
{
	struct client *c = task->owner;

	if (!c || task->quiet || STAILQ_FIRST(&c->tasks) != task)
		return false;
	begin_output(c);
	stream_share(&c->stream, text);
	limits_weigh(c, 0);
	return true;
}

void client_task_hold(struct task *task, size_t more, size_t less)
{
	struct client *c = task->owner;

	if (!c)
		return;
	c->spilled += more - less;
	if (limits_have_grown(c, LIMITS_WITHIN_TURN))
		limits_weigh(c, 0);
}

/*
 * It counts with the requests: as replies it would keep later tasks waiting, and make the client one that does not read. What is given
 * back is not left to the next write either, which an earlier task may put off.
 */
void client_task_use(struct task *task, size_t more, size_t less)
{
	struct client *c = task->owner;

	if (!c)
		return;
	c->asked += more - less;
	if (less > LIMITS_WITHIN_TURN || limits_have_grown(c, LIMITS_WITHIN_TURN))
		limits_weigh(c, 0);
}

/* The first task waits for nobody but the client: what others hold comes behind it, and must not stop it. */
bool client_task_room(const struct task *task)
{
	const struct client *c = task->owner;
	size_t waiting;

	if (!c)
		return true;
	waiting = stream_waiting(&c->stream);
	if (STAILQ_FIRST(&c->tasks) != task)
		waiting += c->spilled + buf_size(&task->spill) - task->spilled;
	return waiting < client_config(c)->client_buffer / 2;
}

/* The size of the reply of the task that has just ended. */
static size_t measure_reply(struct client *c)
{
	uint64_t size = c->produced + stream_waiting(&c->stream) - c->measured;

	c->measured += size;
	return (size_t)size;
}

static void pop_finished(struct client *c)
{
	struct task *task;
	size_t size;

	while ((task = STAILQ_FIRST(&c->tasks))) {
		if (buf_size(&task->spill)) {
			c->spilled -= task->spilled;
			task->spilled = 0;
			begin_output(c);
			buf_add_slice(&c->stream.out, buf_slice(&task->spill));
			buf_free(&task->spill);
		}
		if (!task->done)
			break;
		STAILQ_REMOVE_HEAD(&c->tasks, link);
		order_end(&c->order, task->order);
		size = measure_reply(c);
		window_task_end(c, task, size);
		meter_sample_keys(&c->worker->meter, task, size);
		client_task_free(task);
		c->unsent++;
	}
	stream_expect(&c->stream, c->order.tasks > 0 && c->unsent < BATCH_REPLIES);
}

static void empty_trash(struct worker *w)
{
	if (w->trash.cap > TRASH_MOST)
		buf_free(&w->trash);
}

/* Replies of the client have waited for it since its last progress, which is known to a millisecond. */
static uint64_t waits_for_client(const struct client *c)
{
	uint64_t ms = c->worker->loop.now - c->limits.progress;

	return stream_waiting(&c->stream) && ms > 1 ? (ms - 1) * 1000 : 0;
}

static void note_slow(struct worker *w, const struct task *task)
{
	const struct client *c = task->owner;
	char name[CLIENT_PEER] = "";

	if (c)
		client_peer(c, name);
	meter_note_slow(&w->meter, task, name, c ? waits_for_client(c) : 0);
}

void client_task_done(struct task *task)
{
	struct worker *w = generation_of(task)->worker;
	struct client *c = task->owner;

	assert(!task->done);
	task->done = true;
	if (meter_task_done(&w->meter, task))
		note_slow(w, task);
	if (!c || task->quiet)
		empty_trash(w);
	if (!c) {
		client_task_free(task);
		worker_stop_if_drained(w);
		return;
	}
	count_spill(c, task);
	if (STAILQ_FIRST(&c->tasks) == task)
		pop_finished(c);
	client_answered(c);
}
