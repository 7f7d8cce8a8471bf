#include "client.h"

#include <assert.h>
#include <stdlib.h>

#include "admin.h"
#include "command/start.h"
#include "protocol/reply.h"
#include "util/alloc.h"
#include "util/log.h"

enum {
	SLOW_FACTOR = 16,           /* a client is closed if this multiple of client_buffer waits for it */
	STALL_MS = 2000,            /* and nothing was written for this time */
	AVERAGE_FIRST = 128 * 1024, /* the assumed size of a reply before the first one */
	BATCH_REPLIES = 16,         /* replies that are written without waiting for more */
	PIPELINE_LEAST = 4          /* unanswered requests that are allowed for any size of replies */
};

static struct client *client_of(struct stream *stream)
{
	return (struct client *)stream;
}

static const struct config *config_of(const struct client *c)
{
	return c->worker->daemon->config;
}

/* --- the end of a connection --- */

static void release(struct loop_job *job)
{
	free((char *)job - offsetof(struct client, release));
}

void client_close(struct client *c)
{
	struct worker *w = c->worker;
	struct task *task;

	if (!stream_is_open(&c->stream))
		return;
	while ((task = STAILQ_FIRST(&c->tasks))) {
		STAILQ_REMOVE_HEAD(&c->tasks, link);
		task->owner = NULL;
		task->abandoned = true;
		/* If it is done, it only waited for earlier ones. */
		if (task->done)
			task_free(task);
		else if (task->resume)
			task->resume(task);
	}
	c->order = (struct order){ 0 };
	stream_close(&c->stream);
	TAILQ_REMOVE(&w->clients, c, link);
	atomic_fetch_sub(&w->daemon->connections, 1);
	worker_count(w, COUNT_closed_connections, 1);
	loop_later(&w->loop, &c->release);
	worker_stop_if_drained(w);
}

static bool is_answered(const struct client *c)
{
	return c->order.tasks == 0 && stream_waiting(&c->stream) == 0;
}

/* Whether there is no state that another worker would need. */
static bool is_quiet(const struct client *c)
{
	return is_answered(c) && buf_size(&c->stream.in) == 0 && c->skip == 0 && !c->barrier && !c->paused &&
		!c->closing;
}

static void move_when_quiet(struct client *c)
{
	struct worker *w = c->worker;

	if (!c->destination || w->draining || !stream_is_open(&c->stream) || !is_quiet(c))
		return;
	TAILQ_REMOVE(&w->clients, c, link);
	worker_count(w, COUNT_moved_connections, 1);
	worker_send(c->destination, stream_detach(&c->stream));
	loop_later(&w->loop, &c->release);
}

void client_move(struct client *c, struct worker *to)
{
	c->destination = to;
}

void client_watch(struct client *c)
{
	c->watched = c->produced;
}

bool client_was_busy(const struct client *c)
{
	return c->watched != c->produced;
}

void client_free_closed(struct worker *w)
{
	struct loop_job *job;

	while ((job = STAILQ_FIRST(&w->loop.jobs))) {
		loop_forget(&w->loop, job);
		job->run(job);
	}
}

struct client *client_next(struct client *c)
{
	return TAILQ_NEXT(c, link);
}

static void close_if_finished(struct client *c)
{
	if (c->closing && is_answered(c))
		client_close(c);
}

void client_drain(struct client *c)
{
	if (!stream_is_open(&c->stream))
		return;
	c->closing = true;
	stream_pause(&c->stream);
	close_if_finished(c);
}

static void close_slow(struct client *c)
{
	log_warn(
		"client closed: it does not read its replies, %zu bytes wait", stream_waiting(&c->stream) + c->spilled);
	worker_count(c->worker, COUNT_closed_slow_clients, 1);
	client_close(c);
}

static bool is_slow(const struct client *c)
{
	if (c->worker->loop.now - c->progress < STALL_MS)
		return false;
	return stream_waiting(&c->stream) + c->spilled > SLOW_FACTOR * config_of(c)->client_buffer;
}

/* --- requests --- */

/* How many requests may be unanswered: replies of the average size must fit the buffer. */
static size_t window(const struct client *c)
{
	const struct config *config = config_of(c);
	size_t n = config->client_buffer / (c->average + 1);

	if (n < PIPELINE_LEAST)
		n = PIPELINE_LEAST;
	return n < config->max_pipeline ? n : config->max_pipeline;
}

/* Whether another request may start: the window has room. Multiplies instead of dividing. */
static bool may_start_request(const struct client *c)
{
	const struct config *config = config_of(c);

	if (c->barrier || c->order.tasks >= config->max_pipeline || c->order.calls >= c->worker->host.calls_max ||
		stream_waiting(&c->stream) >= config->client_buffer)
		return false;
	return c->order.tasks < PIPELINE_LEAST || (c->order.tasks + 1) * (c->average + 1) <= config->client_buffer;
}

static void carry_out(struct client *c, const struct request *request)
{
	static const enum counter counters[COMMAND_COUNT] = {
#define COMMAND(id, name, grammar, start, order, counter, ...) [COMMAND_##id] = COUNT_cmd_##counter,
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
	};

	worker_count(c->worker, counters[request->command->id], 1);
	if (!task_start(&c->worker->host, request, c))
		admin_start(c, request);
}

static void refuse(struct client *c, const struct request *request)
{
	worker_count(c->worker, COUNT_cmd_refused, 1);
	task_start_refused(&c->worker->host, request, c);
}

/* Takes a request off the front of `in`. Gives its size, or 0 if it is incomplete or must wait. */
static size_t take_request(struct client *c, struct slice in)
{
	const struct config *config = config_of(c);
	struct request_limits limits = { config->max_line, config->max_value, config->max_keys };
	struct request request;

	switch (request_parse(in, &limits, &c->request, &request)) {
	case REQUEST_MORE:
		return 0;
	case REQUEST_HANGUP:
		log_info("client closed: it speaks HTTP");
		c->closing = true;
		break;
	case REQUEST_FATAL:
		request.noreply = false;
		refuse(c, &request);
		c->closing = true;
		break;
	case REQUEST_REFUSED:
		if (request_discards(&request) && order_must_wait(&c->order, request.command)) {
			c->barrier = true;
			return 0;
		}
		refuse(c, &request);
		c->skip = request.skip;
		break;
	case REQUEST_READY:
		if (order_must_wait(&c->order, request.command)) {
			c->barrier = true;
			return 0;
		}
		carry_out(c, &request);
	}
	c->request = (struct request_progress){ 0 };
	return request.consumed;
}

static size_t on_data(struct stream *stream, struct slice in)
{
	struct client *c = client_of(stream);
	size_t used = 0, n;

	while (used < in.n && !c->closing && may_start_request(c)) {
		if (c->skip) {
			n = in.n - used < c->skip ? in.n - used : c->skip;
			c->skip -= n;
		} else {
			n = take_request(c, slice_skip(in, used));
		}
		if (n == 0)
			break;
		used += n;
	}
	if (c->closing) {
		client_drain(c);
		return in.n;
	}
	worker_count(c->worker, COUNT_bytes_read, used);
	if (!may_start_request(c)) {
		c->paused = true;
		stream_pause(stream);
	}
	return used;
}

/* --- replies --- */

void client_task_begin(struct task *task)
{
	struct client *c = task->owner;

	STAILQ_INSERT_TAIL(&c->tasks, task, link);
	order_begin(&c->order, task->order);
}

struct buf *client_task_reply(struct task *task)
{
	struct client *c = task->owner;

	if (!c || task->quiet) {
		struct buf *trash = &((struct worker *)task->host)->trash;
		buf_consume(trash, buf_size(trash));
		return trash;
	}
	if (STAILQ_FIRST(&c->tasks) != task)
		return &task->spill;
	if (stream_waiting(&c->stream) == 0)
		c->progress = c->worker->loop.now;
	stream_dirty(&c->stream);
	return &c->stream.out;
}

bool client_task_share(struct task *task, struct shared *text)
{
	struct client *c = task->owner;

	if (!c || task->quiet || STAILQ_FIRST(&c->tasks) != task)
		return false;
	if (stream_waiting(&c->stream) == 0)
		c->progress = c->worker->loop.now;
	stream_share(&c->stream, text);
	return true;
}

bool client_task_room(const struct task *task)
{
	const struct client *c = task->owner;

	return !c || stream_waiting(&c->stream) + c->spilled + buf_size(&task->spill) < config_of(c)->client_buffer / 2;
}

/* Resumes only when well below the limits, so that it does not pause and resume for each request. */
static void maybe_resume(struct client *c)
{
	struct task *first = STAILQ_FIRST(&c->tasks);
	bool room = stream_waiting(&c->stream) <= config_of(c)->client_buffer / 2;

	if (c->order.tasks == 0)
		c->barrier = false;
	if (room && first && first->resume)
		first->resume(first);
	if (!c->paused || c->closing || c->barrier || !room || c->order.tasks > window(c) / 2 ||
		c->order.calls > c->worker->host.calls_max / 2)
		return;
	c->paused = false;
	stream_resume(&c->stream);
}

static void update_average(struct client *c)
{
	uint64_t size = c->produced + stream_waiting(&c->stream) - c->measured;

	c->measured += size;
	c->average = c->average - c->average / 8 + (size_t)size / 8;
}

static void pop_finished(struct client *c)
{
	struct task *task;

	while ((task = STAILQ_FIRST(&c->tasks))) {
		if (buf_size(&task->spill)) {
			c->spilled -= task->done ? buf_size(&task->spill) : 0;
			stream_dirty(&c->stream);
			buf_add_slice(&c->stream.out, buf_slice(&task->spill));
			buf_free(&task->spill);
		}
		if (!task->done)
			break;
		STAILQ_REMOVE_HEAD(&c->tasks, link);
		order_end(&c->order, task->order);
		update_average(c);
		task_free(task);
		c->unsent++;
	}
	stream_expect(&c->stream, c->order.tasks > 0 && c->unsent < BATCH_REPLIES);
}

void client_task_done(struct task *task)
{
	struct worker *w = (struct worker *)task->host;
	struct client *c = task->owner;

	assert(!task->done);
	task->done = true;
	if (!c) {
		task_free(task);
		worker_stop_if_drained(w);
		return;
	}
	c->spilled += buf_size(&task->spill);
	if (STAILQ_FIRST(&c->tasks) == task)
		pop_finished(c);
	if (is_slow(c)) {
		close_slow(c);
		return;
	}
	maybe_resume(c);
	close_if_finished(c);
}

static void on_written(struct stream *stream, size_t n)
{
	struct client *c = client_of(stream);

	worker_count(c->worker, COUNT_bytes_written, n);
	c->produced += n;
	c->unsent = 0;
	if (n > 0)
		c->progress = c->worker->loop.now;
	if (is_slow(c)) {
		close_slow(c);
		return;
	}
	maybe_resume(c);
	close_if_finished(c);
	move_when_quiet(c);
}

static void on_ended(struct stream *stream, int error)
{
	struct client *c = client_of(stream);

	/* Without an error the client has closed its sending side only: its requests are answered. */
	if (error)
		client_close(c);
	else
		client_drain(c);
}

static const struct stream_ops ops = { on_data, on_written, on_ended };

void client_open(struct worker *w, int fd)
{
	struct client *c = xcalloc(1, sizeof(*c));

	c->worker = w;
	c->release.run = release;
	c->average = AVERAGE_FIRST;
	c->progress = w->loop.now;
	STAILQ_INIT(&c->tasks);
	stream_open(&c->stream, &w->loop, LOOP_CLIENTS, fd, &ops);
	TAILQ_INSERT_TAIL(&w->clients, c, link);
	if (w->draining)
		client_drain(c);
}
