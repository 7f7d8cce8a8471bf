#include "protocol/reply_reader.h"

#include <assert.h>
#include <stdlib.h>

#include "util/num.h"

static struct slice take_line(struct slice *reply)
{
	const char *end = memchr(reply->p, '\n', reply->n);
	struct slice line;

	assert(end && end > reply->p && end[-1] == '\r');
	line = slice_of(reply->p, (size_t)(end - 1 - reply->p));
	*reply = slice_skip(*reply, line.n + 2);
	return line;
}

static struct slice take_data(struct slice *reply, struct slice bytes)
{
	struct slice data;
	uint64_t n;

	if (!num_parse_u64(bytes, &n) || reply->n < n + 2)
		abort();
	data = slice_of(reply->p, (size_t)n);
	*reply = slice_skip(*reply, (size_t)n + 2);
	return data;
}

static void read_value(struct slice *reply, struct slice rest, struct reply_part *out)
{
	out->kind = REPLY_PART_VALUE;
	out->key = slice_token(&rest);
	if (!num_parse_u32(slice_token(&rest), &out->flags))
		abort();
	out->data = take_data(reply, slice_token(&rest));
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

bool reply_next(struct slice *reply, struct reply_part *out)
{
	struct slice rest, word;

	if (reply->n == 0)
		return false;
	*out = (struct reply_part){ .kind = REPLY_PART_LINE, .line = take_line(reply) };
	if (is_number(out->line)) {
		out->kind = REPLY_PART_NUMBER;
		if (!num_parse_u64(out->line, &out->number))
			out->number = UINT64_MAX;
		return true;
	}
	rest = out->line;
	word = slice_token(&rest);
	if (slice_equal(word, SLICE("VALUE"))) {
		read_value(reply, rest, out);
	} else if (slice_equal(word, SLICE("VA"))) {
		out->kind = REPLY_PART_VALUE;
		out->data = take_data(reply, slice_token(&rest));
		out->metaflags = rest;
	} else if (slice_equal(out->line, SLICE("END"))) {
		out->kind = REPLY_PART_END;
	} else if (slice_equal(word, SLICE("ERROR")) || slice_equal(word, SLICE("CLIENT_ERROR")) ||
		slice_equal(word, SLICE("SERVER_ERROR"))) {
		out->kind = REPLY_PART_ERROR;
	}
	return true;
}
