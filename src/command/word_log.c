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

/* --- all portions --- */

/* A task that has not submitted its operation yet. The words are in its scratch. */
struct word_log_later {
	struct waiter waiter;
	struct op_task *task;
	struct word_log words;
};

/* A token has two bytes more than its word. Words have at least one byte between them in a text. */
static size_t log_of_words(size_t text)
{
	return text + 3 + text / 2;
}

/* Returns how many bytes of the text are delimiters or have an escape in words, or a few more. */
static size_t count_special(const struct word_text *text)
{
	const char *p = text->rest.p, *end = p + text->rest.n;
	size_t count = 0;

	for (; end - p >= WORD_BYTES; p += WORD_BYTES) {
		uint64_t w = word_load(p),
			 found = word_below(w, ' ' + 1) |
			word_equal(w, (unsigned char)text->delimiter);
		count += (found >> 7) * WORD_EACH(1) >> 56;
	}
	return count + (size_t)(end - p);
}

/*
 * An escaped byte has one byte more. The token of an element has one byte more than the element
 * with its delimiter, or three if the element is empty.
 */
static size_t log_of_elements(const struct word_text *text)
{
	enum { SMALL = 1024 /* A log of this text may have more room than it needs. */ };
	size_t n = text->rest.n, special = n <= SMALL ? n : count_special(text);

	return n ? n + 3 * special + 4 : 0;
}

/* Returns the bytes of the dates of a text, or a few more. */
static size_t log_of_dates(const struct word_text *text)
{
	return text->rest.n ? (count_special(text) + 1) * EXPIRY_SIZE : 0;
}

static size_t log_max(const struct word_log *w)
{
	const struct word_text *next = &w->next;

	return (w->date ? log_of_dates(&w->now) + log_of_dates(next) : 0) +
		log_of_words(w->now.rest.n + (next->raw ? 0 : next->rest.n)) +
		(next->raw ? log_of_elements(next) : 0);
}

size_t word_log_room(const struct word_log *w)
{
	return log_max(w) + (size_of(w) > REQUEST_LONG ? sizeof(struct word_log_later) : 0);
}

static void submit(struct op_task *t, const struct word_log *w)
{
	if (w->error) {
		task_say_refusal(&t->task, w->error);
	} else if (w->some && w->number == 0) {
		task_say_refusal(&t->task, command_usage(t->task.command->id));
	} else {
		t->op.log = w->front ? slice_of(w->at, (size_t)(w->from - w->at))
				     : slice_of(w->from, (size_t)(w->at - w->from));
		op_task_submit(t);
	}
}

static void word_log_on_slice(struct waiter *waiter, const struct result *r)
{
	enum { PORTION = 4096, BYTES = 64 /* checked in one step */ };
	struct word_log_later *later = (struct word_log_later *)waiter;
	struct word_log *w = &later->words;
	struct task *task = &later->task->task;
	bool done = false;

	(void)r;
	while (!done && !task_is_abandoned(task)) {
		size_t before = w->number;
		done = word_log_convert(w, PORTION);
		if (!done &&
			task_pauses(
				task, PORTION / BYTES + (w->number - before) / 2, &later->waiter))
			return;
	}
	task_use(task, 0, task->scratch.cap);
	buf_free(&task->scratch);
	if (done)
		submit(later->task, w);
	else
		task_done(task);
}

void word_log_submit(struct op_task *t, struct word_log *w)
{
	struct word_log_later *later = (struct word_log_later *)(void *)t->more;
	size_t text = size_of(w);
	char *log = text > REQUEST_LONG ? (char *)(later + 1) : t->more, *at;

	w->from = w->at = w->front ? log + log_max(w) : log;
	if (text <= REQUEST_LONG) {
		while (!word_log_convert(w, REQUEST_LONG))
			;
		submit(t, w);
		return;
	}
	at = buf_reserve(&t->task.scratch, text);
	task_use(&t->task, t->task.scratch.cap, 0);
	w->now.rest = task_keep(&at, w->now.rest);
	w->next.rest = task_keep(&at, w->next.rest);
	*later = (struct word_log_later){ { .done = word_log_on_slice }, t, *w };
	word_log_on_slice(&later->waiter, NULL);
}
