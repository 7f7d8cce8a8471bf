/* A stream of requests, however it is cut; and the classic form of meta commands. */
#include "input.h"
#include "protocol/commands.h"
#include "protocol/metaform.h"
#include "protocol/reply.h"
#include "protocol/request.h"

static const struct request_limits limits = { .max_line = 600, .max_value = 300, .max_keys = 8 };

/* One line, and after VA its data. */
static void check_reply(const struct metaform *form, struct reply reply)
{
	struct buf out = BUF_EMPTY;
	struct slice text, tail;
	int lines = 0;

	MUST(!metaform_form(&out, &reply, form, &tail));
	text = buf_slice(&out);
	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	MUST(text.n == 0 ? metaflags_has(&form->flags, 'q')
			 : memcmp(text.p + text.n - 2, "\r\n", 2) == 0);
	MUST(lines == (slice_starts(text, SLICE("VA ")) ? 2 : text.n > 0));
	buf_free(&out);
}

static void check_form(const struct request *r)
{
	struct metaform *form;
	struct request classic;

	if (metaform_parse(r, r->key, &classic))
		return;
	MUST(classic.command && !classic.error &&
		command_traits(classic.command)->subject == SUBJECT_ITEM);
	MUST(classic.keys == (r->command->id == COMMAND_MG) && classic.data.n == r->data.n);
	form = malloc(metaform_size(r));
	metaform_init(r, form);
	check_reply(form, reply_value(SLICE("key"), SLICE("ab")));
	check_reply(form, reply_number(17));
	for (enum reply_word word = WORD_DELETED; word < WORDS; word++)
		check_reply(form, reply_word(word));
	check_reply(form, reply_error(SLICE("CLIENT_ERROR no")));
	free(form);
}

static bool takes_any_key(const struct command *command)
{
	return command->grammar == GRAMMAR_STORAGE || command->grammar == GRAMMAR_ARITHMETIC ||
		command->grammar == GRAMMAR_DELETE || command->grammar == GRAMMAR_TOUCH ||
		command->grammar == GRAMMAR_KEYS || command->grammar == GRAMMAR_TOUCH_KEYS ||
		metaform_has(command) || command->id == COMMAND_ME;
}

static enum request_status parse(
	struct slice in, struct request_progress *progress, struct request *r)
{
	char *copy = input_copy(in);
	enum request_status status = request_parse(slice_of(copy, in.n), &limits, progress, r);
	struct slice all = slice_of(copy, in.n);

	MUST(progress->scanned <= in.n);
	MUST(status != REQUEST_MORE || progress->needed == 0 || progress->needed > in.n);
	if (status == REQUEST_READY || status == REQUEST_REFUSED) {
		MUST(r->consumed > 0 && r->consumed <= in.n);
		struct slice words = buf_slice(&progress->quoted.words);
		MUST(input_within(r->key, all) || input_within(r->key, words));
		MUST(input_within(r->rest, all) || input_within(r->rest, words));
		MUST(input_within(r->data, all));
		MUST(r->data.n <= limits.max_value);
	}
	if (status == REQUEST_REFUSED || status == REQUEST_FATAL)
		MUST(r->error && strlen(r->error) > 0 && !strpbrk(r->error, "\r\n"));
	if (status == REQUEST_READY) {
		MUST(r->command && !r->error && r->skip.bytes == 0 && r->keys <= limits.max_keys);
		MUST(r->command->grammar == GRAMMAR_FLUSH || r->command->grammar == GRAMMAR_ARGS ||
			r->command->grammar == GRAMMAR_BARE || request_key_valid(r->key, KEY_MAX) ||
			(takes_any_key(r->command) && r->key.n <= KEY_MAX &&
				request_key_fits_line(r->key)));
		if (metaform_has(r->command) && request_key_valid(r->key, KEY_MAX))
			check_form(r);
	}
	/* The arguments are compared later. */
	if (status == REQUEST_READY && input_within(r->rest, all))
		r->rest = slice_of(in.p + (r->rest.n ? r->rest.p - copy : 0), r->rest.n);
	free(copy);
	return status;
}

static bool same(enum request_status a, const struct request *x, enum request_status b,
	const struct request *y)
{
	/* There is no result for an incomplete request. */
	if (a == REQUEST_MORE)
		return b == a;
	return a == b && x->command == y->command && x->key.n == y->key.n &&
		x->rest.n == y->rest.n && x->data.n == y->data.n && x->flags == y->flags &&
		x->exptime == y->exptime && x->number == y->number && x->noreply == y->noreply &&
		x->keys == y->keys && x->error == y->error && x->consumed == y->consumed &&
		x->skip.bytes == y->skip.bytes &&
		(a != REQUEST_READY || slice_equal(x->rest, y->rest));
}

/*
 * The result for a prefix does not change when more bytes arrive; searched bytes need not be
 * searched again.
 */
static void check_prefixes(struct slice in, enum request_status status, const struct request *whole)
{
	size_t step = in.n > 200 ? in.n / 100 : 1;
	struct request_progress kept = { 0 };
	enum request_status before = REQUEST_MORE;
	struct request r, again;

	for (size_t n = 0; n <= in.n && before == REQUEST_MORE; n += step) {
		struct request_progress fresh = { 0 };
		before = parse(slice_of(in.p, n), &fresh, &r);
		MUST(same(before, &r, parse(slice_of(in.p, n), &kept, &again), &again));
		if (before == REQUEST_READY || before == REQUEST_REFUSED)
			MUST(same(before, &r, status, whole));
		else if (before != REQUEST_MORE)
			MUST(before == status && r.error == whole->error);
		request_progress_end(&fresh);
	}
	request_progress_end(&kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);

	for (int i = 0; i < 20 && in.n; i++) {
		struct request r;
		struct request_progress progress = { 0 };
		enum request_status status = parse(in, &progress, &r);
		check_prefixes(in, status, &r);
		request_progress_end(&progress);
		if (status != REQUEST_READY && status != REQUEST_REFUSED)
			break;
		size_t taken = r.consumed + r.skip.bytes;
		in = slice_skip(in, taken < in.n ? taken : in.n);
	}
	return 0;
}
