/* Calls pushed, written in pieces, answered rightly, wrongly or not at all: each waiter gets one
 * result, in order. */
#include "input.h"
#include "upstream/pipeline.h"

enum { WAITERS = 512 };

struct listener {
	struct waiter waiter;
	int results;
};

static struct listener listeners[WAITERS];
static size_t pushed, heard;
static uint64_t written, starts[WAITERS]; /* of this connection; where each call began in it */
static bool failing;
static size_t push_again;
static struct pipeline pipeline;
static struct buf out;
static const struct pipeline_peer peer = { .server = "mc:1", .connection = 7 };

static void push(uint8_t kind);

static void on_result(struct waiter *waiter, const struct result *r)
{
	size_t i = (size_t)((struct listener *)waiter - listeners);

	MUST(i == heard && listeners[i].results == 0);
	listeners[i].results++;
	heard++;
	if (failing)
		MUST(r->status == (starts[i] < written ? RESULT_LOST : RESULT_UNAVAILABLE));
	else
		MUST(r->status <= RESULT_REFUSED);
	if (push_again && !failing) {
		push_again--;
		push((uint8_t)push_again);
	}
}

static void push(uint8_t kind)
{
	static const enum call_verb verbs[] = { CALL_GET, CALL_SET, CALL_DELETE, CALL_INCR,
		CALL_META, CALL_CAS, CALL_FLUSH_ALL, CALL_STATS };
	struct call call = { .verb = verbs[kind % 8],
		.key = SLICE("k"),
		.want = WANT_VALUE,
		.value = SLICE("xy"),
		.line = SLICE("mg k") };

	if (pushed == WAITERS)
		return;
	starts[pushed] = pipeline.encoded;
	listeners[pushed].waiter = (struct waiter){ on_result, SLICE("k") };
	pipeline_push(&pipeline, kind & 8 ? &dialect_classic : &dialect_meta, &call,
		&listeners[pushed].waiter, &out);
	pushed++;
}

static void fail_all(void)
{
	failing = true;
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	failing = false;
	MUST(heard == pushed && pipeline.count == 0);
	buf_consume(&out, buf_size(&out));
	written = 0;
}

static void feed(struct slice in)
{
	char *copy = input_copy(in);
	ssize_t n = pipeline_read(&pipeline, slice_of(copy, in.n), &peer);

	MUST(n >= -1 && n <= (ssize_t)in.n);
	free(copy);
	if (n < 0)
		fail_all();
}

static void write_some(size_t n)
{
	if (n > buf_size(&out))
		n = buf_size(&out);
	buf_consume(&out, n);
	pipeline_written(&pipeline, n);
	written += n;
}

/* The replies of servers, most of them valid in some position. */
static struct slice reply(uint8_t which)
{
	static const struct slice replies[] = {
		{ "STORED\r\n", 8 },
		{ "EN\r\n", 4 },
		{ "END\r\n", 5 },
		{ "VA 2 kk f0\r\nxy\r\n", 16 },
		{ "VALUE k 0 2\r\nxy\r\nEND\r\n", 22 },
		{ "DELETED\r\n", 9 },
		{ "7\r\n", 3 },
		{ "HD\r\n", 4 },
		{ "OK\r\n", 4 },
		{ "EXISTS\r\n", 8 },
		{ "NOT_FOUND\r\n", 11 },
		{ "SERVER_ERROR x\r\n", 16 },
		{ "STAT a 1\r\nEND\r\n", 15 },
		{ "ERROR\r\n", 7 },
	};
	return replies[which % (sizeof(replies) / sizeof(replies[0]))];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size);

	memset(listeners, 0, sizeof(listeners));
	pushed = heard = push_again = 0;
	written = 0;
	while (in.n) {
		uint8_t what = input_byte(&in);
		switch (what % 8) {
		case 0:
		case 1:
		case 2:
			push(what >> 3);
			break;
		case 3:
			write_some(what >> 3);
			break;
		case 4:
			write_some(SIZE_MAX);
			break;
		case 5:
			push_again = what >> 5;
			feed(reply(what >> 3));
			break;
		case 6:
			feed(input_bytes(&in, what >> 3));
			break;
		default:
			if (what >> 3 == 1)
				fail_all();
			else
				feed(reply(input_byte(&in)));
		}
	}
	fail_all();
	for (size_t i = 0; i < pushed; i++)
		MUST(listeners[i].results == 1);
	pipeline_free(&pipeline);
	buf_free(&out);
	return 0;
}
