#include "command/task.h"

#include "protocol/commands.h"
#include "protocol/elements.h"
#include "protocol/reply.h"
#include "util/heap.h"

const char task_too_large[] = "SERVER_ERROR result too large";

/* The data for the form follow the object. */
static size_t align(size_t size)
{
	return (size + 7) / 8 * 8;
}

/* Not inline: most replies go to the client, in the text protocol. */
static __attribute__((noinline)) void redirect(
	struct task *task, const struct request_reply *way, size_t size)
{
	const struct request *sent = way->sent;

	task->nest = way->into;
	if (way->form)
		task->as.form = way->form;
	if (way->asked_size)
		task->as.asked = memcpy((char *)task + align(size), way->asked, way->asked_size);
	if (sent) {
		task->sent.command = sent->command;
		task->sent.bytes = (uint32_t)sent->consumed;
		task->sent.values = (uint32_t)sent->keys;
		task->order = order_effect(sent);
	}
}

void *task_new(struct host *host, const struct request *request, void *owner, size_t size)
{
	const struct request_reply *way = request->reply;
	size_t all = way ? align(size) + way->asked_size : size;
	struct task *task = pool_get(host->env.pool, all);

	*task = (struct task){
		.host = host,
		.owner = owner,
		.size = all,
		.sent = {
			.command = request->command,
			.bytes = (uint32_t)request->consumed,
			.values = (uint32_t)request->keys,
		},
		.command = request->command,
		.as = { .form = reply_text_form },
		.order = order_effect(request),
		.quiet = request->noreply,
	};
	if (way)
		redirect(task, way, size);
	if (task->nest) {
		task->nest->task = task;
		task->account = task->nest->outer->account;
		task->expected = task->nest->outer->expected;
	} else {
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

struct slice task_keys(struct task *task, struct slice keys, size_t count)
{
	task->keys.list = keys;
	task->keys.count = (uint32_t)count;
	return keys;
}

bool task_is_full(const struct task *task)
{
	return task_is_abandoned(task) || (task->nest && task->nest->overflows);
}

void task_owns(const struct task *task, struct op *op)
{
	op->account = task->account;
}

void task_hold(const struct task *task, size_t more, size_t less)
{
	account_hold(task->account, more, less);
}

void task_use(const struct task *task, size_t more, size_t less)
{
	account_use(task->account, more, less);
}

void task_pause(struct task *task, struct waiter *waiter)
{
	struct env *env = &task->host->env;

	env->pause(env, waiter, task->account);
}

bool task_pauses(struct task *task, size_t steps, struct waiter *waiter)
{
	bool pauses = env_is_over(&task->host->env, steps);

	if (pauses)
		task_pause(task, waiter);
	return pauses;
}

/*
 * A nested reply cannot be sent in pieces. Checks the limit for `more` bytes that are about to
 * be added.
 */
static void bound_collected(struct task *task, size_t more)
{
	size_t most = task->host->env.options->result_max;

	task->nest->overflows |= most && buf_size(&task->spill) + more > most;
	if (task_is_full(task))
		buf_free(&task->spill);
}

/* Counts the bytes that a nested task has added to its reply. */
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

/*
 * A nested task never pauses: no write of its reply would resume it. The limits of the client
 * bound the collected bytes.
 */
bool task_has_room(const struct task *task)
{
	return task->nest || !task->host->room || task->host->room(task);
}

void task_reply_shared(struct task *task, struct shared *text)
{
	struct host *host = task->host;

	if (task->nest) {
		bound_collected(task, buf_size(&text->text));
		if (task_is_full(task))
			return;
	} else if (host->share && host->share(task, text)) {
		return;
	}
	/* Others often follow, for which the block must not be copied: new pages cost enough. */
	if (task->nest && task->spill.cap < HEAP_LARGE && buf_size(&text->text) >= HEAP_LARGE / 8)
		(void)buf_reserve(task_reply(task), HEAP_LARGE);
	buf_add_slice(task_reply(task), buf_slice(&text->text));
}

bool task_write(const struct task *task, struct buf *out, const struct reply *r, struct slice *tail)
{
	struct reply copied;

	if (!r->shared || buf_size(&r->shared->text) >= TASK_SHARES)
		return task->as.form(out, r, task->as.asked, tail);
	copied = *r;
	copied.bytes = reply_bytes(r);
	copied.shared = NULL;
	if (r->content == CONTENT_ELEMENTS && elements_shared_are_plain(r->shared))
		copied.content = CONTENT_BYTES;
	return task->as.form(out, &copied, task->as.asked, tail);
}

/* Inline: almost every reply passes here once. */
static inline __attribute__((always_inline)) void add_to_reply(
	struct task *task, const struct reply *r)
{
	struct slice tail;

	if (!r->shared) {
		(void)task->as.form(task_reply(task), r, task->as.asked, &tail);
	} else if (task_write(task, task_reply(task), r, &tail)) {
		task_reply_shared(task, r->shared);
		buf_add_slice(task_reply(task), tail);
	}
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

/* --- nested tasks --- */

/* Returns whether the outer task receives this reply unchanged. */
static bool is_whole(const struct task *task, const struct reply *r)
{
	if (r->more || r->kind == REPLY_META || task->as.form != reply_text_form ||
		buf_size(&task->spill))
		return false;
	return r->kind != REPLY_VALUE || !task->nest->collects;
}

bool task_passes(const struct task *task, const struct reply *r)
{
	return task->nest && is_whole(task, r);
}

/* Collects a part of a reply. The END is left out. */
static void collect(struct task *task, const struct reply *r)
{
	bool ends =
		task->as.form == reply_text_form && r->kind == REPLY_WORD && r->word == WORD_END;
	struct reply part = *r;

	part.more |= task->as.form == reply_text_form;
	bound_collected(task, reply_bytes(r).n);
	if (!ends && r->kind != REPLY_ERROR && !task_is_full(task))
		add_to_reply(task, &part);
}

/* Returns the reply for the outer task. `text` is the collected text, if it is large. */
static struct reply told(struct task *task, const struct reply *last, struct shared **text)
{
	struct reply r = reply_line(buf_slice(&task->spill));

	if (task->nest->overflows)
		return reply_error(slice_of(task_too_large, strlen(task_too_large)));
	if (task_is_abandoned(task))
		return reply_error(SLICE("SERVER_ERROR client closed"));
	if (last->kind == REPLY_ERROR || is_whole(task, last))
		return *last;
	if (r.bytes.n == 0)
		return (struct reply){ .kind = REPLY_NOTHING };
	r.bytes.n -= 2;
	r.word = last->kind == REPLY_META || task->as.form != reply_text_form ? last->word
									      : WORD_NONE;
	if (r.bytes.n >= TASK_SHARES) {
		task->spill.end -= 2;
		*text = r.shared = shared_create(&task->spill);
	}
	return r;
}

static void finish_inside(struct task *task, const struct reply *last)
{
	struct nest *nest = task->nest;
	struct shared *text = NULL;
	struct reply r;

	bound_collected(task, is_whole(task, last) ? reply_bytes(last).n : 0);
	task_hold(nest->outer, 0, task->spilled);
	r = told(task, last, &text);
	nest->task = NULL;
	nest->done(nest, &r);
	shared_drop(text);
	reuse_spill(task);
	task_free(task);
}

static __attribute__((noinline)) void say_inside(struct task *task, const struct reply *r)
{
	if (!is_whole(task, r))
		collect(task, r);
	count_collected(task);
	if (!r->more)
		finish_inside(task, r);
}

/* --- replies --- */

void task_say(struct task *task, const struct reply *r)
{
	if (__builtin_expect(task->nest != NULL, false)) {
		say_inside(task, r);
		return;
	}
	add_to_reply(task, r);
	if (!r->more)
		task->host->done(task);
}

void task_done(struct task *task)
{
	if (task->nest)
		finish_inside(task, &(struct reply){ .kind = REPLY_NOTHING });
	else
		task->host->done(task);
}

void task_abandon_inside(struct nest *nest)
{
	struct task *task = nest->task;

	if (!task)
		return;
	task->owner = NULL;
	/* The task may still wait for its pending calls. */
	count_collected(task);
	if (task->resume)
		task->resume(task);
}

/* Most replies are a word or a number in the text protocol, which need no struct reply. */
void task_say_word(struct task *task, enum reply_word word)
{
	struct reply r;

	if (task_is_plain(task)) {
		reply_add_word(task->host->reply(task), word);
		task->host->done(task);
		return;
	}
	r = reply_word(word);
	task_say(task, &r);
}

void task_say_number(struct task *task, uint64_t n)
{
	struct reply r;

	if (task_is_plain(task)) {
		reply_add_number(task->host->reply(task), n);
		task->host->done(task);
		return;
	}
	r = reply_number(n);
	task_say(task, &r);
}

void task_say_error(struct task *task, const char *line)
{
	const struct reply r = reply_error(slice_of(line, strlen(line)));

	task_say(task, &r);
}

void task_say_failure(struct task *task, const struct result *r)
{
	task_note_failure(task, r);
	(void)task_fails(task);
}

enum reply_word task_done_word(const struct task *task)
{
	switch (task->command->id) {
	case COMMAND_DELETE:
	case COMMAND_LACK:
	case COMMAND_SREM:
		return WORD_DELETED;
	case COMMAND_TOUCH:
		return WORD_TOUCHED;
	case COMMAND_FLUSH_ALL:
	case COMMAND_SCOMPACT:
		return WORD_OK;
	default:
		return WORD_STORED;
	}
}

void task_say_done(struct task *task)
{
	task_say_word(task, task_done_word(task));
}

bool task_has_failed(const struct task *task)
{
	return buf_size(&task->scratch) > 0;
}

void task_note(struct task *task, const char *line)
{
	if (!task_has_failed(task))
		buf_add(&task->scratch, line, strlen(line));
}

void task_note_failure(struct task *task, const struct result *r)
{
	if (!task_has_failed(task))
		reply_add_error(&task->scratch, r);
}

bool task_fails(struct task *task)
{
	struct reply r;

	if (!task_has_failed(task))
		return false;
	r = reply_error(buf_slice(&task->scratch));
	task_say(task, &r);
	return true;
}

void task_say_end(struct task *task)
{
	if (!task_fails(task))
		task_say_word(task, WORD_END);
}

struct slice task_keep_key(struct task *task, const struct request *request, char **at)
{
	struct slice key = task_keep(at, request->key);

	return key.n && !request->extras.odd_key ? task_keys(task, key, 1) : key;
}

struct slice task_keep(char **at, struct slice s)
{
	struct slice copy = slice_of(*at, s.n);

	*at = slice_write(*at, s);
	return copy;
}

/* Returns the task that the host sees. */
static struct task *outermost(struct task *task)
{
	while (task->nest)
		task = task->nest->outer;
	return task;
}

void task_say_refusal(struct task *task, const char *line)
{
	outermost(task)->sent.refused = true;
	(void)task_keys(task, slice_of("", 0), 0);
	task_say_error(task, line);
}

void task_refuse(struct host *host, const struct request *request, void *owner, const char *line)
{
	task_say_refusal(task_new(host, request, owner, sizeof(struct task)), line);
}
