#include "protocol/reply.h"

#include <assert.h>
#include <stdlib.h>

#include "util/num.h"

void reply_line(struct buf *out, struct slice line)
{
	char *p = buf_reserve(out, line.n + 2);

	p = slice_write(p, line);
	(void)slice_write(p, SLICE("\r\n"));
	buf_commit(out, line.n + 2);
}

void reply_text(struct buf *out, const char *line)
{
	reply_line(out, slice_of(line, strlen(line)));
}

void reply_number(struct buf *out, uint64_t n)
{
	char *start = buf_reserve(out, NUM_U64_MAX + 2), *p = start + num_format_u64(start, n);

	p = slice_write(p, SLICE("\r\n"));
	buf_commit(out, (size_t)(p - start));
}

void reply_value_head(struct buf *out, struct slice key, uint32_t flags, size_t bytes, const uint64_t *cas)
{
	char *start = buf_reserve(out, key.n + 6 + 3 * (NUM_U64_MAX + 1) + 2), *p = start;

	p = slice_write(p, SLICE("VALUE "));
	p = slice_write(p, key);
	*p++ = ' ';
	p += num_format_u64(p, flags);
	*p++ = ' ';
	p += num_format_u64(p, bytes);
	if (cas) {
		*p++ = ' ';
		p += num_format_u64(p, *cas);
	}
	p = slice_write(p, SLICE("\r\n"));
	buf_commit(out, (size_t)(p - start));
}

void reply_value(struct buf *out, struct slice key, const struct result *r, bool cas)
{
	reply_value_head(out, key, r->flags, r->value.n, cas ? &r->cas : NULL);
	reply_line(out, r->value);
}

void reply_failure(struct buf *out, const struct result *r)
{
	static const char *const whats[] = {
		[RESULT_UNAVAILABLE] = "unavailable",
		[RESULT_TIMED_OUT] = "timed out, outcome unknown",
		[RESULT_LOST] = "connection lost, outcome unknown",
	};

	assert(result_failed(r));
	if (r->status == RESULT_REFUSED) {
		reply_line(out, r->line);
	} else if (r->status == RESULT_TOO_LARGE) {
		reply_text(out, "SERVER_ERROR object too large for cache");
	} else if (r->status == RESULT_BUSY) {
		reply_text(out, "SERVER_ERROR busy");
	} else {
		BUF_ADD(out, "SERVER_ERROR upstream ");
		buf_add(out, r->server, strlen(r->server));
		BUF_ADD(out, " ");
		reply_text(out, whats[r->status]);
	}
}

void reply_stat(struct buf *out, const char *name, uint64_t value)
{
	buf_printf(out, "STAT %s %llu\r\n", name, (unsigned long long)value);
}

void reply_stat_text(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "STAT %s %s\r\n", name, value);
}

/* --- reading --- */

static struct slice take_line(struct slice *reply)
{
	const char *end = memchr(reply->p, '\n', reply->n);
	struct slice line;

	assert(end && end > reply->p && end[-1] == '\r');
	line = slice_of(reply->p, (size_t)(end - 1 - reply->p));
	*reply = slice_skip(*reply, line.n + 2);
	return line;
}

/* The data behind a line, of this size. They are not looked at. */
static struct slice data_behind(struct slice reply, struct slice bytes)
{
	uint64_t n;

	if (!num_parse_u64(bytes, &n))
		abort();
	return slice_of(reply.p, (size_t)n);
}

static void read_value(struct slice reply, struct slice rest, struct reply_part *out)
{
	out->kind = REPLY_PART_VALUE;
	out->key = slice_token(&rest);
	if (!num_parse_u32(slice_token(&rest), &out->flags))
		abort();
	out->data = data_behind(reply, slice_token(&rest));
	if (!num_parse_u64(slice_token(&rest), &out->cas))
		out->cas = 0;
}

static bool is_number(struct slice line)
{
	for (size_t i = 0; i < line.n; i++) {
		if (line.p[i] < '0' || line.p[i] > '9')
			return false;
	}
	return line.n > 0;
}

bool reply_head(struct slice *reply, struct reply_part *out)
{
	struct slice rest, word;

	if (reply->n == 0)
		return false;
	*out = (struct reply_part){ .kind = REPLY_PART_LINE, .line = take_line(reply) };
	rest = out->line;
	word = slice_token(&rest);
	if (is_number(out->line)) {
		out->kind = REPLY_PART_NUMBER;
	} else if (slice_equal(word, SLICE("VALUE"))) {
		read_value(*reply, rest, out);
	} else if (slice_equal(word, SLICE("VA"))) {
		out->kind = REPLY_PART_VALUE;
		out->data = data_behind(*reply, slice_token(&rest));
	} else if (slice_equal(out->line, SLICE("END"))) {
		out->kind = REPLY_PART_END;
	} else if (slice_equal(word, SLICE("ERROR")) || slice_equal(word, SLICE("CLIENT_ERROR")) ||
		slice_equal(word, SLICE("SERVER_ERROR"))) {
		out->kind = REPLY_PART_ERROR;
	}
	return true;
}

bool reply_next(struct slice *reply, struct reply_part *out)
{
	if (!reply_head(reply, out))
		return false;
	if (out->kind != REPLY_PART_VALUE)
		return true;
	if (reply->n < out->data.n + 2)
		abort();
	*reply = slice_skip(*reply, out->data.n + 2);
	return true;
}
