/* A stream of binary requests, however it is cut, and a response to each. */
#include "input.h"
#include "protocol/binary.h"
#include "protocol/commands.h"
#include "util/buf.h"

static const struct request_limits limits = { .max_line = 600, .max_value = 300, .max_keys = 1 };

struct binary_request {
	struct request request;
	struct request_reply reply;
	struct binary_asked asked;
};

static enum request_status parse(
	struct slice in, struct request_progress *progress, struct binary_request *b)
{
	char *copy = input_copy(in);
	struct slice all = slice_of(copy, in.n);
	enum request_status status =
		binary_parse(all, &limits, progress, &b->request, &b->reply, &b->asked);
	const struct request *r = &b->request;

	MUST(status != REQUEST_MORE || progress->needed == 0 || progress->needed > in.n);
	MUST(progress->needed <= BINARY_HEADER + 255 + KEY_MAX + limits.max_value);
	if (status == REQUEST_READY || status == REQUEST_REFUSED) {
		MUST(r->consumed >= BINARY_HEADER && r->consumed <= in.n);
		MUST(input_within(r->key, all) && input_within(r->rest, all) &&
			input_within(r->data, all));
		MUST(r->data.n <= limits.max_value && r->key.n <= KEY_MAX);
	}
	if (status == REQUEST_READY) {
		MUST(r->command && !r->error && r->skip.bytes == 0 && r->exptime >= 0 &&
			r->exptime <= INT32_MAX);
		MUST(r->command->order == ORDER_READ || r->command->order == ORDER_FLUSH ||
			r->command->id == COMMAND_VERBOSITY ||
			r->extras.odd_key != request_key_valid(r->key, KEY_MAX));
	}
	if (status == REQUEST_REFUSED || status == REQUEST_FATAL)
		MUST(r->error && strlen(r->error) > 0 && !strpbrk(r->error, "\r\n"));
	free(copy);
	return status;
}

/* A header followed by this number of bytes, and nothing else. */
static void check_response(const struct buf *out, const struct binary_request *b)
{
	const unsigned char *p = (const unsigned char *)buf_slice(out).p;
	size_t n = buf_size(out);

	if (n == 0) {
		MUST(b->asked.quiet);
		return;
	}
	MUST(n >= BINARY_HEADER && p[0] == BINARY_RESPONSE && p[1] == b->asked.opcode);
	MUST(n - BINARY_HEADER ==
		((size_t)p[8] << 24 | (size_t)p[9] << 16 | (size_t)p[10] << 8 | p[11]));
	MUST(((size_t)p[2] << 8 | p[3]) + p[4] <= n - BINARY_HEADER);
}

static void respond_with(const struct binary_request *b, struct reply reply)
{
	struct buf out = BUF_EMPTY;
	struct slice tail;

	MUST(!binary_form(&out, &reply, &b->asked, &tail));
	if (reply.kind != REPLY_LINES)
		check_response(&out, b);
	buf_free(&out);
}

/* Any line, word and value makes one response or none. */
static void respond(const struct binary_request *b, struct slice text)
{
	struct reply value = reply_value(SLICE("k"), text);

	value.flags = 7;
	value.cas = 9;
	respond_with(b, value);
	respond_with(b, reply_error(text));
	respond_with(b, reply_line(text));
	respond_with(b, reply_number(17));
	respond_with(b, (struct reply){ .kind = REPLY_LINES, .bytes = text });
	for (enum reply_word word = WORD_COUNT; word < WORDS; word++)
		respond_with(b, reply_word(word));
}

/* The result for a prefix does not change when more bytes arrive. */
static void check_prefixes(
	struct slice in, enum request_status status, const struct binary_request *whole)
{
	struct request_progress kept = { 0 };
	enum request_status before = REQUEST_MORE;
	struct binary_request b;

	for (size_t n = 0; n <= in.n && before == REQUEST_MORE; n++) {
		struct request_progress fresh = { 0 };
		before = parse(slice_of(in.p, n), &fresh, &b);
		MUST(before == parse(slice_of(in.p, n), &kept, &b));
	}
	MUST(before == status);
	if (before != REQUEST_MORE && before != REQUEST_HANGUP)
		MUST(b.request.consumed == whole->request.consumed &&
			b.request.skip.bytes == whole->request.skip.bytes &&
			b.request.command == whole->request.command &&
			b.request.error == whole->request.error &&
			b.request.number == whole->request.number &&
			b.asked.opcode == whole->asked.opcode);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);

	for (int i = 0; i < 20 && in.n; i++) {
		struct request_progress progress = { 0 };
		struct binary_request b;
		enum request_status status = parse(in, &progress, &b);
		check_prefixes(in, status, &b);
		if (status == REQUEST_READY || status == REQUEST_REFUSED || status == REQUEST_FATAL)
			respond(&b, in);
		if (status != REQUEST_READY && status != REQUEST_REFUSED)
			break;
		size_t taken = b.request.consumed + b.request.skip.bytes;
		in = slice_skip(in, taken < in.n ? taken : in.n);
	}
	return 0;
}
