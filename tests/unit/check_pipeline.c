#include "unit.h"
#include "upstream/pipeline.h"
#include "util/buf.h"
#include "util/histogram.h"

enum { MANY = 300 };

static const struct pipeline_peer peer = { .server = "mc:1", .connection = 7, .value_max = 1000 };

/* A waiter that records the results and their order. */
struct listener {
	struct waiter waiter;
	struct result result;
	int results, order;
	void (*then)(struct listener *listener);
};

static int heard;
static struct pipeline pipeline;
static struct buf out;
static struct listener listeners[MANY];

static void on_result(struct waiter *waiter, const struct result *r)
{
	struct listener *listener = (struct listener *)waiter;

	listener->result = *r;
	listener->results++;
	listener->order = ++heard;
	if (listener->then)
		listener->then(listener);
}

static void push(int i, enum call_verb verb)
{
	struct call call = {
		.verb = verb, .key = SLICE("k"), .value = SLICE("xyz"), .want = WANT_VALUE
	};

	listeners[i].waiter = (struct waiter){ on_result, SLICE("k") };
	pipeline_push(&pipeline, &dialect_meta, &call, &listeners[i].waiter, &out);
}

static void write_all(void)
{
	pipeline_written(&pipeline, buf_size(&out));
	buf_consume(&out, buf_size(&out));
}

static ssize_t reads(const char *text)
{
	return pipeline_read(&pipeline, guard_text(text), &peer);
}

static void end(void)
{
	pipeline_free(&pipeline);
	buf_free(&out);
}

TEST(answers_in_order)
{
	push(0, CALL_SET);
	push(1, CALL_GET);
	push(2, CALL_DELETE);
	assert_bytes(buf_slice(&out), "set k 0 0 3\r\nxyz\r\nmg k k f v\r\ndelete k\r\n");
	write_all();
	ck_assert_int_eq(reads("STORED\r\nVA 1 kk f0\r\nx\r\nDELE"), 23);
	ck_assert_int_eq(listeners[0].result.status, RESULT_DONE);
	ck_assert_int_eq(listeners[1].result.status, RESULT_HIT);
	ck_assert_int_eq(listeners[1].order, 2);
	ck_assert_str_eq(listeners[1].result.server, "mc:1");
	ck_assert_uint_eq(listeners[1].result.connection, 7);
	ck_assert_int_eq(listeners[2].results, 0);
	ck_assert_int_eq(reads("DELETED\r\n"), 9);
	ck_assert_int_eq(listeners[2].results, 1);
	ck_assert_uint_eq(pipeline.count, 0);
}

static void get(int i, const char *key)
{
	struct call call = { .verb = CALL_GET,
		.key = slice_of(key, strlen(key)),
		.want = WANT_VALUE,
		.only_reads = true };

	listeners[i].waiter = (struct waiter){ on_result, call.key };
	pipeline_push(&pipeline, &dialect_meta, &call, &listeners[i].waiter, &out);
}

/* Gets of one key share a call until it is written, or a write follows. */
TEST(gets_share_a_call)
{
	get(0, "key1");
	get(1, "key1");
	get(2, "key2");
	get(3, "key1");
	assert_bytes(buf_slice(&out), "mg key1 k f v\r\nmg key2 k f v\r\n");
	ck_assert_uint_eq(pipeline.count, 2);
	write_all();
	ck_assert_int_eq(reads("VA 1 kkey1 f0\r\nx\r\n"), 18);
	ck_assert_int_eq(heard, 3);
	ck_assert_int_eq(listeners[0].order, 1);
	ck_assert_int_eq(listeners[1].order, 2);
	ck_assert_int_eq(listeners[3].order, 3);
	ck_assert_int_eq(listeners[3].result.status, RESULT_HIT);
	ck_assert_int_eq(reads("EN\r\n"), 4);
	ck_assert_int_eq(listeners[2].result.status, RESULT_MISS);
	end();
}

TEST(a_written_call_is_not_shared)
{
	get(0, "key1");
	pipeline_written(&pipeline, 1);
	get(1, "key1");
	get(2, "key1");
	assert_bytes(buf_slice(&out), "mg key1 k f v\r\nmg key1 k f v\r\n");
	pipeline_written(&pipeline, buf_size(&out) - 1);
	get(3, "key1");
	ck_assert_uint_eq(pipeline.count, 3);
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(listeners[i].results, 1);
	ck_assert_int_eq(listeners[2].result.status, RESULT_LOST);
	ck_assert_int_eq(listeners[3].result.status, RESULT_UNAVAILABLE);
	end();
}

TEST(a_call_before_a_write_is_not_shared)
{
	get(0, "key1");
	push(1, CALL_SET);
	get(2, "key1");
	ck_assert_uint_eq(pipeline.count, 3);
	write_all();
	ck_assert_int_eq(reads("EN\r\nSTORED\r\nVA 1 kkey1 f0\r\nx\r\n"), 4 + 8 + 18);
	ck_assert_int_eq(listeners[0].result.status, RESULT_MISS);
	ck_assert_int_eq(listeners[2].result.status, RESULT_HIT);
	end();
}

/* A reply is for a limited number of gets. */
TEST(few_share_a_call)
{
	for (int i = 0; i < 40; i++)
		get(i, "key1");
	ck_assert_uint_eq(pipeline.count, 3);
	write_all();
	ck_assert_int_eq(reads("EN\r\n"), 4);
	ck_assert_int_eq(heard, 16);
	ck_assert_int_eq(reads("EN\r\nEN\r\n"), 8);
	ck_assert_int_eq(heard, 40);
	end();
}

/* A peer with a limit delivers so many results at once; the next call continues. */
TEST(some_at_once)
{
	static const char replies[] = "EN\r\nEN\r\nEN\r\n";
	struct pipeline_peer limited = peer;

	limited.most = 2;
	for (int i = 0; i < 3; i++)
		push(i, CALL_GET);
	write_all();
	ck_assert_int_eq(pipeline_read(&pipeline, guard_text(replies), &limited), 8);
	ck_assert_int_eq(heard, 2);
	ck_assert_uint_eq(pipeline.count, 1);
	ck_assert_int_eq(pipeline_read(&pipeline, guard_text(replies + 8), &limited), 4);
	ck_assert_int_eq(heard, 3);
	end();
}

/* More than fit into the ring at first, popped and pushed alternately so that it wraps around. */
TEST(many)
{
	int pushed = 0, answered = 0;

	for (int round = 1; answered < MANY; round++) {
		for (int i = 0; i < round * 7 && pushed < MANY; i++)
			push(pushed++, CALL_DELETE);
		write_all();
		for (int i = 0; i < round * 5 && answered < pushed; i++, answered++)
			ck_assert_int_eq(reads("DELETED\r\n"), 9);
	}
	for (int i = 0; i < MANY; i++) {
		ck_assert_int_eq(listeners[i].results, 1);
		ck_assert_int_eq(listeners[i].order, i + 1);
	}
}

TEST(cut_at_every_byte)
{
	static const char replies[] =
		"STORED\r\nVA 6 kk f0\r\nEN\r\nHD\r\nDELETED\r\nNOT_FOUND\r\n";

	for (size_t cut = 0; cut < sizeof(replies); cut++) {
		struct slice first = slice_of(replies, cut), rest;
		memset(listeners, 0, sizeof(listeners));
		push(0, CALL_SET);
		push(1, CALL_GET);
		push(2, CALL_DELETE);
		push(3, CALL_DELETE);
		write_all();
		ssize_t taken = pipeline_read(&pipeline, guard_place(first), &peer);
		ck_assert_int_ge(taken, 0);
		rest = slice_of(replies + taken, sizeof(replies) - 1 - (size_t)taken);
		ck_assert_int_eq(
			pipeline_read(&pipeline, guard_place(rest), &peer), (ssize_t)rest.n);
		for (int i = 0; i < 4; i++)
			ck_assert_int_eq(listeners[i].results, 1);
		assert_bytes(listeners[1].result.value.n == 6 ? SLICE("6") : SLICE("?"), "6");
		ck_assert_int_eq(listeners[3].result.status, RESULT_MISS);
	}
}

static void fails_with(int i, enum result_status status)
{
	ck_assert_int_eq(listeners[i].results, 1);
	ck_assert_int_eq(listeners[i].result.status, status);
	ck_assert_str_eq(listeners[i].result.server, "mc:1");
}

TEST(stray_reply)
{
	ck_assert_int_eq(reads("STORED\r\n"), -1);
	push(0, CALL_SET);
	write_all();
	ck_assert_int_eq(reads("STORED\r\nSTORED\r\n"), -1);
	fails_with(0, RESULT_DONE);
}

/* A reply to a call that was not sent at all belongs to no call. */
TEST(reply_to_what_was_not_sent)
{
	push(0, CALL_SET);
	ck_assert_int_eq(reads("STORED\r\n"), -1);
	ck_assert_int_eq(listeners[0].results, 0);
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	fails_with(0, RESULT_UNAVAILABLE);
}

/*
 * A reply before all of the call was sent belongs to that call, probably an error; later bytes are
 * unreliable.
 */
TEST(early_reply)
{
	push(0, CALL_SET);
	push(1, CALL_DELETE);
	pipeline_written(&pipeline, 14);
	ck_assert_int_eq(reads("SERVER_ERROR object too large for cache\r\n"), -1);
	fails_with(0, RESULT_REFUSED);
	ck_assert_int_eq(listeners[1].results, 0);
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	fails_with(1, RESULT_UNAVAILABLE);
}

TEST(garbage)
{
	push(0, CALL_SET);
	push(1, CALL_SET);
	write_all();
	ck_assert_int_eq(reads("STORED\r\nDELETED\r\n"), -1);
	fails_with(0, RESULT_DONE);
	ck_assert_int_eq(listeners[1].results, 0);
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	fails_with(1, RESULT_LOST);
}

TEST(suspect_reply)
{
	push(0, CALL_SET);
	push(1, CALL_SET);
	write_all();
	ck_assert_int_eq(reads("ERROR\r\nERROR\r\n"), -1);
	fails_with(0, RESULT_REFUSED);
	ck_assert_int_eq(listeners[1].results, 0);
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
}

/* A single byte on its way is enough for the outcome to be unknown; not one, and it may be sent
 * again. */
TEST(sent_or_not)
{
	push(0, CALL_SET);
	push(1, CALL_SET);
	push(2, CALL_SET);
	size_t each = buf_size(&out) / 3;

	pipeline_written(&pipeline, each + 1);
	pipeline_fail(&pipeline, RESULT_TIMED_OUT, &peer);
	fails_with(0, RESULT_TIMED_OUT);
	fails_with(1, RESULT_TIMED_OUT);
	fails_with(2, RESULT_UNAVAILABLE);
	ck_assert_int_eq(listeners[2].order, 3);
	buf_consume(&out, buf_size(&out));
	push(3, CALL_SET);
	push(4, CALL_SET);
	pipeline_written(&pipeline, each);
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	fails_with(3, RESULT_LOST);
	fails_with(4, RESULT_UNAVAILABLE);
}

static void push_more(struct listener *listener)
{
	static int next = 100;

	(void)listener;
	for (int i = 0; i < 90; i++)
		push(next++, CALL_DELETE);
}

/* A waiter may make more calls in its callback, so many that the ring is reallocated. */
TEST(push_while_reading)
{
	push(0, CALL_DELETE);
	push(1, CALL_DELETE);
	listeners[0].then = push_more;
	write_all();
	ck_assert_int_eq(reads("DELETED\r\nNOT_FOUND\r\n"), 20);
	fails_with(0, RESULT_DONE);
	fails_with(1, RESULT_MISS);
	ck_assert_uint_eq(pipeline.count, 90);
	ck_assert_int_eq(reads("DELETED\r\n"), -1);
	write_all();
	for (int i = 0; i < 90; i++)
		ck_assert_int_eq(reads("DELETED\r\n"), 9);
	fails_with(189, RESULT_DONE);
}

/* Calls that are pushed while all fail belong to the next connection. */
TEST(push_while_failing)
{
	push(0, CALL_DELETE);
	push(1, CALL_DELETE);
	listeners[0].then = push_more;
	write_all();
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	fails_with(0, RESULT_LOST);
	fails_with(1, RESULT_LOST);
	ck_assert_uint_eq(pipeline.count, 90);
	ck_assert_uint_eq(pipeline.written, 0);
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	fails_with(100, RESULT_UNAVAILABLE);
}

static void push_two(struct listener *listener)
{
	(void)listener;
	push(100, CALL_DELETE);
	push(101, CALL_DELETE);
}

/* Calls that are too old when they could be sent fail, except one of which bytes were written. */
TEST(too_old)
{
	struct pipeline_peer later = peer;

	for (int i = 0; i < 4; i++) {
		pipeline.now = (uint64_t)i;
		push(i, i ? CALL_DELETE : CALL_SET);
	}
	pipeline_written(&pipeline, 18);
	buf_consume(&out, 18);
	later.now = 12;
	listeners[1].then = push_two;
	ck_assert_uint_eq(pipeline_drop(&pipeline, 10, &later, &out), 0);
	ck_assert_uint_eq(heard, 0);
	ck_assert_int_eq(reads("STORED\r\n"), 8);
	pipeline.now = 12;
	ck_assert_uint_eq(pipeline_drop(&pipeline, 10, &later, &out), 1);
	fails_with(1, RESULT_UNAVAILABLE);
	ck_assert_int_eq(listeners[2].results, 0);
	assert_bytes(buf_slice(&out), "delete k\r\ndelete k\r\ndelete k\r\ndelete k\r\n");
	ck_assert_uint_eq(pipeline.count, 4);
	pipeline_written(&pipeline, 3);
	buf_consume(&out, 3);
	later.now = 100;
	ck_assert_uint_eq(pipeline_drop(&pipeline, 10, &later, &out), 0);
	write_all();
	ck_assert_int_eq(reads("DELETED\r\nDELETED\r\nDELETED\r\nNOT_FOUND\r\n"), 38);
	fails_with(101, RESULT_MISS);
}

/* The content of a record: whole calls, or a part of one. A set here has 18 bytes, a delete 10. */
TEST(together)
{
	push(0, CALL_SET);
	push(1, CALL_DELETE);
	push(2, CALL_DELETE);
	push(3, CALL_SET);
	ck_assert_uint_eq(buf_size(&out), 18 + 10 + 10 + 18);
	ck_assert_uint_eq(pipeline_together(&pipeline, 0, 1000), 56);
	ck_assert_uint_eq(pipeline_together(&pipeline, 0, 56), 56);
	ck_assert_uint_eq(pipeline_together(&pipeline, 0, 55), 38);
	ck_assert_uint_eq(pipeline_together(&pipeline, 0, 18), 18);
	/* A part, then the rest separately. */
	ck_assert_uint_eq(pipeline_together(&pipeline, 0, 10), 10);
	ck_assert_uint_eq(pipeline_together(&pipeline, 10, 1000), 8);
	ck_assert_uint_eq(pipeline_together(&pipeline, 10, 5), 5);
	ck_assert_uint_eq(pipeline_together(&pipeline, 18, 1000), 38);
	ck_assert_uint_eq(pipeline_together(&pipeline, 56, 1000), 1000);
	pipeline_written(&pipeline, 20);
	ck_assert_uint_eq(pipeline_together(&pipeline, 0, 1000), 8);
	ck_assert_uint_eq(pipeline_together(&pipeline, 8, 1000), 28);
	ck_assert_int_eq(reads("STORED\r\n"), 8);
	ck_assert_uint_eq(pipeline_together(&pipeline, 8, 27), 10);
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	ck_assert_uint_eq(pipeline_together(&pipeline, 0, 7), 7);
}

TEST(failing_nothing)
{
	pipeline_fail(&pipeline, RESULT_LOST, &peer);
	ck_assert_int_eq(heard, 0);
	ck_assert_int_eq(reads(""), 0);
}

/* Calls are counted from their push to the reply, or to the failure if they were sent. */
TEST(latencies)
{
	static struct histogram latency;
	struct pipeline_answer answer = { 0 };
	struct pipeline_peer timed = peer;
	struct histogram_sum sum = { .count = 0 };

	timed.latency = &latency;
	timed.answer = &answer;
	pipeline.now = 1000;
	push(0, CALL_SET);
	push(1, CALL_SET);
	pipeline.now = 3000;
	push(2, CALL_SET);
	push(3, CALL_SET);
	write_all();
	push(4, CALL_SET);
	timed.now = 9000;
	ck_assert_int_eq(
		pipeline_read(&pipeline, SLICE("STORED\r\nSTORED\r\nSTORED\r\n"), &timed), 24);
	histogram_sum(&latency, &sum);
	ck_assert_uint_eq(sum.count, 3);
	ck_assert_uint_eq(sum.counts[histogram_bucket(8000)], 2);
	ck_assert_uint_eq(sum.counts[histogram_bucket(6000)], 1);
	timed.now = 103000;
	pipeline_fail(&pipeline, RESULT_TIMED_OUT, &timed);
	sum = (struct histogram_sum){ .count = 0 };
	histogram_sum(&latency, &sum);
	ck_assert_uint_eq(sum.count, 4);
	ck_assert_uint_eq(sum.total, 8000 + 8000 + 6000 + 100000);
	ck_assert_ptr_null(answer.server);
}

static struct pipeline_answer seen;
static const struct pipeline_answer *shown;

static void look(struct listener *listener)
{
	(void)listener;
	seen = *shown;
}

/* While a waiter receives its result, others may read its server and the time of its call. */
TEST(shows_who_answers)
{
	static struct histogram latency;
	struct pipeline_answer answer = { 0 };
	struct pipeline_peer timed = peer;

	timed.latency = &latency;
	timed.answer = &answer;
	shown = &answer;
	pipeline.now = 5;
	push(0, CALL_SET);
	pipeline.now = 6;
	push(1, CALL_SET);
	listeners[1].then = look;
	write_all();
	ck_assert_int_eq(pipeline_read(&pipeline, SLICE("STORED\r\nSTORED\r\n"), &timed), 16);
	ck_assert_str_eq(seen.server, "mc:1");
	ck_assert_uint_eq(seen.since, 6);
	ck_assert_ptr_null(answer.server);
	listeners[1].then = NULL;
}

FIXTURE(NULL, end)
