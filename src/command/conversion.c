#include "command/conversion.h"

static const char refusal[] =
	"CLIENT_ERROR an element contains the delimiter: read single elements with lindex, lpop, "
	"rpop, srandmember or spop, or use the text protocol";

struct conversion {
	struct waiter waiter;
	const struct task *task;
	struct reply reply;
	struct shared *words;
	struct elements elements;
	size_t used; /* Bytes that are counted for the client. */
	conversion_done *done;
	void *arg;
};

static struct reply refused_reply(void)
{
	return reply_error(slice_of(refusal, sizeof(refusal) - 1));
}

/* Counts the memory of the conversion: the result, and the words unless others share them. */
static void count_used(struct conversion *c)
{
	size_t used = c->elements.out.cap + (c->words->refs == 1 ? c->words->text.cap : 0);

	task_use(c->task, used, c->used);
	c->used = used;
}

static void finish_conversion(struct conversion *c)
{
	struct pool *pool = c->task->host->env.pool;
	struct shared *words = c->words, *result = NULL;
	struct elements *e = &c->elements;
	struct reply r = c->reply;
	conversion_done *done = c->done;
	void *arg = c->arg;

	task_use(c->task, 0, c->used);
	r.content = CONTENT_BYTES;
	r.bytes = SLICE("");
	if (e->refused) {
		r = refused_reply();
	} else if (e->converted) {
		result = r.shared = shared_create(&e->out);
	} else {
		r.shared = words;
		if (!e->joins && e->done == e->words.n)
			words->words = SHARED_PLAIN;
	}
	buf_free(&e->out);
	pool_put(pool, c, sizeof(*c));
	/* Then the task may be freed. */
	done(arg, &r);
	shared_drop(result);
	shared_drop(words);
}

static void convert(struct conversion *c)
{
	struct env *env = &c->task->host->env;

	do {
		if (task_is_abandoned(c->task) || elements_convert(&c->elements)) {
			finish_conversion(c);
			return;
		}
		/* A portion that is only checked is cheap. */
	} while (!env_is_over(env, c->elements.converted ? ELEMENTS_STEPS : ELEMENTS_STEPS / 16));
	count_used(c);
	env->pause(env, &c->waiter, c->task->account);
}

static void conversion_continue(struct waiter *waiter, const struct result *r)
{
	(void)r;
	convert((struct conversion *)((char *)waiter - offsetof(struct conversion, waiter)));
}

/* Returns whether a shared text was checked before, and needs no conversion. */
static bool is_known_unchanged(const struct reply *r, const struct elements *how)
{
	if (!r->shared || r->shared->words != SHARED_PLAIN)
		return false;
	return !how->joins || (how->delimiter == ' ' && !how->ends);
}

static void convert_at_once(
	const struct reply *reply, struct elements e, conversion_done *done, void *arg)
{
	struct reply r = *reply;

	r.content = CONTENT_BYTES;
	if (!e.joins && reply->shared && reply->shared->words == SHARED_UNKNOWN)
		elements_check_shared(reply->shared);
	if (!is_known_unchanged(reply, &e)) {
		e.words = reply_bytes(reply);
		while (!elements_convert(&e))
			;
		if (e.converted) {
			r.shared = NULL;
			r.bytes = buf_slice(&e.out);
		}
		if (e.refused)
			r = refused_reply();
	}
	done(arg, &r);
	buf_free(&e.out);
}

void conversion_start(const struct task *task, const struct reply *reply, struct elements how,
	conversion_done *done, void *arg)
{
	struct conversion *c;
	struct buf copy = BUF_EMPTY;

	if (reply_bytes(reply).n < ELEMENTS_LARGE || is_known_unchanged(reply, &how)) {
		convert_at_once(reply, how, done, arg);
		return;
	}
	c = pool_get(task->host->env.pool, sizeof(*c));
	if (!reply->shared)
		buf_add_slice(&copy, reply->bytes);
	*c = (struct conversion){
		.waiter = { .done = conversion_continue },
		.task = task,
		.reply = *reply,
		.words = reply->shared ? shared_hold(reply->shared) : shared_create(&copy),
		.elements = how,
		.done = done,
		.arg = arg,
	};
	c->elements.words = buf_slice(&c->words->text);
	convert(c);
}

static void conversion_on_quoted(void *arg, const struct reply *reply)
{
	task_say(arg, reply);
}

void task_say_elements(struct task *task, const struct reply *r)
{
	static const struct elements quoted;

	/* The form of the reply converts a small text. An outer task receives the words. */
	if (r->content != CONTENT_ELEMENTS || reply_bytes(r).n < ELEMENTS_LARGE ||
		task_passes(task, r))
		task_say(task, r);
	else
		conversion_start(task, r, quoted, conversion_on_quoted, task);
}
