#include "protocol/binary.h"

#include <stddef.h>

#include "protocol/commands.h"
#include "protocol/dialect.h"
#include "protocol/reply.h"
#include "util/num.h"

enum key_rule { NONE, ALLOWED, NEEDED };

static const struct shape {
	bool known, value, quiet;
	enum key_rule key;
	uint8_t extras;
	command_id command;
} shapes[UINT8_MAX + 1] = {
#define BINARY(opcode, name, command, extras, key, value, quiet) \
	[opcode] = { true, value, quiet, key, extras, COMMAND_##command },
#include "protocol/binary.def"
#undef BINARY
};

/* memcached accepts no larger body, whatever its largest item is. */
static const uint32_t body_max = UINT32_C(1) << 30;

/* Such a key is sent to a server in base64, which must fit into KEY_MAX. */
enum { ODD_KEY_MAX = KEY_MAX / 4 * 3 };

static const char invalid[] = "CLIENT_ERROR Invalid arguments";

/* The numbers of a header. */
struct header {
	uint8_t opcode, extras;
	uint16_t key;
	uint32_t body;
	uint64_t cas;
};

static uint64_t number(const char *p, size_t bytes)
{
	uint64_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | (unsigned char)p[i];
	return n;
}

static struct header parse_header(const char *p)
{
	return (struct header){
		.opcode = (uint8_t)p[1],
		.extras = (uint8_t)p[4],
		.key = (uint16_t)number(p + 2, 2),
		.body = (uint32_t)number(p + 8, 4),
		.cas = number(p + 16, 8),
	};
}

static enum request_status refuse_with(
	struct request *r, enum request_status status, const char *error)
{
	r->error = error;
	return status;
}

static bool fits(const struct shape *shape, const struct header *h)
{
	bool no_extras = h->extras == 0 && shape->command == COMMAND_FLUSH_ALL;

	if (h->extras != shape->extras && !no_extras)
		return false;
	if (h->key ? shape->key == NONE : shape->key == NEEDED)
		return false;
	return shape->value || h->body == (uint32_t)h->extras + h->key;
}

/* Text has times of 31 bits and a sign. A larger time is too far in the future to matter. */
static int64_t exptime(const char *p)
{
	uint64_t n = number(p, 4);

	return n < INT32_MAX ? (int64_t)n : INT32_MAX;
}

/* Parses the extras at `p`. The key follows them. */
static void take_arguments(const char *p, const struct header *h, struct request *r)
{
	r->key = slice_of(p + h->extras, h->key);
	r->rest = slice_of(r->key.p + r->key.n, 0);
	switch (r->command->id) {
	case COMMAND_SET:
	case COMMAND_ADD:
	case COMMAND_REPLACE:
		r->flags = (uint32_t)number(p, 4);
		r->exptime = exptime(p + 4);
		r->extras.wants_cas = true;
		break;
	case COMMAND_INCR:
	case COMMAND_DECR:
		r->number = number(p, 8);
		r->extras.initial = number(p + 8, 8);
		r->extras.has_initial = number(p + 16, 4) != UINT32_MAX;
		r->exptime = r->extras.has_initial ? exptime(p + 16) : 0;
		r->extras.compare = h->cas;
		r->extras.wants_cas = true;
		break;
	case COMMAND_APPEND:
	case COMMAND_PREPEND:
		r->extras.compare = h->cas;
		r->extras.wants_cas = true;
		break;
	case COMMAND_DELETE:
		r->extras.compare = h->cas;
		break;
	case COMMAND_TOUCH:
		r->extras.wants_cas = true;
		r->exptime = exptime(p);
		break;
	case COMMAND_GAT:
	case COMMAND_FLUSH_ALL:
		r->exptime = h->extras ? exptime(p) : 0;
		break;
	case COMMAND_VERBOSITY:
		r->number = number(p, 4);
		break;
	case COMMAND_STATS:
		r->rest = r->key;
		break;
	default:
		break;
	}
	if (r->command->grammar == GRAMMAR_KEYS || r->command->grammar == GRAMMAR_TOUCH_KEYS) {
		r->keys = 1;
		r->extras.wants_cas = true;
	}
	r->extras.odd_key = r->key.n > 0 && r->command->order != ORDER_READ &&
		!request_key_valid(r->key, KEY_MAX);
}

/* With a CAS id, set, add and replace are a cas. */
static void choose_cas(const struct header *h, struct request *r)
{
	command_id id = r->command->id;

	if (h->cas == 0 || (id != COMMAND_SET && id != COMMAND_ADD && id != COMMAND_REPLACE))
		return;
	r->command = command_get(COMMAND_CAS);
	r->extras.discards = id == COMMAND_SET;
	r->number = h->cas;
}

static enum request_status parse_body(struct slice in, const struct request_limits *limits,
	const struct header *h, struct request_progress *progress, struct request *r)
{
	size_t value = h->body - h->extras - h->key;

	r->consumed = BINARY_HEADER + (size_t)h->extras + h->key;
	if (in.n < r->consumed)
		return request_wait(progress, r->consumed);
	take_arguments(in.p + BINARY_HEADER, h, r);
	if (r->extras.odd_key && r->key.n > ODD_KEY_MAX) {
		r->skip.bytes = value;
		return refuse_with(r, REQUEST_REFUSED,
			"CLIENT_ERROR key with spaces or control characters too long");
	}
	if (value > limits->max_value) {
		r->too_large = true;
		r->skip.bytes = value;
		return refuse_with(r, REQUEST_REFUSED, "SERVER_ERROR object too large for cache");
	}
	if (in.n < r->consumed + value)
		return request_wait(progress, r->consumed + value);
	r->data = slice_of(in.p + r->consumed, value);
	r->consumed += value;
	choose_cas(h, r);
	return REQUEST_READY;
}

static bool returns_key(uint8_t opcode)
{
	return opcode == BINARY_GETK || opcode == BINARY_GETKQ || opcode == BINARY_GATK ||
		opcode == BINARY_GATKQ;
}

static void take_asked(const char *p, const struct header *h, struct request_reply *reply,
	struct binary_asked *asked)
{
	asked->opcode = h->opcode;
	asked->quiet = shapes[h->opcode].quiet;
	asked->key_size = 0;
	memcpy(&asked->opaque, p + 12, sizeof(asked->opaque));
	*reply = (struct request_reply){ .form = binary_form,
		.asked = asked,
		.asked_size = offsetof(struct binary_asked, key) };
}

static void keep_key(struct request *r, struct binary_asked *asked)
{
	if (!returns_key(asked->opcode))
		return;
	asked->key_size = (uint8_t)r->key.n;
	(void)slice_write(asked->key, r->key);
	r->reply->asked_size += r->key.n;
}

enum request_status binary_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct request *out, struct request_reply *reply,
	struct binary_asked *asked)
{
	const struct shape *shape;
	enum request_status status;
	struct header h;

	*out = (struct request){ 0 };
	if (in.n == 0 || in.n < progress->needed)
		return REQUEST_MORE;
	if ((unsigned char)in.p[0] != BINARY_REQUEST)
		return REQUEST_HANGUP;
	if (in.n < BINARY_HEADER)
		return request_wait(progress, BINARY_HEADER);
	h = parse_header(in.p);
	take_asked(in.p, &h, reply, asked);
	out->reply = reply;
	shape = &shapes[h.opcode];
	out->consumed = BINARY_HEADER;
	if ((uint32_t)h.key + h.extras > h.body)
		return refuse_with(out, REQUEST_FATAL, "ERROR");
	if (h.key > KEY_MAX || h.body > body_max)
		return refuse_with(out, REQUEST_FATAL, invalid);
	if (!shape->known) {
		out->skip.bytes = h.body;
		return refuse_with(out, REQUEST_REFUSED, "ERROR");
	}
	if (!fits(shape, &h))
		return refuse_with(out, REQUEST_FATAL, invalid);
	out->command = command_get(shape->command);
	status = parse_body(in, limits, &h, progress, out);
	if (status != REQUEST_MORE)
		keep_key(out, asked);
	return status;
}

/* --- responses --- */

/* The fields of a response that are not copied from its request. */
struct response {
	enum binary_status status;
	struct slice extras, key, value;
	uint64_t cas;
};

static char *put_big_endian(char *p, uint64_t n, size_t bytes)
{
	for (size_t i = bytes; i-- > 0; n >>= 8)
		p[i] = (char)(n & 255);
	return p + bytes;
}

/* Writes a response. If `shares`, the caller adds the value. */
static void write_response(
	struct buf *out, const struct binary_asked *head, const struct response *r, bool shares)
{
	size_t body = r->extras.n + r->key.n + r->value.n,
	       inside = shares ? body - r->value.n : body;
	char *p = buf_reserve(out, BINARY_HEADER + inside);

	*p++ = (char)BINARY_RESPONSE;
	*p++ = (char)head->opcode;
	p = put_big_endian(p, r->key.n, 2);
	*p++ = (char)r->extras.n;
	*p++ = 0; /* The data type. */
	p = put_big_endian(p, r->status, 2);
	p = put_big_endian(p, body, 4);
	memcpy(p, &head->opaque, sizeof(head->opaque));
	p = put_big_endian(p + sizeof(head->opaque), r->cas, 8);
	p = slice_write(p, r->extras);
	p = slice_write(p, r->key);
	if (!shares)
		(void)slice_write(p, r->value);
	buf_commit(out, BINARY_HEADER + inside);
}

void binary_reply_text(struct buf *out, const struct binary_asked *head, enum binary_status status,
	struct slice text)
{
	write_response(out, head, &(struct response){ .status = status, .value = text }, false);
}

/* --- errors --- */

static const struct error {
	struct slice line; /* The beginning of the line. */
	struct slice text; /* The text of the response. Empty: the rest of the line. */
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
	ERROR("CLIENT_ERROR ", BINARY_INVALID, ""),
	ERROR("ERROR", BINARY_UNKNOWN, "Unknown command"),
	ERROR("", BINARY_INTERNAL, ""),
#undef ERROR
};

static bool ends_with(struct slice s, struct slice end)
{
	return s.n >= end.n && slice_equal(slice_skip(s, s.n - end.n), end);
}

/* Sets the status of a failed add or replace, which differ in memcached. */
static void tell_why(const struct binary_asked *head, struct response *r)
{
	command_id id = shapes[head->opcode].command;

	if (id == COMMAND_ADD)
		*r = (struct response){ .status = BINARY_EXISTS,
			.value = SLICE("Data exists for key.") };
	else if (id == COMMAND_REPLACE)
		*r = (struct response){ .status = BINARY_NOT_FOUND, .value = SLICE("Not found") };
}

static void write_error(struct buf *out, const struct binary_asked *head, struct slice line)
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
	write_response(out, head, &r, false);
}

/* --- replies --- */

static void write_line_error(
	struct buf *out, const struct binary_asked *head, const struct reply *r)
{
	struct buf line = BUF_EMPTY;

	reply_add_line(&line, r);
	write_error(out, head, buf_slice(&line));
	buf_free(&line);
}

static bool reads(command_id id)
{
	return id == COMMAND_GET || id == COMMAND_GAT || id == COMMAND_TOUCH;
}

/* Writes a value. A shared value is left out: the caller adds it. */
static bool write_value(
	struct buf *out, const struct binary_asked *head, struct slice key, const struct reply *r)
{
	struct slice value = head->opcode == BINARY_TOUCH ? slice_of("", 0) : reply_bytes(r);
	struct response response = { .key = key, .value = value, .cas = r->cas };
	bool shares = r->shared && value.n;
	char flags[4];

	(void)put_big_endian(flags, r->flags, sizeof(flags));
	response.extras = slice_of(flags, sizeof(flags));
	write_response(out, head, &response, shares);
	return shares;
}

static void write_number(struct buf *out, const struct binary_asked *head, const struct reply *r)
{
	command_id id = shapes[head->opcode].command;
	char bytes[8];

	(void)put_big_endian(bytes, r->number, sizeof(bytes));
	if (id != COMMAND_INCR && id != COMMAND_DECR)
		write_line_error(out, head, r);
	else if (!head->quiet)
		write_response(out, head,
			&(struct response){
				.value = slice_of(bytes, sizeof(bytes)), .cas = r->cas },
			false);
}

static void write_miss(struct buf *out, const struct binary_asked *head, struct slice key)
{
	if (head->quiet)
		return;
	write_response(out, head,
		&(struct response){
			.status = BINARY_NOT_FOUND,
			.key = key,
			.value = key.n ? slice_of("", 0) : SLICE("Not found"),
		},
		false);
}

static void write_word(
	struct buf *out, const struct binary_asked *head, struct slice key, const struct reply *r)
{
	command_id id = shapes[head->opcode].command;

	switch (r->word) {
	case WORD_TOUCHED:
		(void)write_value(out, head, slice_of("", 0), r);
		break;
	case WORD_END:
		if (reads(id))
			write_miss(out, head, key);
		else
			binary_reply_text(out, head, BINARY_OK, slice_of("", 0));
		break;
	case WORD_DELETED:
	case WORD_MN:
	case WORD_OK:
	case WORD_RESET:
	case WORD_STORED:
	case WORD_VERSION:
		if (!head->quiet)
			write_response(out, head,
				&(struct response){ .value = r->bytes, .cas = r->cas }, false);
		break;
	default:
		write_line_error(out, head, r);
	}
}

/* Writes a response for each line STAT <name> <value>. */
static void write_stats(struct buf *out, const struct binary_asked *head, struct slice lines)
{
	struct slice line;
	size_t n;

	while (dialect_line(lines, &line, &n)) {
		struct response r = { 0 };
		lines = slice_skip(lines, n);
		(void)slice_token(&line);
		r.key = slice_token(&line);
		r.value = line.n ? slice_skip(line, 1) : line;
		write_response(out, head, &r, false);
	}
}

bool binary_form(struct buf *out, const struct reply *r, const void *asked, struct slice *tail)
{
	const struct binary_asked *head = asked;
	struct slice key = slice_of(head->key, head->key_size);

	*tail = slice_of("", 0);
	switch (r->kind) {
	case REPLY_NOTHING:
		if (head->opcode == BINARY_QUIT)
			binary_reply_text(out, head, BINARY_OK, slice_of("", 0));
		break;
	case REPLY_VALUE:
		return write_value(out, head, key, r);
	case REPLY_NUMBER:
		write_number(out, head, r);
		break;
	case REPLY_WORD:
		write_word(out, head, key, r);
		break;
	case REPLY_LINES:
		write_stats(out, head, r->bytes);
		break;
	case REPLY_ERROR:
		if (r->word == WORD_NOT_FOUND)
			write_error(out, head, SLICE("NOT_FOUND"));
		else
			write_error(out, head, r->bytes);
		break;
	case REPLY_LINE:
	case REPLY_META:
		write_line_error(out, head, r);
	}
	return false;
}
