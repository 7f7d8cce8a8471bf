#include "fake.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "command/start.h"
#include "memcached.h"
#include "protocol/dialect.h"
#include "util/alloc.h"
#include "waiting/push_board.h"
#include "waiting/waiting.h"

static void on_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct fake *f = (struct fake *)env;
	struct fake_call *c;

	if (f->count == f->capacity) {
		f->capacity = f->capacity ? f->capacity * 2 : 64;
		f->calls = xrealloc(f->calls, f->capacity * sizeof(*f->calls));
	}
	c = &f->calls[f->count++];
	*c = (struct fake_call){ .call = *call, .waiter = waiter };
	c->bytes = memcached_keep_call(&c->call);
}

static void on_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct fake *f = (struct fake *)env;

	f->turns = xrealloc(f->turns, (f->turn_count + 1) * sizeof(*f->turns));
	f->turns[f->turn_count++] = (struct fake_turn){ waiter, env->now + ms };
}

static bool on_over(struct env *env)
{
	env->grain = ((struct fake *)env)->slice;
	return true;
}

static void on_pause(struct env *env, struct waiter *waiter, const struct account *account)
{
	(void)account;
	on_later(env, waiter, 0);
}

static void on_begin(struct task *task)
{
	struct fake *f = (struct fake *)task->host;

	task->account = f->other ? f->other : &f->account;
	STAILQ_INSERT_TAIL(&f->tasks, task, link);
}

size_t fake_used(const struct fake *f)
{
	return f->account.used + f->account.held;
}

static struct buf *on_reply(struct task *task)
{
	struct fake *f = (struct fake *)task->host;

	assert(!task->done);
	if (task->quiet) {
		buf_consume(&f->trash, buf_size(&f->trash));
		return &f->trash;
	}
	return STAILQ_FIRST(&f->tasks) == task ? &f->out : &task->spill;
}

static void on_done(struct task *task)
{
	struct fake *f = (struct fake *)task->host;
	struct task *first;

	assert(!task->done);
	task->done = true;
	while ((first = STAILQ_FIRST(&f->tasks))) {
		buf_add_slice(&f->out, buf_slice(&first->spill));
		buf_free(&first->spill);
		if (!first->done)
			return;
		STAILQ_REMOVE_HEAD(&f->tasks, link);
		task_free(first);
	}
}

void fake_take(struct fake *f, const struct collection_options *options)
{
	if (f->host.lanes)
		lanes_destroy(f->host.lanes);
	f->host.env.options = options;
	f->host.lanes = lanes_create(&f->host.env, &machines);
}

void fake_init(struct fake *f)
{
	static struct push_board board; /* of all fakes; it is empty in the end */
	/* Without the cache every read is a complete fetch; its own tests set its options. */
	static const struct collection_options options = { .base_size = 16384,
		.segment_size = 65536,
		.log_size = 4096,
		.table_size = 65536,
		.merges = 1 };

	*f = (struct fake){
		.host = {
			.env = {
				.call = on_call,
				.now = 1000,
				.unix_time = 1424450096, /* 20 February 2015, 16:34:56 UTC */
				.random = 1,
				.seed = 42,
				.servers = 2,
			},
			.begin = on_begin,
			.reply = on_reply,
			.done = on_done,
		},
		.connection = 1,
	};
	STAILQ_INIT(&f->tasks);
	f->host.env.rules = &f->rules;
	f->host.env.pool = &f->pool;
	f->host.waiting = waiting_create(&f->host.env, &board, 1000, 0, NULL);
	fake_take(f, &options);
}

void fake_fini(struct fake *f)
{
	assert(fake_waiting(f) == 0 && f->turn_count == 0);
	assert(STAILQ_EMPTY(&f->tasks));
	assert(f->account.used == 0 && f->account.held == 0);
	assert(lanes_idle(f->host.lanes));
	lanes_destroy(f->host.lanes);
	assert(waiting_idle(f->host.waiting));
	waiting_destroy(f->host.waiting);
	buf_free(&f->host.spare);
	pool_free(&f->pool);
	for (size_t i = 0; i < f->count; i++)
		free(f->calls[i].bytes);
	free(f->calls);
	free(f->turns);
	buf_free(&f->out);
	buf_free(&f->trash);
	buf_free(&f->text);
}

const char *fake_ask(struct fake *f, const char *text)
{
	static const struct request_limits limits = { 1 << 20, 1 << 20, 2000 };
	struct slice in = slice_of(text, strlen(text));

	while (in.n) {
		struct request request;
		struct request_progress progress = { 0 };
		/*
		 * The buffer that a request's slices point to is freed once the request was
		 * started.
		 */
		char *bytes = xmalloc(in.n);

		memcpy(bytes, in.p, in.n);
		enum request_status status =
			request_parse(slice_of(bytes, in.n), &limits, &progress, &request);
		if (status == REQUEST_REFUSED && request_discards(&request)) {
			task_start_refused(&f->host, &request, f);
			request_progress_end(&progress);
			free(bytes);
			return NULL;
		}
		if (status != REQUEST_READY) {
			request_progress_end(&progress);
			free(bytes);
			return request.error ? request.error : "not a whole request";
		}
		in = slice_skip(in, request.consumed);
		bool started = task_start(&f->host, &request, f);
		memset(bytes, '#', request.consumed);
		request_progress_end(&progress);
		free(bytes);
		if (!started)
			return "not for a task";
	}
	return NULL;
}

static const char *show(struct fake *f)
{
	BUF_ADD(&f->text, "\0");
	return buf_slice(&f->text).p;
}

const char *fake_calls(struct fake *f)
{
	buf_consume(&f->text, buf_size(&f->text));
	for (; f->shown < f->count; f->shown++) {
		const struct call *call = &f->calls[f->shown].call;
		if (call->server != CALL_ANY_SERVER)
			buf_printf(&f->text, "server %d: ", call->server);
		if (call->verb == CALL_CAS && call->connection)
			buf_printf(&f->text, "connection %d: ", (int)call->connection);
		dialect_meta.encode(call, &f->text);
	}
	return show(f);
}

size_t fake_waiting(const struct fake *f)
{
	return f->count - f->answered;
}

size_t fake_oldest(const struct fake *f)
{
	size_t i = f->first;

	while (i < f->count && f->calls[i].answered)
		i++;
	assert(i < f->count);
	return i;
}

void fake_result(struct fake *f, size_t i, const struct result *r)
{
	struct result full = *r;

	assert(i < f->count && !f->calls[i].answered);
	f->calls[i].answered = true;
	f->answered++;
	while (f->first < f->count && f->calls[f->first].answered)
		f->first++;
	full.server = "mc:11211";
	full.connection = f->connection;
	f->calls[i].waiter->done(f->calls[i].waiter, &full);
}

void fake_fail(struct fake *f, enum result_status status)
{
	fake_result(f, fake_oldest(f), &(struct result){ .status = status });
}

void fake_has_time(struct fake *f)
{
	f->host.env.later = on_later;
	f->host.env.is_over = on_over;
	f->host.env.pause = on_pause;
}

/* Timers that are started meanwhile are called another time. */
size_t fake_pass(struct fake *f, uint64_t ms)
{
	size_t count = f->turn_count, told = 0, kept = 0;

	f->host.env.now += ms;
	for (size_t i = 0; i < count; i++) {
		struct fake_turn turn = f->turns[i];
		if (turn.at > f->host.env.now) {
			f->turns[kept++] = turn;
			continue;
		}
		turn.waiter->done(turn.waiter, &(struct result){ .status = RESULT_DONE });
		told++;
	}
	for (size_t i = count; i < f->turn_count; i++)
		f->turns[kept++] = f->turns[i];
	f->turn_count = kept;
	return told;
}

const char *fake_answer(struct fake *f, const char *text)
{
	struct slice in = slice_of(text, strlen(text));

	while (in.n) {
		if (fake_waiting(f) == 0)
			return "a reply to nothing";
		size_t i = fake_oldest(f);
		const struct call *call = &f->calls[i].call;
		struct expect expect = { call->verb, call->want, f->calls[i].waiter->key, 0 };
		struct result r = { 0 };
		ssize_t n = dialect_meta.decode(in, &expect, &r);
		if (n <= 0)
			return n < 0 ? "not a reply to this call" : "not a whole reply";
		in = slice_skip(in, (size_t)n);
		fake_result(f, i, &r);
	}
	return NULL;
}

const char *fake_told(struct fake *f)
{
	buf_consume(&f->text, buf_size(&f->text));
	buf_add_slice(&f->text, buf_slice(&f->out));
	buf_consume(&f->out, buf_size(&f->out));
	return show(f);
}
