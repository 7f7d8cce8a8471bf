#include "command/word_log.h"

#include "collection/text/expiry.h"
#include "command/args.h"
#include "command/host.h"
#include "protocol/element.h"

/* --- the words --- */

static uint32_t date_in(struct host *host, struct slice key, uint64_t seconds)
{
	return seconds ? expiry_in(env_server_time(&host->env, key), seconds) : EXPIRY_NONE;
}

uint32_t word_log_rule_date(struct host *host, struct slice key, const struct collection_rule *rule)
{
	return date_in(host, key, (uint64_t)rule->member_ttl);
}

uint32_t word_log_date(struct host *host, const struct request *request)
{
	const struct args *args = request->args;

	return args->timed ? date_in(host, request->key, args->seconds)
			   : word_log_rule_date(host, request->key, args->rule);
}

struct word_log word_log_of_args(const struct request *request, char sign, uint32_t date)
{
	const struct args *args = request->args;
	bool list = command_traits(request->command)->subject == SUBJECT_LIST,
	     spaced = request->extras.delimiter == ' ';

	return (struct word_log){
		.now = { .rest = args->words, .delimiter = ' ', .spaced = true },
		.next = { .rest = request->data,
			.delimiter = request->extras.delimiter,
			.spaced = spaced,
			.raw = !spaced,
			.bad = spaced ? command_key_bad_word : NULL },
		.rule = args->rule,
		.too_long = list ? args_long_item : args_long_member,
		.sign = sign,
		.date = date,
		.some = args->some,
	};
}

struct word_log word_log_of_item(
	const struct collection_rule *rule, struct slice data, char sign, uint32_t date)
{
	return (struct word_log){
		.now = { .rest = data,
			.delimiter = rule->delimiter,
			.bad = "CLIENT_ERROR bad member" },
		.rule = rule,
		.too_long = rule->type == COLLECTION_LIST ? args_long_item : args_long_member,
		.sign = sign,
		.date = date,
	};
}

static size_t size_of(const struct word_log *w)
{
	return w->now.rest.n + w->next.rest.n;
}

/* --- a portion --- */

/*
 * Cuts a portion off the front of the text. It ends after a delimiter, unless its last word is
 * too long or the last of all.
 */
static struct slice take_portion(struct word_text *text, size_t bytes)
{
	struct slice part = text->rest;

	if (part.n > bytes) {
		size_t more = part.n - bytes;
		const char *p = part.p + bytes, *end;
		end = p + (more < ELEMENT_WORD_MAX + 2 ? more : ELEMENT_WORD_MAX + 2);
		p = slice_find(p, end, text->delimiter);
		part.n = (size_t)(p - part.p) + (p < end);
	}
	text->rest = slice_skip(text->rest, part.n);
	return part;
}

/*
 * Returns the error of a word that is in the log. The length is checked first, since only a part
 * of a long word may be in the portion.
 */
static const char *word_error(const struct word_log *w, struct slice word)
{
	const char *error = args_check_word(w->rule, word, w->too_long);

	if (error != w->too_long && w->now.bad && !request_key_valid(word, word.n))
		return w->now.bad;
	return error;
}

/* Adds the token of a word or an element. Returns the word in it. */
static struct slice add_token(struct word_log *w, struct slice word)
{
	bool plain = !w->now.raw || element_is_plain(word);
	size_t n = plain ? word.n : element_word_size(word);
	char *at = w->at, *start;

	/* The words of a list, which may be at its front, have no dates. */
	if (w->front)
		w->at = at -= n + 2;
	*at++ = w->sign;
	start = at;
	if (plain)
		word_copy(at, word.p, n);
	else
		(void)element_write_word(at, word);
	at += n;
	if (w->date)
		at = expiry_write(at, w->date);
	*at++ = ' ';
	if (!w->front)
		w->at = at;
	w->number++;
	return slice_of(start, n);
}

bool word_log_convert(struct word_log *w, size_t bytes)
{
	struct slice part = take_portion(&w->now, bytes);

	while (part.n) {
		struct slice word =
			w->now.spaced ? slice_token(&part) : slice_cut(&part, w->now.delimiter);
		if (w->now.spaced && word.n == 0)
			break;
		w->error = word_error(w, add_token(w, word));
		if (w->error)
			return true;
	}
	if (w->now.rest.n == 0 && w->next.rest.n) {
		w->now = w->next;
		w->next.rest.n = 0;
	}
	return w->now.rest.n == 0;
}

/* --- the size of the log --- */

/* How many bytes of a text are delimiters or have an escape in words, or a few more. */
struct special {
	size_t seen; /* Bytes of the text that were counted. */
	size_t count;
};

/* A token has two bytes more than its word. Words have at least one byte between them in a text. */
static size_t log_of_words(size_t text)
{
	return text + 3 + text / 2;
}

static size_t count_special(struct slice text, char delimiter)
{
	size_t count = 0;

	for (; text.n >= WORD_BYTES; text = slice_skip(text, WORD_BYTES)) {
		uint64_t w = word_load(text.p),
			 found = word_below(w, ' ' + 1) | word_equal(w, (unsigned char)delimiter);
		count += (found >> 7) * WORD_EACH(1) >> 56;
	}
	return count + text.n;
}

/* Counts at most `bytes` bytes of the text. Returns whether the rest need not be counted. */
static bool count_portion(const struct word_log *w, const struct word_text *text,
	struct special *special, size_t bytes)
{
	enum { SMALL = 1024 /* A log of this text may have more room than it needs. */ };
	size_t n = text->rest.n;
	struct slice part = slice_skip(text->rest, special->seen);

	if (!text->raw && !w->date)
		return true;
	if (n <= SMALL && !w->date) {
		special->count = n;
		return true;
	}
	if (part.n > bytes)
		part.n = bytes;
	special->seen += part.n;
	special->count += count_special(part, text->delimiter);
	return special->seen == n;
}

/*
 * An escaped byte has one byte more. The token of an element has one byte more than the element
 * with its delimiter, or three if the element is empty.
 */
static size_t log_of_elements(size_t text, size_t special)
{
	return text ? text + 3 * special + 4 : 0;
}

static size_t log_of_dates(const struct word_text *text, size_t special)
{
	return text->rest.n ? (special + 1) * EXPIRY_SIZE : 0;
}

/* `now` and `next` are for the texts of these names. */
static size_t log_size(
	const struct word_log *w, const struct special *now, const struct special *next)
{
	const struct word_text *text = &w->next;
	size_t words = w->now.rest.n + (text->raw ? 0 : text->rest.n);

	return (w->date ? log_of_dates(&w->now, now->count) + log_of_dates(text, next->count) : 0) +
		log_of_words(words) + (text->raw ? log_of_elements(text->rest.n, next->count) : 0);
}

size_t word_log_max(const struct word_log *w)
{
	struct special now = { 0 }, next = { 0 };

	(void)count_portion(w, &w->now, &now, SIZE_MAX);
	(void)count_portion(w, &w->next, &next, SIZE_MAX);
	return log_size(w, &now, &next);
}

/* --- all portions --- */

/*
 * A task that has not submitted its operation yet, or whose operation is in the lane. The words
 * are in the memory of the input, `input`, or in the task's scratch. On a machine where new pages
 * are expensive, the copy of a large text would delay all other clients.
 */
struct word_log_later {
	struct waiter waiter;
	struct op_task *task;
	struct word_log words;
	struct special now, next; /* Of the texts of `words`. */
	struct buf input;
	char *log; /* NULL until its size, `room`, is known. */
	size_t room;
	op_done *done; /* The operation's own. */
};

static bool is_long(const struct word_log *w)
{
	return size_of(w) > REQUEST_LONG;
}

size_t word_log_room(const struct word_log *w)
{
	return is_long(w) ? sizeof(struct word_log_later) : word_log_max(w);
}

static struct word_log_later *later_of(struct op_task *t)
{
	return (struct word_log_later *)(void *)t->more;
}

static void free_log(struct word_log_later *later)
{
	struct task *task = &later->task->task;

	if (!later->log)
		return;
	task_use(task, 0, later->room);
	pool_put(task->host->env.pool, later->log, later->room);
	later->log = NULL;
}

static void free_text(struct word_log_later *later)
{
	struct task *task = &later->task->task;

	task_use(task, 0, task->scratch.cap + later->input.cap);
	buf_free(&task->scratch);
	buf_free(&later->input);
}

static void word_log_on_stored(struct op *op, const struct outcome *outcome)
{
	struct word_log_later *later = later_of(op_task_of(op));

	free_log(later);
	later->done(op, outcome);
}

/* Returns the error line of words that cannot be submitted, or NULL. */
static const char *refusal_of(const struct op_task *t, const struct word_log *w)
{
	bool misses = w->some && w->number == 0;

	return w->error ? w->error : misses ? command_usage(t->task.command->id) : NULL;
}

static void submit(struct op_task *t, const struct word_log *w)
{
	t->op.log = w->front ? slice_of(w->at, (size_t)(w->from - w->at))
			     : slice_of(w->from, (size_t)(w->at - w->from));
	op_task_submit(t);
}

static void begin_log(struct word_log *w, char *log, size_t room)
{
	w->from = w->at = w->front ? log + room : log;
}

/* Takes memory for the log, which is not touched before words are written there. */
static void make_log(struct word_log_later *later)
{
	struct task *task = &later->task->task;

	later->room = log_size(&later->words, &later->now, &later->next);
	later->log = pool_get(task->host->env.pool, later->room);
	task_use(task, later->room, 0);
	begin_log(&later->words, later->log, later->room);
}

enum { PORTION = 4096 };

/* Counts or converts a portion. Returns the steps; 0 for the last one. */
static size_t do_portion(struct word_log_later *later)
{
	enum { COUNTED = 32, CONVERTED = 64 /* bytes in one step */ };
	struct word_log *w = &later->words;
	size_t before = w->number;

	if (!later->log) {
		if (count_portion(w, &w->now, &later->now, PORTION) &&
			count_portion(w, &w->next, &later->next, PORTION))
			make_log(later);
		return PORTION / COUNTED;
	}
	return word_log_convert(w, PORTION) ? 0 : PORTION / CONVERTED + (w->number - before) / 2;
}

static void end_portions(struct word_log_later *later, bool done)
{
	struct op_task *t = later->task;
	const char *refusal = done ? refusal_of(t, &later->words) : NULL;

	free_text(later);
	if (done && !refusal) {
		later->done = t->op.done;
		t->op.done = word_log_on_stored;
		submit(t, &later->words);
		return;
	}
	free_log(later);
	if (refusal)
		task_say_refusal(&t->task, refusal);
	else
		task_done(&t->task);
}

static void word_log_on_slice(struct waiter *waiter, const struct result *r)
{
	struct word_log_later *later = (struct word_log_later *)waiter;
	struct task *task = &later->task->task;
	size_t steps = 1;

	(void)r;
	while (steps && !task_is_abandoned(task)) {
		steps = do_portion(later);
		if (steps && task_pauses(task, steps, &later->waiter))
			return;
	}
	end_portions(later, steps == 0);
}

/* Takes the memory of the longer text, if possible, and copies the other one. */
static void keep_texts(struct word_log_later *later)
{
	struct task *task = &later->task->task;
	struct host *host = task->host;
	struct slice *now = &later->words.now.rest, *next = &later->words.next.rest,
		     *text = next->n > now->n ? next : now, *other = text == now ? next : now;
	char *at;

	if (host->take_input)
		later->input = host->take_input(task->owner, *text);
	at = buf_reserve(&task->scratch, other->n + (later->input.data ? 0 : text->n));
	if (!later->input.data)
		*text = task_keep(&at, *text);
	*other = task_keep(&at, *other);
	task_use(task, task->scratch.cap + later->input.cap, 0);
}

void word_log_submit(struct op_task *t, struct word_log *w)
{
	struct word_log_later *later = later_of(t);
	const char *refusal;

	if (!is_long(w)) {
		begin_log(w, t->more, w->front ? word_log_max(w) : 0);
		while (!word_log_convert(w, REQUEST_LONG))
			;
		refusal = refusal_of(t, w);
		if (refusal)
			task_say_refusal(&t->task, refusal);
		else
			submit(t, w);
		return;
	}
	*later = (struct word_log_later){
		.waiter = { .done = word_log_on_slice },
		.task = t,
		.words = *w,
	};
	keep_texts(later);
	/* Memory of the input must not be freed yet, even if the first word is invalid. */
	if (later->input.data)
		task_pause(&t->task, &later->waiter);
	else
		word_log_on_slice(&later->waiter, NULL);
}
