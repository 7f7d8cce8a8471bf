/*
 * For the fuzzer of connections: a reply has the form of its command, and contains keys of its
 * request.
 */
#ifndef FUZZ_REPLY_FORM_H
#define FUZZ_REPLY_FORM_H

#include "input.h"
#include "protocol/command.h"
#include "util/num.h"

/* Whether a server gave this value for that key. */
typedef bool form_given(struct slice key, struct slice value);

static inline struct slice form_line(struct slice *in)
{
	const char *end = in->n ? memchr(in->p, '\n', in->n) : NULL;
	size_t n = end ? (size_t)(end - in->p) : 0;
	struct slice line;

	MUST(end && n > 1 && end[-1] == '\r');
	line = slice_of(in->p, n - 1);
	*in = slice_skip(*in, n + 1);
	return line;
}

static inline struct slice form_block(struct slice *in, struct slice length)
{
	struct slice block;
	uint64_t n = 0;

	MUST(num_parse_u64(length, &n) && n + 2 <= in->n);
	block = slice_of(in->p, (size_t)n);
	MUST(in->p[n] == '\r' && in->p[n + 1] == '\n');
	*in = slice_skip(*in, (size_t)n + 2);
	return block;
}

static inline bool form_names(const struct command *command, struct slice words, struct slice key)
{
	struct slice word;
	bool event = command->grammar == GRAMMAR_KEY_ARGS || command->grammar == GRAMMAR_EVENT_DATA;

	/* The result of sunion, sinter and sdiff has the name of the command. */
	if (slice_equal(key, command->name))
		return true;
	while ((word = slice_token(&words)).n) {
		if (slice_equal(word, key) || (event && slice_starts(key, word)))
			return true;
	}
	return false;
}

/* Any number of values, or of informative lines, and a last line. */
static inline void form_check_values(
	const struct command *command, struct slice words, struct slice in, form_given *given)
{
	bool plain = command->grammar == GRAMMAR_KEYS || command->grammar == GRAMMAR_TOUCH_KEYS;

	for (;;) {
		struct slice line = form_line(&in), code = slice_token(&line);
		if (slice_equal(code, SLICE("STAT")) || slice_equal(code, SLICE("COUNT")))
			continue;
		if (!slice_equal(code, SLICE("VALUE")))
			break;
		struct slice key = slice_token(&line);
		(void)slice_token(&line);
		struct slice block = form_block(&in, slice_token(&line));
		MUST(form_names(command, words, key));
		/* The value of a command is its reply. */
		MUST(!plain || slice_starts(key, SLICE("q|")) || given(key, block));
	}
	MUST(in.n == 0);
}

static inline void form_check_meta(struct slice in)
{
	struct slice line = form_line(&in);

	if (slice_equal(slice_token(&line), SLICE("VA")))
		(void)form_block(&in, slice_token(&line));
	MUST(in.n == 0);
}

static inline bool form_has_flag(struct slice words, char flag)
{
	struct slice word;

	while ((word = slice_token(&words)).n) {
		if (word.p[0] == flag)
			return true;
	}
	return false;
}

/*
 * A whole reply: none if the client requests none, an error line for a refused request (`command`
 * is NULL), or the command's reply. `words` is the line of the request.
 */
static inline void form_check(const struct command *command, struct slice words, bool quiet,
	struct slice in, form_given *given)
{
	bool meta = command &&
		(command->grammar == GRAMMAR_META || command->grammar == GRAMMAR_META_DATA);

	if (quiet) {
		MUST(in.n == 0);
	} else if (meta && in.n == 0) {
		MUST(form_has_flag(words, 'q'));
	} else if (meta) {
		form_check_meta(in);
	} else if (command && command->reply == COMMAND_REPLY_DATA) {
		form_check_values(command, words, in, given);
	} else {
		(void)form_line(&in);
		MUST(in.n == 0);
	}
}

#endif
