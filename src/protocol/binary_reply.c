#include "protocol/binary_reply.h"

#include <assert.h>

#include "protocol/dialect.h"
#include "protocol/reply.h"
#include "util/num.h"

/* What stands in a response besides what it repeats. */
struct response {
	enum binary_status status;
	struct slice extras, key, value;
	uint64_t cas;
};

static char *put(char *p, uint64_t n, size_t bytes)
{
	for (size_t i = bytes; i-- > 0; n >>= 8)
		p[i] = (char)(n & 255);
	return p + bytes;
}

static void write_response(struct buf *out, const struct binary_head *head, const struct response *r)
{
	size_t body = r->extras.n + r->key.n + r->value.n;
	char *p = buf_reserve(out, BINARY_HEADER + body);

	*p++ = (char)BINARY_RESPONSE;
	*p++ = (char)head->opcode;
	p = put(p, r->key.n, 2);
	*p++ = (char)r->extras.n;
	*p++ = 0; /* the type of data */
	p = put(p, r->status, 2);
	p = put(p, body, 4);
	memcpy(p, &head->opaque, sizeof(head->opaque));
	p = put(p + sizeof(head->opaque), r->cas, 8);
	p = slice_write(p, r->extras);
	p = slice_write(p, r->key);
	(void)slice_write(p, r->value);
	buf_commit(out, BINARY_HEADER + body);
}

void binary_reply_text(struct buf *out, const struct binary_head *head, enum binary_status status, struct slice text)
{
	write_response(out, head, &(struct response){ .status = status, .value = text });
}

/* --- errors --- */

static const struct error {
	struct slice line; /* the beginning of the line */
	struct slice text; /* empty: what stands behind it */
	enum binary_status status;
} errors[] = {
#define ERROR(line, status, text) \
	{ \
		{ line, sizeof(line) - 1 }, { text, sizeof(text) - 1 }, status \
	}
	ERROR("NOT_FOUND", BINARY_NOT_FOUND, "Not found"),
	ERROR("EXISTS", BINARY_EXISTS, "Data exists for key."),
	ERROR("NOT_STORED", BINARY_NOT_STORED, "Not stored."),
	ERROR("SERVER_ERROR object too large for cache", BINARY_TOO_LARGE, "Too large."),
	ERROR("SERVER_ERROR Out of memory", BINARY_NO_MEMORY, "Out of memory"),
	ERROR("SERVER_ERROR out of memory", BINARY_NO_MEMORY, "Out of memory"),
	ERROR("SERVER_ERROR busy", BINARY_BUSY, "busy"),
	ERROR("SERVER_ERROR ", BINARY_INTERNAL, ""),
	ERROR("CLIENT_ERROR cannot increment or decrement non-numeric value", BINARY_NOT_A_NUMBER,
		"Non-numeric server-side value for incr or decr"),
	ERROR("CLIENT_ERROR unknown stats group", BINARY_NOT_FOUND, "Not found"),
	ERROR("CLIENT_ERROR ", BINARY_INVALID, ""),
	ERROR("ERROR", BINARY_UNKNOWN, "Unknown command"),
	ERROR("", BINARY_INTERNAL, ""),
#undef ERROR
};

static bool ends_with(struct slice s, struct slice end)
{
	return s.n >= end.n && slice_equal(slice_skip(s, s.n - end.n), end);
}

/* memcached says more of these two. */
static void tell_why(const struct binary_head *head, struct response *r)
{
	if (head->opcode == BINARY_ADD || head->opcode == BINARY_ADDQ)
		*r = (struct response){ .status = BINARY_EXISTS, .value = SLICE("Data exists for key.") };
	else if (head->opcode == BINARY_REPLACE || head->opcode == BINARY_REPLACEQ)
		*r = (struct response){ .status = BINARY_NOT_FOUND, .value = SLICE("Not found") };
}

static void write_error(struct buf *out, const struct binary_head *head, struct slice line)
{
	const struct error *e = errors;
	struct response r = { 0 };

	while (!slice_starts(line, e->line))
		e++;
	r.status = e->status;
	r.value = e->text.n ? e->text : slice_skip(line, e->line.n);
	if (e->status == BINARY_INTERNAL && ends_with(line, SLICE(" unavailable")))
		r.status = BINARY_UNAVAILABLE;
	if (e->status == BINARY_NOT_STORED)
		tell_why(head, &r);
	write_response(out, head, &r);
}

/* --- what is done --- */

static bool counts(const struct binary_head *head)
{
	return head->opcode == BINARY_INCR || head->opcode == BINARY_DECR || head->opcode == BINARY_INCRQ ||
		head->opcode == BINARY_DECRQ;
}

void binary_reply_line(struct buf *out, const struct binary_head *head, struct slice line)
{
	struct slice rest = line, word = slice_token(&rest), cas = slice_token(&rest);
	struct response r = { 0 };
	char bytes[8];
	uint64_t n;

	if (counts(head) && num_parse_u64(word, &n)) {
		(void)put(bytes, n, sizeof(bytes));
		r.value = slice_of(bytes, sizeof(bytes));
	} else if (!slice_equal(word, SLICE("STORED")) && !slice_equal(word, SLICE("DELETED")) &&
		!slice_equal(word, SLICE("OK")) && !slice_equal(word, SLICE("MN"))) {
		write_error(out, head, line);
		return;
	}
	if (head->quiet)
		return;
	if (cas.n && !num_parse_u64(cas, &r.cas))
		r.cas = 0;
	write_response(out, head, &r);
}

static bool gives_key(const struct binary_head *head)
{
	return head->opcode == BINARY_GETK || head->opcode == BINARY_GETKQ || head->opcode == BINARY_GATK ||
		head->opcode == BINARY_GATKQ;
}

static void write_miss(struct buf *out, const struct binary_head *head, struct slice key)
{
	struct response r = { .status = BINARY_NOT_FOUND };

	if (gives_key(head))
		r.key = key;
	else
		r.value = SLICE("Not found");
	write_response(out, head, &r);
}

static void write_failure(struct buf *out, const struct binary_head *head, const struct result *r)
{
	struct buf text = BUF_EMPTY;

	reply_failure(&text, r);
	write_error(out, head, slice_of(buf_slice(&text).p, buf_size(&text) - 2));
	buf_free(&text);
}

void binary_reply_read(struct buf *out, const struct binary_head *head, struct slice key, const struct result *r)
{
	char flags[4];

	if (r->status == RESULT_MISS) {
		if (!head->quiet)
			write_miss(out, head, key);
		return;
	}
	if (r->status != RESULT_HIT) {
		write_failure(out, head, r);
		return;
	}
	(void)put(flags, r->flags, sizeof(flags));
	write_response(out, head,
		&(struct response){
			.extras = slice_of(flags, sizeof(flags)),
			.key = gives_key(head) ? key : slice_of("", 0),
			.value = head->opcode == BINARY_TOUCH ? slice_of("", 0) : r->value,
			.cas = r->cas,
		});
}

void binary_reply_stats(struct buf *out, const struct binary_head *head, struct slice lines)
{
	struct slice line;
	size_t n;

	while (dialect_line(lines, &line, &n)) {
		struct slice rest = line;
		lines = slice_skip(lines, n);
		if (slice_equal(line, SLICE("END")) || slice_equal(line, SLICE("RESET"))) {
			binary_reply_text(out, head, BINARY_OK, slice_of("", 0));
			return;
		}
		if (!slice_equal(slice_token(&rest), SLICE("STAT"))) {
			write_error(out, head, line);
			return;
		}
		struct response r = { .key = slice_token(&rest) };
		r.value = rest.n ? slice_skip(rest, 1) : rest;
		write_response(out, head, &r);
	}
}
