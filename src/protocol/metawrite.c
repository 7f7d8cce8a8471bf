#include "protocol/metawrite.h"

#include "protocol/metaflags.h"
#include "util/num.h"

static bool counts(enum call_verb verb)
{
	return verb == CALL_INCR || verb == CALL_DECR;
}

static const char *name_of(enum call_verb verb)
{
	return call_stores(verb) ? "ms " : counts(verb) ? "ma " : "md ";
}

static const char *mode_of(enum call_verb verb)
{
	switch (verb) {
	case CALL_ADD:
		return " ME";
	case CALL_REPLACE:
		return " MR";
	case CALL_APPEND:
		return " MA";
	case CALL_PREPEND:
		return " MP";
	case CALL_DECR:
		return " MD";
	default:
		return "";
	}
}

static void add_flag(struct buf *out, const char *letter, uint64_t number)
{
	buf_add(out, letter, 2);
	buf_add_u64(out, number);
}

static void add_time(struct buf *out, const char *letter, int64_t seconds)
{
	buf_add(out, letter, 2);
	buf_add_i64(out, seconds);
}

static void add_arithmetic(const struct call *call, struct buf *out)
{
	add_flag(out, " D", call->number);
	if (call->vivifies) {
		add_time(out, " N", call->exptime);
		add_flag(out, " J", call->initial);
	}
	BUF_ADD(out, " v");
}

void metawrite_encode(const struct call *call, struct buf *out)
{
	bool stores = call_stores(call->verb);
	uint64_t compare = call->verb == CALL_CAS ? call->number : call->compare;
	const char *mode = mode_of(call->verb);

	buf_add(out, name_of(call->verb), 3);
	if (call->want & WANT_ENCODED)
		metaflags_encode_key(call->key, out);
	else
		buf_add_slice(out, call->key);
	if (stores) {
		BUF_ADD(out, " ");
		buf_add_u64(out, call->value.n);
	}
	if (call->want & WANT_ENCODED)
		BUF_ADD(out, " b");
	buf_add(out, mode, strlen(mode));
	if (stores && call->flags)
		add_flag(out, " F", call->flags);
	if (stores && call->exptime)
		add_time(out, " T", call->exptime);
	if (compare)
		add_flag(out, " C", compare);
	if (counts(call->verb))
		add_arithmetic(call, out);
	if (call->verb != CALL_DELETE)
		BUF_ADD(out, " c");
	BUF_ADD(out, "\r\n");
	if (stores) {
		buf_add_slice(out, call->value);
		BUF_ADD(out, "\r\n");
	}
}

/* Servers before 1.6.10 do not give it. */
static bool take_cas(struct slice flags, struct result *out)
{
	struct slice flag;

	while ((flag = slice_token(&flags)).n) {
		if (flag.p[0] == 'c')
			return num_parse_u64(slice_skip(flag, 1), &out->cas);
	}
	return true;
}

static ssize_t decode_number(struct slice in, struct slice rest, size_t at, struct result *out)
{
	struct expect digits = { .value_max = NUM_U64_MAX };
	struct slice value = slice_of("", 0);
	uint64_t n;
	ssize_t taken;

	if (!num_parse_u64(slice_token(&rest), &n) || !take_cas(rest, out))
		return -1;
	taken = dialect_block(in, at, n, &digits, &value);
	if (taken > 0 && !num_parse_u64(value, &out->number))
		return -1;
	out->status = RESULT_NUMBER;
	return taken;
}

ssize_t metawrite_decode(struct slice in, const struct expect *expect, struct result *out)
{
	struct slice line, rest, code;
	size_t at;

	if (!dialect_line(in, &line, &at))
		return dialect_incomplete(in);
	rest = line;
	code = slice_token(&rest);
	if (counts(expect->verb) && slice_equal(code, SLICE("VA")))
		return decode_number(in, rest, at, out);
	if (!counts(expect->verb) && slice_equal(code, SLICE("HD"))) {
		out->status = RESULT_DONE;
		return take_cas(rest, out) ? (ssize_t)at : -1;
	}
	if (slice_equal(code, SLICE("NF")))
		out->status = RESULT_MISS;
	else if (slice_equal(code, SLICE("EX")))
		out->status = RESULT_EXISTS;
	else if (slice_equal(code, SLICE("NS")) && expect->verb != CALL_DELETE)
		out->status = RESULT_NOT_STORED;
	else
		return dialect_error(line, at, expect, out);
	return (ssize_t)at;
}
