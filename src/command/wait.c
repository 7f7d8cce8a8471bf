/*
 * blpop, brpop, blmpop, blmove and blhold. Such a task pops like lpop, from one key after the
 * other. If all its lists are empty, it blocks (waiting/), and pops again when it is woken. A task
 * that times out replies END.
 */
#include <stdlib.h>

#include "command/start.h"
#include "command/task.h"
#include "protocol/commands.h"
#include "util/num.h"
#include "waiting/blocked.h"
#include "waiting/waiting.h"

struct wait_task {
	struct task task;
	struct nest nest;
	struct blocked blocked;
	const struct command *inside;
	size_t count;      /* Number of keys. */
	size_t at, end;    /* The range of keys to try now. */
	struct slice rest; /* The line of `inside` after the key. */
	bool tries;
};

static struct wait_task *wait_task_of(const struct blocked *b)
{
	return (struct wait_task *)((char *)b - offsetof(struct wait_task, blocked));
}

/* --- the end --- */

static void leave(struct wait_task *w)
{
	task_use(&w->task, 0, blocked_size(w->count));
	blocked_leave(&w->blocked);
}

static void end_wait(struct wait_task *w, const struct reply *reply)
{
	leave(w);
	task_say(&w->task, reply);
}

static void end_in_vain(struct wait_task *w)
{
	leave(w);
	task_say_word(&w->task, WORD_END);
}

/* Excludes the time in the queue from the latency of the task. */
static void restart_clock(struct wait_task *w)
{
	struct task *task = &w->task;

	while (task->nest)
		task = task->nest->outer;
	if (task->host->restart && !task_is_abandoned(&w->task))
		task->host->restart(task);
}

/* --- attempts --- */

static void block(struct wait_task *w)
{
	if (waiting_block(w->task.host->waiting, &w->blocked))
		return;
	leave(w);
	task_say_error(&w->task, "SERVER_ERROR too many waiting clients");
}

static void try_next(struct wait_task *w);

static void wait_on_pop(struct nest *nest, const struct reply *reply)
{
	struct wait_task *w = (struct wait_task *)nest->outer;
	struct wait_line *line = w->blocked.line;
	bool nothing = reply->word == WORD_END;

	/* Each key is tried once, even if the deadline passes meanwhile. */
	if (nothing && ++w->at < w->end && !task_is_abandoned(&w->task)) {
		try_next(w);
		return;
	}
	w->tries = false;
	w->blocked.line = NULL;
	if (!nothing)
		end_wait(w, reply);
	else if (w->blocked.is_queued)
		blocked_stay(&w->blocked);
	else
		block(w);
	blocked_pass_on(line, !nothing);
}

static struct slice wait_key(const struct wait_task *w, size_t number)
{
	return w->blocked.places->at[number].key;
}

/* A new task does not overtake queued tasks. */
static void try_next(struct wait_task *w)
{
	struct request inside = { .command = w->inside, .rest = w->rest, .keys = 1 };

	/* At most WAIT_KEYS_MAX. */
	while (!w->blocked.is_queued && w->at < w->end &&
		waiting_has(w->task.host->waiting, wait_key(w, w->at)))
		w->at++;
	if (w->at == w->end) {
		w->tries = false;
		block(w);
		return;
	}
	inside.key = wait_key(w, w->at);
	w->tries = true;
	w->nest = (struct nest){ .outer = &w->task, .done = wait_on_pop };
	if (!task_start_inside(&w->nest, &inside))
		abort();
}

/* --- hooks --- */

static bool wait_is_gone(const struct blocked *b, bool ask)
{
	const struct task *task = &wait_task_of(b)->task;

	return task_is_abandoned(task) ||
		(task->host->ended && task->host->ended(task->owner, ask));
}

static void wait_pop(struct blocked *b, size_t key)
{
	struct wait_task *w = wait_task_of(b);

	w->at = key;
	w->end = key + 1;
	restart_clock(w);
	try_next(w);
}

static void wait_end_blocked(struct blocked *b)
{
	restart_clock(wait_task_of(b));
	end_in_vain(wait_task_of(b));
}

static const struct blocked_hooks hooks = { wait_is_gone, wait_pop, wait_end_blocked };

static void wait_resume(struct task *task)
{
	struct wait_task *w = (struct wait_task *)task;

	if (!task_is_abandoned(task))
		return;
	if (w->tries)
		task_abandon_inside(&w->nest);
	else if (!w->blocked.is_busy)
		end_in_vain(w);
}

/* --- the start --- */

static void add_key(struct wait_task *w, struct slice key, char **at)
{
	w->blocked.places->at[w->end++].key = task_keep(at, key);
	*(*at)++ = ' ';
}

static const struct command *inside_of(const struct request *request)
{
	command_id id = request->command->id;
	bool back = id == COMMAND_BRPOP || (id == COMMAND_BLMPOP && request->flags);

	return command_get(id == COMMAND_BLMOVE ? COMMAND_LMOVE
			: id == COMMAND_BLHOLD  ? COMMAND_LHOLD
			: back                  ? COMMAND_RPOP
						: COMMAND_LPOP);
}

/* Returns the words after the key of the inner request. */
static struct slice inner_rest(const struct request *request, char count[NUM_U64_MAX])
{
	if (!command_has_keys(request->command))
		return request->rest;
	return request->command->id == COMMAND_BLMPOP
		? slice_of(count, num_format_u64(count, request->extras.count))
		: slice_of("", 0);
}

void wait_start(struct host *host, const struct request *request, void *owner)
{
	bool one = !command_has_keys(request->command);
	struct slice rest = one ? slice_of("", 0) : request->rest, key;
	struct wait_task *w;
	char count[NUM_U64_MAX], *at;
	struct slice inner = inner_rest(request, count);

	if (!host->waiting) {
		task_refuse(host, request, owner,
			"SERVER_ERROR blocking commands are not available here");
		return;
	}
	w = task_new(
		host, request, owner, sizeof(*w) + request->key.n + request->rest.n + inner.n + 1);
	at = (char *)(w + 1);
	w->inside = inside_of(request);
	w->count = one ? 1 : request->keys;
	w->at = w->end = 0;
	w->tries = false;
	blocked_init(&w->blocked, host->waiting, &hooks, w->task.account, w->count);
	task_use(&w->task, blocked_size(w->count), 0);
	w->blocked.deadline = request->number ? host->env.now + request->number : UINT64_MAX;
	add_key(w, request->key, &at);
	while ((key = slice_token(&rest)).n)
		add_key(w, key, &at);
	(void)task_keys(
		&w->task, slice_of((char *)(w + 1), (size_t)(at - 1 - (char *)(w + 1))), w->count);
	w->rest = task_keep(&at, inner);
	w->task.resume = wait_resume;
	try_next(w);
}
