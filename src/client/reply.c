/*
 * The functions of struct host for the tasks of a client. A reply goes to the output if its task is the first one;
 * all others wait in their tasks.
 */
#include "client/clients.h"

#include <assert.h>

#include "client/bounds.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/log.h"

enum {
	BATCH_REPLIES = 16,   /* replies that are written without waiting for more */
	TRASH_MOST = 1 << 16, /* bytes that are kept for the next reply that is discarded */
	SPILL_MOST = 512      /* bytes of a buffer that is kept for the next reply that waits */
};

static struct clients *clients_of(const struct task *task)
{
	return generation_of(task->host)->all->arg;
}

static void begin(struct task *task)
{
	struct client *c = task->owner;

	task->began = c->input.began;
	STAILQ_INSERT_TAIL(&c->tasks, task, link);
	generation_enter(generation_of(task->host));
	order_begin(&c->order, task->order);
	window_task_begin(c, task);
}

static void restart(struct task *task)
{
	task->began = clients_of(task)->loop->now_us;
}

static bool has_ended(const void *owner, bool ask)
{
	return client_has_ended(owner) || (ask && stream_has_ended(&((const struct client *)owner)->stream));
}

/* Counts what a task has added to its spill. */
static void count_spill(struct client *c, struct task *task)
{
	if (!task->spill.data)
		return;
	window_spill(c, buf_size(&task->spill), task->spilled);
	task->spilled = buf_size(&task->spill);
}

/* A short reply that must wait takes the memory of an earlier one. */
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

/* Called before anything is added to the output. */
static void begin_output(struct client *c)
{
	if (stream_waiting(&c->stream) == 0)
		bounds_progress(c);
	stream_dirty(&c->stream);
}

/*
 * Weigh replies here: a client that does not read triggers no write, and a task may not be done before there is room, although it
 * has asked for many large values.
 */
static struct buf *reply(struct task *task)
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
	if ((c->stream.writing || !is_first) && bounds_have_grown(c, BOUNDS_WITHIN_TURN))
		bounds_weigh(c, 0);
	return is_first ? &c->stream.out : &task->spill;
}

static bool share(struct task *task, struct shared *text)
{
	struct client *c = task->owner;

	if (!c || task->quiet || STAILQ_FIRST(&c->tasks) != task)
		return false;
	begin_output(c);
	stream_share(&c->stream, text);
	bounds_weigh(c, 0);
	return true;
}

static void hold(struct task *task, size_t more, size_t less)
{
	struct client *c = task->owner;

	if (!c)
		return;
	window_spill(c, more, less);
	if (less > BOUNDS_WITHIN_TURN || bounds_have_grown(c, BOUNDS_WITHIN_TURN))
		bounds_weigh(c, 0);
}

/*
 * Count this memory with the requests: counted as replies, it would keep later tasks waiting, and the client would seem not to read.
 * Weigh at once what a task gives back: an earlier task may put off the next write.
 */
static void use_of(struct client *c, size_t more, size_t less)
{
	window_use(c, more, less);
	if (less > BOUNDS_WITHIN_TURN || bounds_have_grown(c, BOUNDS_WITHIN_TURN))
		bounds_weigh(c, 0);
}

static void use(struct task *task, size_t more, size_t less)
{
	if (task->owner)
		use_of(task->owner, more, less);
}

/* The first task waits for the client alone: replies of later tasks come behind its own, and must not stop it. */
static bool room(const struct task *task)
{
	const struct client *c = task->owner;
	size_t waiting;

	if (!c)
		return true;
	waiting = stream_waiting(&c->stream);
	if (STAILQ_FIRST(&c->tasks) != task)
		waiting += window_spilled(c) + buf_size(&task->spill) - task->spilled;
	return waiting < client_config(c)->client_buffer / 2;
}

/* The size of the reply of the task that has just ended. */
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
			window_spill(c, 0, task->spilled);
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

/* Replies have waited for the client since its last progress, which is known to a millisecond. */
static uint64_t waits_for_client(const struct client *c)
{
	uint64_t ms = bounds_waited(c);

	return stream_waiting(&c->stream) && ms > 1 ? (ms - 1) * 1000 : 0;
}

/* Not inline: its arrays would cost every request. */
static __attribute__((noinline)) void note_slow(struct clients *all, const struct task *task)
{
	const struct client *c = task->owner;
	char name[CLIENT_NAME] = "";

	if (c)
		client_name(c, name);
	meter_note_slow(all->meter, task, name, c ? waits_for_client(c) : 0);
}

static void done(struct task *task)
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
	client_answered(c);
}

static bool denies(const struct host *host, command_id command)
{
	const struct clients *all = generation_of(host)->all->arg;

	return command_set_has(&all->config->deny, command);
}

static void start_inside(const struct request *request, void *owner)
{
	client_start_command(owner, request);
}

/* Lanes only carry the pointer around, so for them it is constant. */
static struct client *client_of(const void *client)
{
	return (struct client *)(uintptr_t)client;
}

struct payer *client_payer(const void *client)
{
	return &client_of(client)->turn.payer;
}

void client_use(const void *client, size_t more, size_t less)
{
	use_of(client_of(client), more, less);
}

void client_rewrote(const void *client, size_t bytes)
{
	((struct client *)(uintptr_t)client)->turn.rewritten += bytes;
}

const struct host clients_functions = {
	.begin = begin,
	.reply = reply,
	.share = share,
	.room = room,
	.hold = hold,
	.use = use,
	.denies = denies,
	.start_inside = start_inside,
	.ended = has_ended,
	.restart = restart,
	.done = done,
};
