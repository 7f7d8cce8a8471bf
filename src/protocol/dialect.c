/* The classic text dialect, and functions for both dialects. */
#include "protocol/dialect.h"
#include "protocol/metaflags.h"
#include "protocol/request.h"
#include "util/num.h"

bool dialect_line(struct slice in, struct slice *line, size_t *consumed)
{
	const char *end =
		in.n ? memchr(in.p, '\n', in.n < DIALECT_LINE_MAX ? in.n : DIALECT_LINE_MAX) : NULL;
	size_t n;

	if (!end)
		return false;
	n = (size_t)(end - in.p);
	*consumed = n + 1;
	*line = slice_of(in.p, n > 0 && end[-1] == '\r' ? n - 1 : n);
	return true;
}

struct slice dialect_stat(struct slice stats, struct slice name)
{
	struct slice line;
	size_t n;

	while (dialect_line(stats, &line, &n)) {
		stats = slice_skip(stats, n);
		(void)slice_token(&line);
		if (slice_equal(slice_token(&line), name))
			return slice_token(&line);
	}
	return SLICE("");
}

int64_t dialect_clock(const struct result *stats)
{
	int64_t time;

	return stats->status == RESULT_TEXT &&
			num_parse_i64(dialect_stat(stats->line, SLICE("time")), &time)
		? time
		: 0;
}

ssize_t dialect_incomplete(struct slice in)
{
	return in.n >= DIALECT_LINE_MAX ? -1 : 0;
}

ssize_t dialect_error(
	struct slice line, size_t consumed, const struct expect *expect, struct result *out)
{
	bool body = call_stores(expect->verb);

	/*
	 * After ERROR for an unknown verb, the server parses our data block as commands. The
	 * same holds for a CLIENT_ERROR to a call with a block, since our calls are
	 * well-formed.
	 */
	if (slice_equal(line, SLICE("ERROR")) || slice_starts(line, SLICE("CLIENT_ERROR ")))
		out->suspect = body || slice_equal(line, SLICE("CLIENT_ERROR bad data chunk"));
	else if (!slice_starts(line, SLICE("SERVER_ERROR ")) &&
		!slice_starts(line, SLICE("ERROR ")))
		return -1;
	else if (line.p[0] == 'E')
		out->suspect = true; /* Such as "ERROR Too many open connections". */
	out->status = RESULT_REFUSED;
	out->line = line;
	return (ssize_t)consumed;
}

ssize_t dialect_block(
	struct slice in, size_t at, uint64_t n, const struct expect *expect, struct slice *value)
{
	if (n > (expect->value_max ? expect->value_max : DIALECT_VALUE_MAX))
		return -1;
	if (in.n < at + n + 2) {
		/* Detects a wrong line end at once, before more bytes arrive. */
		bool wrong = in.n > at + n && in.p[at + n] != '\r';
		return wrong ? -1 : 0;
	}
	if (in.p[at + n] != '\r' || in.p[at + n + 1] != '\n')
		return -1;
	*value = slice_of(in.p + at, (size_t)n);
	return (ssize_t)(at + n + 2);
}

/* --- calls --- */

/*
 * A verb with a key ends with a space. An empty `success` means STORED. GET and GAT have more
 * than one spelling: see encode_line.
 */
static const struct {
	struct slice name, success;
} verbs[] = {
	[CALL_SET] = { .name = { "set ", 4 } },
	[CALL_ADD] = { .name = { "add ", 4 } },
	[CALL_REPLACE] = { .name = { "replace ", 8 } },
	[CALL_APPEND] = { .name = { "append ", 7 } },
	[CALL_PREPEND] = { .name = { "prepend ", 8 } },
	[CALL_CAS] = { .name = { "cas ", 4 } },
	[CALL_INCR] = { .name = { "incr ", 5 } },
	[CALL_DECR] = { .name = { "decr ", 5 } },
	[CALL_DELETE] = { { "delete ", 7 }, { "DELETED", 7 } },
	[CALL_DISCARD] = { .name = { "delete ", 7 } },
	[CALL_TOUCH] = { { "touch ", 6 }, { "TOUCHED", 7 } },
	[CALL_FLUSH_ALL] = { { "flush_all", 9 }, { "OK", 2 } },
	[CALL_VERSION] = { .name = { "version", 7 } },
	[CALL_NOOP] = { .name = { "mn", 2 } },
	[CALL_STATS] = { .name = { "stats ", 6 } },
};

/* The longest verb, four numbers, the spaces and the line end. */
enum { STORAGE_MAX = 8 + 4 * (NUM_U64_MAX + 1) + 1 + 2 };

/* Reserves the space once, as most calls with a value are these. */
static void encode_storage(const struct call *call, struct buf *out)
{
	char *start = buf_reserve(out, STORAGE_MAX + call->key.n + call->value.n + 2), *p = start;

	p = slice_write(p, verbs[call->verb].name);
	p = slice_write(p, call->key);
	*p++ = ' ';
	p += num_format_u64(p, call->flags);
	*p++ = ' ';
	p += num_format_i64(p, call->exptime);
	*p++ = ' ';
	p += num_format_u64(p, call->value.n);
	if (call->verb == CALL_CAS) {
		*p++ = ' ';
		p += num_format_u64(p, call->number);
	}
	p = slice_write(p, SLICE("\r\n"));
	p = slice_write(p, call->value);
	p = slice_write(p, SLICE("\r\n"));
	buf_commit(out, (size_t)(p - start));
}

/* The key is from the client, and may require base64. */
static void encode_discard(const struct call *call, struct buf *out)
{
	if (request_key_fits_line(call->key)) {
		buf_add_slice(out, verbs[CALL_DISCARD].name);
		buf_add_slice(out, call->key);
		return;
	}
	BUF_ADD(out, "md ");
	metaflags_encode_key(call->key, out);
	BUF_ADD(out, " b");
}

static void encode_meta(const struct call *call, struct buf *out)
{
	if (call->want & WANT_FLUSH)
		BUF_ADD(out, "mn\r\n");
	buf_add_slice(out, call->line);
	if (call->has_value) {
		BUF_ADD(out, "\r\n");
		buf_add_slice(out, call->value);
	}
	if (call->want & WANT_FENCE)
		BUF_ADD(out, "\r\nmn");
}

static void encode_line(const struct call *call, struct buf *out)
{
	bool cas = call->want & WANT_CAS;

	switch (call->verb) {
	case CALL_GET:
		buf_add(out, cas ? "gets " : "get ", cas ? 5 : 4);
		buf_add_slice(out, call->key);
		return;
	case CALL_GAT:
		buf_add(out, cas ? "gats " : "gat ", cas ? 5 : 4);
		buf_add_i64(out, call->exptime);
		BUF_ADD(out, " ");
		buf_add_slice(out, call->key);
		return;
	case CALL_META:
		encode_meta(call, out);
		return;
	case CALL_DISCARD:
		encode_discard(call, out);
		return;
	default:
		break;
	}
	buf_add_slice(out, verbs[call->verb].name);
	buf_add_slice(out, call->verb == CALL_STATS ? call->line : call->key);
	if (call->verb == CALL_INCR || call->verb == CALL_DECR) {
		BUF_ADD(out, " ");
		buf_add_u64(out, call->number);
	} else if (call->verb == CALL_TOUCH || (call->verb == CALL_FLUSH_ALL && call->exptime)) {
		BUF_ADD(out, " ");
		buf_add_i64(out, call->exptime);
	}
}

static void dialect_encode_classic(const struct call *call, struct buf *out)
{
	if (call_stores(call->verb)) {
		encode_storage(call, out);
		return;
	}
	encode_line(call, out);
	BUF_ADD(out, "\r\n");
}

/* --- results --- */

/*
 * Decodes VALUE <key> <flags> <bytes> [<cas>], its data, END; or only END. A call has one key,
 * so a second VALUE is an error.
 */
static ssize_t decode_get(struct slice in, struct slice line, size_t at,
	const struct expect *expect, struct result *out)
{
	struct slice rest = line, flags, bytes, cas, end;
	uint64_t n;
	ssize_t taken;
	size_t more;

	if (slice_equal(line, SLICE("END"))) {
		out->status = RESULT_MISS;
		return (ssize_t)at;
	}
	if (!slice_equal(slice_token(&rest), SLICE("VALUE")))
		return dialect_error(line, at, expect, out);
	if (!slice_equal(slice_token(&rest), expect->key))
		return -1;
	flags = slice_token(&rest);
	bytes = slice_token(&rest);
	cas = slice_token(&rest);
	if (!num_parse_u32(flags, &out->flags) || !num_parse_u64(bytes, &n) || slice_token(&rest).n)
		return -1;
	if ((cas.n > 0) != ((expect->want & WANT_CAS) != 0) ||
		(cas.n && !num_parse_u64(cas, &out->cas)))
		return -1;
	taken = dialect_block(in, at, n, expect, &out->value);
	if (taken <= 0)
		return taken;
	if (!dialect_line(slice_skip(in, (size_t)taken), &end, &more))
		return dialect_incomplete(slice_skip(in, (size_t)taken));
	if (!slice_equal(end, SLICE("END")))
		return -1;
	out->status = RESULT_HIT;
	out->size = n;
	out->ttl = TTL_UNKNOWN;
	return taken + (ssize_t)more;
}

/* Decodes STAT lines and END. All STAT lines together are the line of the result. */
static ssize_t decode_stats(struct slice in, const struct expect *expect, struct result *out)
{
	struct slice line;
	size_t at = 0, n;

	while (dialect_line(slice_skip(in, at), &line, &n)) {
		if (slice_equal(line, SLICE("END"))) {
			out->status = RESULT_TEXT;
			out->line = slice_of(in.p, at);
			return (ssize_t)(at + n);
		}
		if (!slice_starts(line, SLICE("STAT ")))
			return at == 0 ? dialect_error(line, n, expect, out) : -1;
		at += n;
	}
	return in.n > DIALECT_STATS_MAX ? -1 : dialect_incomplete(slice_skip(in, at));
}

static ssize_t decode_discarded(
	struct slice line, size_t at, const struct expect *expect, struct result *out)
{
	struct slice rest = line, word = slice_token(&rest);

	if (!slice_equal(word, SLICE("DELETED")) && !slice_equal(word, SLICE("NOT_FOUND")) &&
		!slice_equal(word, SLICE("HD")) && !slice_equal(word, SLICE("NF")))
		return dialect_error(line, at, expect, out);
	out->status = RESULT_TOO_LARGE;
	return (ssize_t)at;
}

static ssize_t decode_word(
	struct slice line, size_t at, const struct expect *expect, struct result *out)
{
	enum call_verb verb = expect->verb;
	bool counts = verb == CALL_INCR || verb == CALL_DECR;
	bool may_miss = counts || verb == CALL_CAS || verb == CALL_DELETE || verb == CALL_TOUCH;
	struct slice success = verbs[verb].success.n ? verbs[verb].success : SLICE("STORED");

	if (counts ? num_parse_u64(line, &out->number) : slice_equal(line, success))
		out->status = counts ? RESULT_NUMBER : RESULT_DONE;
	else if (slice_equal(line, SLICE("NOT_FOUND")) && may_miss)
		out->status = RESULT_MISS;
	else if (slice_equal(line, SLICE("NOT_STORED")) && call_stores(verb) && verb != CALL_CAS)
		out->status = RESULT_NOT_STORED;
	else if (slice_equal(line, SLICE("EXISTS")) && verb == CALL_CAS)
		out->status = RESULT_EXISTS;
	else
		return dialect_error(line, at, expect, out);
	return (ssize_t)at;
}

/* Decodes ME <key> <name>=<value>..., VA <bytes> <flag>* and its data, or two letters and flags. */
static ssize_t decode_passed_line(struct slice in, struct slice line, size_t at,
	const struct expect *expect, struct result *out)
{
	static const struct slice codes[] = { { "HD", 2 }, { "EN", 2 }, { "NF", 2 }, { "NS", 2 },
		{ "EX", 2 }, { "ME", 2 } };
	struct slice rest = line, code = slice_token(&rest);
	uint64_t n;

	out->line = line;
	out->status = RESULT_TEXT;
	if (slice_equal(code, SLICE("VA")))
		return num_parse_u64(slice_token(&rest), &n)
			? dialect_block(in, at, n, expect, &out->value)
			: -1;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (slice_equal(code, codes[i]))
			return (ssize_t)at;
	}
	return dialect_error(line, at, expect, out);
}

/* Decodes the reply to a no-op at `at`. Returns the same as decode. */
static ssize_t decode_noop(struct slice in, size_t at)
{
	struct slice line;
	size_t n;

	in = slice_skip(in, at);
	if (!dialect_line(in, &line, &n))
		return dialect_incomplete(in);
	return slice_equal(line, SLICE("MN")) ? (ssize_t)(at + n) : -1;
}

/*
 * Decodes the reply, and the replies to the no-ops around the command. If the command has no
 * reply, only the reply to the last no-op is received.
 */
static ssize_t decode_passed(struct slice in, const struct expect *expect, struct result *out)
{
	ssize_t before = expect->want & WANT_FLUSH ? decode_noop(in, 0) : 0, n;
	struct slice line;
	size_t at;

	if (before < 0 || (expect->want & WANT_FLUSH && before == 0))
		return before;
	in = slice_skip(in, (size_t)before);
	if (!dialect_line(in, &line, &at))
		return dialect_incomplete(in);
	if (expect->want & WANT_FENCE && slice_equal(line, SLICE("MN"))) {
		out->status = RESULT_TEXT;
		out->line = line;
		return before + (ssize_t)at;
	}
	n = decode_passed_line(in, line, at, expect, out);
	if (n > 0 && expect->want & WANT_FENCE)
		n = decode_noop(in, (size_t)n);
	return n > 0 ? before + n : n;
}

static ssize_t dialect_decode_classic(
	struct slice in, const struct expect *expect, struct result *out)
{
	struct slice line;
	size_t at;

	/* A fast path for nearly all replies to writes. */
	if (call_stores(expect->verb) && slice_starts(in, SLICE("STORED\r\n"))) {
		out->status = RESULT_DONE;
		return sizeof("STORED\r\n") - 1;
	}
	if (expect->verb == CALL_STATS)
		return decode_stats(in, expect, out);
	if (expect->verb == CALL_META)
		return decode_passed(in, expect, out);
	if (!dialect_line(in, &line, &at))
		return dialect_incomplete(in);
	switch (expect->verb) {
	case CALL_GET:
	case CALL_GAT:
		return decode_get(in, line, at, expect, out);
	case CALL_DISCARD:
		return decode_discarded(line, at, expect, out);
	case CALL_VERSION:
	case CALL_NOOP:
		out->status = RESULT_TEXT;
		out->line = line;
		return (ssize_t)at;
	default:
		return decode_word(line, at, expect, out);
	}
}

const struct dialect dialect_classic = { "classic", dialect_encode_classic,
	dialect_decode_classic };
