#include "dialects.h"

#include <stdlib.h>

#include "unit.h"
#include "util/buf.h"

void dialect_encodes(const struct dialect *d, const struct call *call, const char *bytes)
{
	struct buf out = BUF_EMPTY;

	BUF_ADD(&out, "before ");
	d->encode(call, &out);
	assert_bytes(slice_of(out.data + 7, buf_size(&out) - 7), bytes);
	buf_free(&out);
}

static void show_number(struct buf *out, const char *name, long long value)
{
	if (value)
		buf_printf(out, " %s=%lld", name, value);
}

static void show_result(const struct result *r, struct buf *out)
{
	static const char *const names[] = { "hit", "miss", "done", "not stored", "exists",
		"number", "text", "refused", "too large" };

	ck_assert_uint_lt(r->status, sizeof(names) / sizeof(names[0]));
	buf_printf(out, "%s", names[r->status]);
	if (r->status == RESULT_NUMBER)
		buf_printf(out, " %llu", (unsigned long long)r->number);
	if (r->line.p)
		buf_printf(out, " [%.*s]", (int)r->line.n, r->line.p);
	if (r->value.p)
		buf_printf(out, " {%.*s}", (int)r->value.n, r->value.p);
	if (r->status == RESULT_HIT) {
		show_number(out, "flags", r->flags);
	}
	if (r->cas)
		buf_printf(out, " cas=%llu", (unsigned long long)r->cas);
	if (r->status == RESULT_HIT) {
		show_number(out, "ttl", r->ttl);
		show_number(out, "size", (long long)r->size);
	}
	if (r->suspect)
		BUF_ADD(out, " suspect");
}

/* Returns the result of decode, and stores the value in `text`. */
static ssize_t decode(
	const struct dialect *d, const struct expect *expect, struct slice in, struct buf *text)
{
	struct result r = { 0 };
	ssize_t n = d->decode(guard_place(in), expect, &r);

	buf_consume(text, buf_size(text));
	if (n > 0)
		show_result(&r, text);
	else
		buf_printf(text, n < 0 ? "garbage" : "more");
	BUF_ADD(text, "\0");
	return n;
}

static void check_one(const struct dialect *d, const struct expect *expect, struct slice in,
	size_t taken, const char *outcome)
{
	struct buf text = BUF_EMPTY;
	ssize_t n = decode(d, expect, in, &text);

	ck_assert_msg(strcmp(buf_slice(&text).p, outcome) == 0,
		"\"%.*s\" was read as \"%s\", not as \"%s\"", (int)in.n, in.p, buf_slice(&text).p,
		outcome);
	if (n > 0)
		ck_assert_uint_eq((size_t)n, taken);
	buf_free(&text);
}

void dialect_decodes(const struct dialect *d, const struct expect *expect, struct slice reply,
	const char *outcome)
{
	char *copy = malloc(reply.n + 64);
	struct buf text = BUF_EMPTY;

	memcpy(copy, reply.p, reply.n);
	memcpy(copy + reply.n, "STORED\r\n", 9);
	check_one(d, expect, slice_of(copy, reply.n), reply.n, outcome);
	check_one(d, expect, slice_of(copy, reply.n + 8), reply.n, outcome);
	/* Garbage may be detected before it is complete; anything else is not decided before. */
	for (size_t n = 0; n < reply.n; n++) {
		ssize_t got = decode(d, expect, slice_of(copy, n), &text);
		ck_assert_msg(got == 0 || (got < 0 && strcmp(outcome, "garbage") == 0),
			"%zu of %zu bytes of \"%s\" were read as \"%s\"", n, reply.n, copy,
			buf_slice(&text).p);
	}
	buf_free(&text);
	free(copy);
}

void dialect_decodes_all(const struct dialect *d, const struct expect *expect,
	const struct reply_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		dialect_decodes(d, expect, slice_of(cases[i].reply, strlen(cases[i].reply)),
			cases[i].outcome);
}
