#include "protocol/quoted.h"

#include "protocol/element.h"
#include "util/num.h"

static const char unbalanced[] = "CLIENT_ERROR unbalanced quotes";
static const char control[] = "CLIENT_ERROR control character in line";

bool quoted_is_possible(struct slice line)
{
	const char *p = line.p, *end = line.p + line.n;

	if (line.n && end[-1] == '}')
		return true;
	/* The two quotes, and also # and &, differ only in two bits. */
	for (; end - p > WORD_BYTES; p += WORD_BYTES) {
		if (word_equal(word_load(p) & WORD_EACH(0xfa), '"'))
			return true;
	}
	/* The last eight bytes may include some of those before `p`. */
	if (line.n >= WORD_BYTES)
		return word_equal(word_load(end - WORD_BYTES) & WORD_EACH(0xfa), '"') != 0;
	while (p < end && !element_is_quote(*p))
		p++;
	return p < end;
}

/* --- quotes --- */

/* Removes what follows a backslash from the front of `rest`. Returns the byte that it means. */
static char take_escaped(struct slice *rest)
{
	static const char letters[] = ELEMENT_LETTERS, bytes[] = ELEMENT_LETTER_BYTES;
	const char *letter;
	char c = rest->p[0];

	if (c == 'x' && rest->n > 2 && num_hex_digit(rest->p[1]) >= 0 &&
		num_hex_digit(rest->p[2]) >= 0) {
		c = (char)(num_hex_digit(rest->p[1]) << 4 | num_hex_digit(rest->p[2]));
		*rest = slice_skip(*rest, 3);
		return c;
	}
	*rest = slice_skip(*rest, 1);
	letter = memchr(letters, c, sizeof(letters) - 1);
	return letter ? bytes[letter - letters] : c;
}

/*
 * Removes a quoted argument, of which `rest` begins with the quote, and writes its bytes to
 * `at`. Returns their end; NULL if the closing quote is missing, or anything but a space
 * follows it.
 */
static char *take_quoted(struct slice *rest, char *at)
{
	char quote = rest->p[0];

	*rest = slice_skip(*rest, 1);
	while (rest->n && rest->p[0] != quote) {
		char c = rest->p[0];
		bool escapes = c == '\\' && rest->n > 1 &&
			(quote == '"' || rest->p[1] == quote || rest->p[1] == '\\');
		*rest = slice_skip(*rest, 1);
		if (escapes && quote == '"')
			c = take_escaped(rest);
		else if (escapes)
			c = rest->p[0], *rest = slice_skip(*rest, 1);
		*at++ = c;
	}
	if (rest->n == 0)
		return NULL;
	*rest = slice_skip(*rest, 1);
	return rest->n == 0 || rest->p[0] == ' ' ? at : NULL;
}

/* --- words --- */

static void add_word_of(struct buf *words, struct slice element)
{
	char *at = buf_reserve(words, 2 * element.n + 3), *end = element_write_word(at, element);

	*end++ = ' ';
	buf_commit(words, (size_t)(end - at));
}

/*
 * Takes one argument from the front of a line. Stores whether it is the size of a literal, and
 * that size. Returns NULL, or the error.
 */
static const char *take_argument(
	struct slice *rest, struct buf *words, uint64_t *literal, bool *is_literal_size)
{
	struct slice word;
	char *raw, *end;

	*is_literal_size = false;
	if (!element_is_quote(rest->p[0])) {
		word = slice_token(rest);
		*is_literal_size = rest->n == 0 && element_is_literal(word, literal);
		if (word_find_below(word.p, word.p + word.n, ' ') != word.p + word.n)
			return control;
		if (!*is_literal_size)
			buf_add_word(words, word);
		return NULL;
	}
	/* The bytes are written after the room for their word. */
	raw = buf_reserve(words, 3 * rest->n + 3) + 2 * rest->n + 3;
	end = take_quoted(rest, raw);
	if (!end)
		return unbalanced;
	add_word_of(words, slice_of(raw, (size_t)(end - raw)));
	return NULL;
}

/*
 * Takes all arguments of a line. `last` is the last one, if it is a plain word. Returns NULL, or
 * the error; sets `literal` and `has_literal` if a literal follows the line.
 */
static const char *take_line(struct slice line, struct buf *words, uint64_t *literal,
	bool *has_literal, struct slice *last)
{
	const char *error = NULL;

	*has_literal = false;
	while (!error) {
		while (line.n && line.p[0] == ' ')
			line = slice_skip(line, 1);
		if (line.n == 0)
			break;
		*last = element_is_quote(line.p[0]) ? slice_of("", 0) : line;
		error = take_argument(&line, words, literal, has_literal);
		if (last->n)
			last->n -= line.n;
	}
	return error;
}

static enum request_status end_input(struct quoted_arguments *out, const char *error)
{
	out->error = error;
	return REQUEST_FATAL;
}

/*
 * Refuses a line. If it ends like one that a literal follows, then the bytes of this literal, and
 * of those after it, must not be taken for requests.
 */
static enum request_status refuse_line(
	struct quoted_arguments *out, struct slice line, const char *error)
{
	const char *brace = memrchr(line.p, '{', line.n);
	uint64_t size;

	if (brace && element_is_literal(slice_skip(line, (size_t)(brace - line.p)), &size))
		return end_input(out, error);
	out->error = error;
	return REQUEST_REFUSED;
}

/* The last argument is the word noreply, which is removed, unless it is the first one. */
static void take_last_noreply(struct quoted_arguments *out, struct slice last)
{
	size_t n = out->rest.n;

	if (!out->may_have_noreply || !slice_equal(last, SLICE("noreply")) || n <= last.n)
		return;
	out->noreply = true;
	out->rest.n = n - last.n - 1;
}

/*
 * Returns whether this byte may follow a literal. Any other one is a part of an element whose size
 * was too small, for example because the client counted characters.
 */
static bool ends_literal(char c)
{
	return c == ' ' || c == '\r' || c == '\n';
}

/* Finds the line that begins at q->at. Returns false if its end was not received yet. */
static bool find_end(struct slice in, struct quoted *q, struct slice *line, size_t *next)
{
	const char *end = memchr(in.p + q->scanned, '\n', in.n - q->scanned);

	q->scanned = end ? (size_t)(end - in.p) : in.n;
	if (!end)
		return false;
	*line = slice_of(in.p + q->at, q->scanned - q->at);
	if (line->n && line->p[line->n - 1] == '\r')
		line->n--;
	*next = q->scanned + 1;
	return true;
}

enum request_status quoted_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct quoted_arguments *out)
{
	struct quoted *q = &progress->quoted;
	struct slice line, last = SLICE("");
	uint64_t literal = 0;
	bool has_literal, found;
	const char *error;
	size_t next;

	if (!q->at)
		q->at = q->scanned = (size_t)(out->rest.p - in.p);
	for (;;) {
		/* The line may have been parsed before. */
		q->words.end = q->words.start + q->kept;
		found = find_end(in, q, &line, &next);
		if (found ? next - q->at > limits->max_line : in.n - q->at >= limits->max_line)
			return end_input(out, "CLIENT_ERROR line too long");
		if (!found) {
			progress->needed = 0;
			return REQUEST_MORE;
		}
		out->consumed = next;
		error = take_line(line, &q->words, &literal, &has_literal, &last);
		if (error)
			return refuse_line(out, line, error);
		if (!has_literal)
			break;
		if (literal > limits->max_value ||
			next + literal > limits->max_value + limits->max_line)
			return end_input(out, "CLIENT_ERROR literal too large");
		if (in.n < next + literal + 1)
			return request_wait(progress, next + (size_t)literal + 1);
		if (!ends_literal(in.p[next + literal]))
			return end_input(out, "CLIENT_ERROR bad data chunk");
		add_word_of(&q->words, slice_of(in.p + next, (size_t)literal));
		q->kept = buf_size(&q->words);
		q->at = q->scanned = next + (size_t)literal;
	}
	out->rest = buf_slice(&q->words);
	out->rest.n -= out->rest.n > 0;
	take_last_noreply(out, last);
	return REQUEST_READY;
}
