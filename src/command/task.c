#include "command/task.h"

#include "protocol/commands.h"
#include "protocol/reply.h"

const char task_too_large[] = "SERVER_ERROR result too large";

void *task_new(struct host *host, const struct request *request, void *owner, size_t size)
{
	struct task *task = pool_get(host->env.pool, size);

	*task = (struct task){
		.host = host,
		.owner = owner,
		.nest = request->into,
		.size = size,
		.taken = (uint32_t)request->consumed,
		.values = (uint32_t)request->keys,
		.command = request->command,
		.quiet = request->noreply,
	};
	if (task->nest) {
		task->nest->task = task;
		task->expected = task->nest->outer->expected;
	} else {
		task->order = order_effect(request);
		host->begin(task);
	}
	return task;
}

void task_free(struct task *task)
{
	buf_free(&task->spill);
	buf_free(&task->scratch);
	pool_put(task->host->env.pool, task, task->size);
}

/* NULL if it has gone. */
static const void *client_of(const struct task *task)
{
	const struct host *host = task->host;

	return task->owner && host->client ? host->client(task->owner) : task->owner;
}

void task_owns(const struct task *task, struct op *op)
{
	op->client = client_of(task);
	op->abandoned = &task->abandoned;
}

void task_pause(struct task *task, struct waiter *waiter)
{
	struct env *env = &task->host->env;

	env->pause(env, waiter, client_of(task));
}

/* A reply inside of another one cannot be sent in pieces. Takes note of `more` bytes of it that are about to come. */
static void bound_collected(struct task *task, size_t more)
{
	size_t most = task->host->env.options->result_max;

	task->nest->overflows |= most && buf_size(&task->spill) + more > most;
	if (task_is_full(task))
		buf_free(&task->spill);
}

/* Counts what a task inside has added to its reply. */
static void count_collected(struct task *task)
{
	size_t size;

	bound_collected(task, 0);
	size = buf_size(&task->spill);
	if (size != task->spilled)
		task_hold(task->nest->outer, size, task->spilled);
	task->spilled = size;
}

struct buf *task_reply(struct task *task)
{
	if (!task->nest)
		return task->host->reply(task);
	count_collected(task);
	if (!task->spill.data) {
		task->spill = task->host->spare;
		task->host->spare = BUF_EMPTY;
	}
	return &task->spill;
}

/* A task inside never pauses: no reply on its way would resume it. The limits of the client bound what it collects. */
bool task_has_room(const struct task *task)
{
	return task->nest || !task->host->room || task->host->room(task);
}

/* The task that the host sees. */
static struct task *outermost(struct task *task)
{
	while (task->nest)
		task = task->nest->outer;
	return task;
}

void task_hold(struct task *task, size_t more, size_t less)
{
	task = outermost(task);
	if (task->host->hold)
		task->host->hold(task, more, less);
}

void task_use(struct task *task, size_t more, size_t less)
{
	task = outermost(task);
	if (task->host->use)
		task->host->use(task, more, less);
}

void task_reply_shared(struct task *task, struct shared *text)
{
	struct host *host = task->host;
	struct nest *nest = task->nest;
	bool large = buf_size(&text->text) >= TASK_SHARES;

	if (nest)
		bound_collected(task, buf_size(&text->text));
	if (nest && task_is_full(task))
		return;
	if (large && nest && nest->takes_text && !nest->text)
		nest->text = shared_hold(text);
	else if (!large || nest || !host->share || !host->share(task, text))
		buf_add_slice(task_reply(task), buf_slice(&text->text));
}

void task_reply_value(struct task *task, struct slice key, const uint64_t *cas, struct shared *text)
{
	reply_value_head(task_reply(task), key, 0, buf_size(&text->text), cas);
	task_reply_shared(task, text);
	BUF_ADD(task_reply(task), "\r\n");
}

/* Keeps the memory of a short reply. */
static void reuse_spill(struct task *task)
{
	enum { SPARE_MAX = 4096 };
	struct host *host = task->host;

	if (host->spare.data || task->spill.cap > SPARE_MAX)
		return;
	buf_consume(&task->spill, buf_size(&task->spill));
	host->spare = task->spill;
	task->spill = BUF_EMPTY;
}

/* What was discarded is no reply: says why. */
static void refuse_inside(struct task *task)
{
	shared_drop(task->nest->text);
	task->nest->text = NULL;
	buf_free(&task->spill);
	reply_text(&task->spill, task->nest->overflows ? task_too_large : "SERVER_ERROR client closed");
}

static void finish_inside(struct task *task)
{
	struct nest *nest = task->nest;
	struct shared *text;

	count_collected(task);
	task_hold(nest->outer, 0, task->spilled);
	if (task_is_full(task))
		refuse_inside(task);
	text = nest->text;
	nest->task = NULL;
	nest->reply = &task->spill;
	nest->done(nest, buf_slice(&task->spill));
	shared_drop(text);
	reuse_spill(task);
	task_free(task);
}

void task_done(struct task *task)
{
	if (task->nest)
		finish_inside(task);
	else
		task->host->done(task);
}

struct shared *nest_take(struct nest *nest, struct slice part)
{
	struct buf text = BUF_EMPTY;

	if (nest->text)
		return shared_hold(nest->text);
	if (part.n < TASK_SHARES || !nest->reply) {
		buf_add_slice(&text, part);
	} else {
		text = *nest->reply;
		text.start = (size_t)(part.p - text.data);
		text.end = text.start + part.n;
		*nest->reply = BUF_EMPTY;
	}
	return shared_create(&text);
}

void task_abandon_inside(struct nest *nest)
{
	struct task *task = nest->task;

	if (!task)
		return;
	task->owner = NULL;
	task->abandoned = true;
	/* It may go on waiting for what it has asked for, behind what others have. */
	count_collected(task);
	if (task->resume)
		task->resume(task);
}

void task_reply_line(struct task *task, const char *line)
{
	reply_text(task_reply(task), line);
	task_done(task);
}

void task_reply_number(struct task *task, uint64_t n)
{
	reply_number(task_reply(task), n);
	task_done(task);
}

void task_reply_failure(struct task *task, const struct result *r)
{
	reply_failure(task_reply(task), r);
	task_done(task);
}

struct slice task_done_word(const struct task *task)
{
	switch (task->command->id) {
	case COMMAND_DELETE:
	case COMMAND_SREM:
		return SLICE("DELETED");
	case COMMAND_TOUCH:
		return SLICE("TOUCHED");
	case COMMAND_FLUSH_ALL:
	case COMMAND_SCOMPACT:
		return SLICE("OK");
	default:
		return SLICE("STORED");
	}
}

void task_reply_done(struct task *task)
{
	reply_line(task_reply(task), task_done_word(task));
	task_done(task);
}

bool task_fails(struct task *task)
{
	if (buf_size(&task->scratch) == 0)
		return false;
	buf_add_slice(task_reply(task), buf_slice(&task->scratch));
	task_done(task);
	return true;
}

void task_reply_end(struct task *task)
{
	if (!task_fails(task))
		task_reply_line(task, "END");
}

struct slice task_keep(char **at, struct slice s)
{
	struct slice copy = slice_of(*at, s.n);

	*at = slice_write(*at, s);
	return copy;
}

void task_refuse(struct host *host, const struct request *request, void *owner, const char *line)
{
	struct task *task = task_new(host, request, owner, sizeof(*task));

	outermost(task)->refused = true;
	task_reply_line(task, line);
}
