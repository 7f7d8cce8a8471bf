/*
 * The functions of struct host for the tasks of a client. The first task writes its reply to
 * the output; the replies of all others are held in their tasks.
 */
#include "client/clients.h"

#include <assert.h>

#include "client/command.h"
#include "client/log.h"
#include "client/state.h"

enum {
	/* Number of replies after which the output is written without waiting for more. */
	BATCH_REPLIES = 16,
	TRASH_MOST = 1 << 16, /* Maximum bytes of the buffer that is kept for discarded replies. */
	SPILL_MOST = 512      /* Maximum bytes of a buffer that is kept for held-back replies. */
};

static struct clients *clients_of(const struct task *task)
{
	return generation_of(task->host)->all->arg;
}

static void reply_begin(struct task *task)
{
	struct client *c = task->owner;

	task->began = c->input.began;
	task->sent.started = (uint32_t)c->clients->loop->now_us;
	task->account = &c->account;
	STAILQ_INSERT_TAIL(&c->tasks, task, link);
	generation_enter(generation_of(task->host));
	order_begin(&c->order, task->order);
	window_task_begin(c, task);
}

static void reply_restart(struct task *task)
{
	task->began = clients_of(task)->loop->now_us;
	task->sent.started = (uint32_t)task->began;
}

static bool reply_has_ended(const void *owner, bool ask)
{
	return client_has_ended(owner) ||
		(ask && stream_has_ended(&((const struct client *)owner)->stream));
}

/* The arguments of a line with quotes or literals are in the buffer of its parser. */
static struct buf reply_take_input(void *owner, struct slice text)
{
	struct client *c = owner;
	struct buf *words;

	if (!c)
		return BUF_EMPTY;
	words = &c->input.progress.quoted.words;
	return buf_is_mostly(words, text) ? buf_take(words) : stream_take_input(&c->stream, text);
}

/* Counts the bytes that a task has added to its spill. */
static void count_spill(struct client *c, struct task *task)
{
	if (!task->spill.data)
		return;
	account_hold(&c->account, buf_size(&task->spill), task->spilled);
	task->spilled = buf_size(&task->spill);
}

/* Reuses the memory of an earlier held-back reply for a short one. */
static void begin_spill(struct clients *all, struct task *task)
{
	if (!task->spill.data && all->spills.count)
		task->spill = all->spills.at[--all->spills.count];
}

static void end_spill(struct clients *all, struct task *task)
{
	if (task->spill.cap > SPILL_MOST || all->spills.count == CLIENTS_SPILLS) {
		buf_free(&task->spill);
		return;
	}
	buf_consume(&task->spill, buf_size(&task->spill));
	all->spills.at[all->spills.count++] = task->spill;
	task->spill = BUF_EMPTY;
}

/* Must be called before anything is added to the output. */
static void begin_output(struct client *c)
{
	if (stream_waiting(&c->stream) == 0)
		bounds_progress(c);
	stream_dirty(&c->stream);
}

/*
 * Count replies here: a client that does not read triggers no write, and a task that has
 * requested many large values may not be done before there is room.
 */
static struct buf *reply_buffer(struct task *task)
{
	struct client *c = task->owner;
	bool is_first;

	if (!c || task->quiet) {
		struct buf *trash = &clients_of(task)->trash;
		buf_consume(trash, buf_size(trash));
		return trash;
	}
	is_first = STAILQ_FIRST(&c->tasks) == task;
	if (is_first) {
		begin_output(c);
	} else {
		begin_spill(c->clients, task);
		count_spill(c, task);
	}
	account_change(&c->account);
	return is_first ? &c->stream.out : &task->spill;
}

static bool reply_share(struct task *task, struct shared *text)
{
	struct client *c = task->owner;

	if (!c || task->quiet || STAILQ_FIRST(&c->tasks) != task)
		return false;
	begin_output(c);
	stream_share(&c->stream, text);
	account_change(&c->account);
	return true;
}

/*
 * The first task waits only for the client: replies of later tasks follow its own, and must not
 * block it.
 */
static bool reply_has_room(const struct task *task)
{
	const struct client *c = task->owner;
	size_t waiting;

	if (!c)
		return true;
	waiting = stream_waiting(&c->stream);
	if (STAILQ_FIRST(&c->tasks) != task)
		waiting += c->account.held + buf_size(&task->spill) - task->spilled;
	return waiting < client_config(c)->client_buffer / 2;
}

/* Returns the size of the reply of the task that has just ended. */
static size_t measure_reply(struct client *c)
{
	uint64_t size = c->output.produced + stream_waiting(&c->stream) - c->output.measured;

	c->output.measured += size;
	return (size_t)size;
}

static void pop_finished(struct client *c)
{
	struct task *task;
	size_t size;

	while ((task = STAILQ_FIRST(&c->tasks))) {
		if (buf_size(&task->spill)) {
			account_hold(&c->account, 0, task->spilled);
			task->spilled = 0;
			begin_output(c);
			buf_add_slice(&c->stream.out, buf_slice(&task->spill));
			end_spill(c->clients, task);
		}
		if (!task->done)
			break;
		STAILQ_REMOVE_HEAD(&c->tasks, link);
		order_end(&c->order, task->order);
		size = measure_reply(c);
		window_task_end(c, task, size);
		meter_sample_keys(c->clients->meter, task, size);
		client_free_task(task);
		c->output.unsent++;
	}
	stream_expect(&c->stream, c->order.tasks > 0 && c->output.unsent < BATCH_REPLIES);
}

static void empty_trash(struct clients *all)
{
	if (all->trash.cap > TRASH_MOST)
		buf_free(&all->trash);
}

/*
 * Returns how long replies have been unsent since the client's last progress, which is known to
 * a millisecond.
 */
static uint64_t waits_for_client(const struct client *c)
{
	uint64_t ms = bounds_waited(c);

	return stream_waiting(&c->stream) && ms > 1 ? (ms - 1) * 1000 : 0;
}

/* Not inline, as its arrays would slow down every request. */
static __attribute__((noinline)) void note_slow(struct clients *all, const struct task *task)
{
	const struct client *c = task->owner;
	char name[CLIENT_NAME] = "";

	if (c)
		client_name(c, name);
	meter_note_slow(all->meter, task, name, c ? waits_for_client(c) : 0);
}

static void reply_done(struct task *task)
{
	struct client *c = task->owner;
	struct clients *all = c ? c->clients : clients_of(task);

	assert(!task->done);
	task->done = true;
	if (meter_task_done(all->meter, task))
		note_slow(all, task);
	if (!c || task->quiet)
		empty_trash(all);
	if (!c) {
		client_free_task(task);
		all->ops->idle(all->arg);
		return;
	}
	count_spill(c, task);
	if (STAILQ_FIRST(&c->tasks) == task)
		pop_finished(c);
	account_change(&c->account);
}

static bool reply_denies(const struct host *host, command_id command)
{
	const struct clients *all = generation_of(host)->all->arg;

	return command_set_has(&all->config->deny, command);
}

static void reply_start_inside(const struct request *request, void *owner)
{
	client_start_command(owner, request);
}

const struct host clients_functions = {
	.begin = reply_begin,
	.reply = reply_buffer,
	.share = reply_share,
	.room = reply_has_room,
	.denies = reply_denies,
	.start_inside = reply_start_inside,
	.ended = reply_has_ended,
	.take_input = reply_take_input,
	.restart = reply_restart,
	.done = reply_done,
};
