#include "requests.h"

#include <stdlib.h>

#include "unit.h"
#include "util/buf.h"

const struct request_limits request_test_limits = {
	.max_line = 2100, .max_value = 1000, .max_keys = 5
};

static void show_number(struct buf *out, const char *name, long long value)
{
	if (value)
		buf_printf(out, " %s=%lld", name, value);
}

static struct slice trim(struct slice s)
{
	while (s.n && s.p[0] == ' ')
		s = slice_skip(s, 1);
	while (s.n && s.p[s.n - 1] == ' ')
		s.n--;
	return s;
}

void request_show(const struct request *r, struct buf *out)
{
	buf_add_slice(out, r->command->name);
	BUF_ADD(out, " ");
	buf_add_slice(out, r->key);
	struct slice rest = trim(r->rest);
	if (rest.n)
		buf_printf(out, " [%.*s]", (int)rest.n, rest.p);
	if (r->data.p)
		buf_printf(out, " {%.*s}", (int)r->data.n, r->data.p);
	show_number(out, "flags", r->flags);
	show_number(out, "exptime", r->exptime);
	if (r->number || r->has_number)
		buf_printf(out, " number=%llu", (unsigned long long)r->number);
	show_number(out, "keys", (long long)r->keys);
}

static const char *error_of(const struct request *r)
{
	return r->command && r->error == command_usage(r->command->id) ? "usage" : r->error;
}

static const char *show(enum request_status status, const struct request *r, struct buf *out)
{
	buf_consume(out, buf_size(out));
	switch (status) {
	case REQUEST_MORE:
		BUF_ADD(out, "more");
		break;
	case REQUEST_HANGUP:
		BUF_ADD(out, "hang up");
		break;
	case REQUEST_FATAL:
		buf_printf(out, "fatal %s", error_of(r));
		break;
	case REQUEST_REFUSED:
		buf_printf(out, "refused %s", error_of(r));
		show_number(out, "skip", (long long)r->skip.bytes);
		if (r->skip.line_end)
			BUF_ADD(out, " end");
		break;
	case REQUEST_READY:
		request_show(r, out);
	}
	if (r->noreply && (status == REQUEST_READY || status == REQUEST_REFUSED))
		BUF_ADD(out, " noreply");
	BUF_ADD(out, "\0");
	return buf_slice(out).p;
}

static enum request_status parse(
	struct slice in, struct request_progress *progress, struct request *r)
{
	return request_parse(guard_place(in), &request_test_limits, progress, r);
}

/* The result is final: it must not wait for more bytes. */
static bool decides_early(enum request_status status)
{
	return status == REQUEST_FATAL;
}

/*
 * Each proper prefix is incomplete, or has the result of the whole, however it is searched for the
 * line's end.
 */
static void check_prefixes(struct slice in, const char *outcome, bool fatal, struct buf *text)
{
	struct request_progress kept = { 0 };
	size_t needed = in.n;
	struct request r;

	for (size_t n = 0; n < needed; n++) {
		struct request_progress fresh = { 0 };
		enum request_status status = parse(slice_of(in.p, n), &fresh, &r);
		enum request_status same = parse(slice_of(in.p, n), &kept, &r);
		ck_assert_int_eq(status, same);
		ck_assert_uint_eq(fresh.scanned, kept.scanned);
		if (status == REQUEST_MORE) {
			ck_assert_uint_eq(fresh.needed, kept.needed);
			continue;
		}
		ck_assert_msg(fatal && decides_early(status),
			"decided after %zu of %zu bytes of \"%s\"", n, in.n, in.p);
		ck_assert_str_eq(show(status, &r, text), outcome);
	}
}

static void check_one(struct slice in, size_t consumed, const char *outcome, struct buf *text)
{
	struct request r;
	struct request_progress progress = { 0 };
	enum request_status status = parse(in, &progress, &r);
	const char *got = show(status, &r, text);

	ck_assert_msg(strcmp(got, outcome) == 0, "\"%.*s\" was read as \"%s\", not as \"%s\"",
		(int)in.n, in.p, got, outcome);
	if (status == REQUEST_READY || status == REQUEST_REFUSED)
		ck_assert_uint_eq(r.consumed, consumed);
}

void request_check(struct slice input, const char *outcome)
{
	bool fatal = strncmp(outcome, "fatal", 5) == 0;
	char *copy = malloc(input.n + 64);
	struct buf text = BUF_EMPTY;

	memcpy(copy, input.p, input.n);
	memcpy(copy + input.n, "get other\r\n", 12);
	struct slice whole = slice_of(copy, input.n), more = slice_of(copy, input.n + 11);
	check_one(whole, input.n, outcome, &text);
	check_one(more, input.n, outcome, &text);
	check_prefixes(whole, outcome, fatal, &text);
	buf_free(&text);
	free(copy);
}

void request_check_all(const struct request_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		request_check(slice_of(cases[i].input, strlen(cases[i].input)), cases[i].outcome);
}
