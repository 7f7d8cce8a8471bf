#include "protocol/reply.h"

#include <assert.h>

#include "protocol/element.h"
#include "protocol/elements.h"
#include "util/num.h"

static const struct slice line_end = { "\r\n", 2 };

/* Most replies are a word: the whole array is copied, including the bytes after the word. */
static const struct line {
	char text[16];
	size_t n; /* Bytes of the word. */
} words[WORDS] = {
#define WORD(word) [WORD_##word] = { #word "\r\n", sizeof(#word) - 1 }
	WORD(COUNT),
	WORD(DELETED),
	WORD(END),
	WORD(EVENT),
	WORD(EXISTS),
	WORD(LEASE),
	WORD(MN),
	WORD(NOT_FOUND),
	WORD(NOT_STORED),
	WORD(OK),
	WORD(RESET),
	WORD(STORED),
	WORD(TOUCHED),
	WORD(VERSION),
	WORD(WAIT),
#undef WORD
};

static void add_reply_line(struct buf *out, struct slice line)
{
	char *p = buf_reserve(out, line.n + line_end.n);

	p = slice_write(p, line);
	(void)slice_write(p, line_end);
	buf_commit(out, line.n + line_end.n);
}

void reply_add_number(struct buf *out, uint64_t n)
{
	char *start = buf_reserve(out, NUM_U64_MAX + line_end.n),
	     *p = start + num_format_u64(start, n);

	p = slice_write(p, line_end);
	buf_commit(out, (size_t)(p - start));
}

void reply_add_word(struct buf *out, enum reply_word word)
{
	memcpy(buf_reserve(out, sizeof(words[word].text)), words[word].text,
		sizeof(words[word].text));
	buf_commit(out, words[word].n + line_end.n);
}

static void add_word(struct buf *out, const struct reply *r)
{
	const struct line *line = &words[r->word];
	char *start = buf_reserve(out, sizeof(line->text) + 1 + r->bytes.n + line_end.n),
	     *p = start + line->n;

	memcpy(start, line->text, sizeof(line->text));
	if (r->bytes.n) {
		*p++ = ' ';
		p = slice_write(p, r->bytes);
		memcpy(p, line_end.p, 2);
	}
	buf_commit(out, (size_t)(p - start) + 2);
}

/* Appends a value. Returns whether the caller must add the value and the tail. */
static bool add_reply_value(struct buf *out, const struct reply *r, struct slice *tail)
{
	struct slice value = reply_bytes(r);
	static const char end[8] = "\r\nEND\r\n";
	size_t inside = r->shared ? 0 : value.n;
	char *start = buf_reserve(
		     out, r->key.n + inside + 6 + 3 * (NUM_U64_MAX + 1) + 2 + sizeof(end)),
	     *p = start;

	*tail = slice_of(end, r->more ? 2 : 7);
	p = slice_write(p, SLICE("VALUE "));
	p = slice_write(p, r->key);
	*p++ = ' ';
	p += num_format_u64(p, r->flags);
	*p++ = ' ';
	p += num_format_u64(p, value.n);
	if (r->shows_cas) {
		*p++ = ' ';
		p += num_format_u64(p, r->cas);
	}
	p = slice_write(p, line_end);
	if (!r->shared) {
		p = slice_write(p, value);
		memcpy(p, end, sizeof(end));
		p += tail->n;
	}
	buf_commit(out, (size_t)(p - start));
	return r->shared;
}

/* Returns whether a client receives the bytes of the value as they are. */
static bool reply_is_unchanged(const struct reply *r)
{
	if (r->content == CONTENT_ELEMENT)
		return !element_has_escapes(reply_bytes(r));
	return r->shared ? elements_shared_are_plain(r->shared) : elements_are_plain(r->bytes);
}

static __attribute__((noinline)) void add_converted_value(
	struct buf *out, const struct reply *r, struct slice *tail)
{
	struct reply bytes = *r;
	struct elements e = { .words = reply_bytes(r) };

	bytes.content = CONTENT_BYTES;
	bytes.shared = NULL;
	if (r->content == CONTENT_ELEMENT) {
		bytes.bytes = elements_single(e.words, &e.out);
	} else {
		while (!elements_convert(&e))
			;
		bytes.bytes = buf_slice(&e.out);
	}
	(void)reply_text_form(out, &bytes, NULL, tail);
	buf_free(&e.out);
}

bool reply_text_form(struct buf *out, const struct reply *r, const void *asked, struct slice *tail)
{
	(void)asked;
	switch (r->kind) {
	case REPLY_NOTHING:
		break;
	case REPLY_WORD:
		add_word(out, r);
		break;
	case REPLY_NUMBER:
		reply_add_number(out, r->number);
		break;
	case REPLY_VALUE:
		if (!r->content || reply_is_unchanged(r))
			return add_reply_value(out, r, tail);
		add_converted_value(out, r, tail);
		break;
	case REPLY_META:
		add_reply_line(out, r->key);
		if (r->has_value)
			add_reply_line(out, r->bytes);
		break;
	case REPLY_LINES:
		buf_add_slice(out, r->bytes);
		break;
	case REPLY_LINE:
	case REPLY_ERROR:
		if (r->shared) {
			*tail = line_end;
			return true;
		}
		add_reply_line(out, r->bytes);
	}
	return false;
}

void reply_add_line(struct buf *out, const struct reply *r)
{
	struct slice tail;

	if (reply_text_form(out, r, NULL, &tail))
		buf_add_slice(out, reply_bytes(r));
	else
		out->end -= line_end.n;
}

void reply_add_error(struct buf *out, const struct result *r)
{
	static const char *const whats[] = {
		[RESULT_UNAVAILABLE] = "unavailable",
		[RESULT_TIMED_OUT] = "timed out, outcome unknown",
		[RESULT_LOST] = "connection lost, outcome unknown",
	};

	assert(result_failed(r));
	if (r->status == RESULT_REFUSED)
		buf_add_slice(out, r->line);
	else if (r->status == RESULT_TOO_LARGE)
		BUF_ADD(out, "SERVER_ERROR object too large for cache");
	else if (r->status == RESULT_BUSY)
		BUF_ADD(out, "SERVER_ERROR busy");
	else
		buf_printf(out, "SERVER_ERROR upstream %s %s", r->server, whats[r->status]);
}

void reply_add_stat(struct buf *out, const char *name, uint64_t value)
{
	buf_printf(out, "STAT %s %llu\r\n", name, (unsigned long long)value);
}

void reply_add_stat_text(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "STAT %s %s\r\n", name, value);
}
