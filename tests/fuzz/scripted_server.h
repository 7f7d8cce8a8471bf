/*
 * A server for the fuzzer of connections: the calls that it was sent, in a pipeline as the daemon has one, and bytes that it sends
 * back. It keeps no items: a choice says what it replies to a call.
 */
#ifndef FUZZ_SCRIPTED_SERVER_H
#define FUZZ_SCRIPTED_SERVER_H

#include "fake.h"
#include "input.h"
#include "protocol/request.h"
#include "upstream/pipeline.h"

enum { SCRIPTED_CALLS = 1 << 16, SCRIPTED_VALUE_MAX = 4096 };

struct scripted_server {
	struct fake *fake;
	bool meta;
	bool lies; /* it sent something on this connection that no memcached sends */
	struct pipeline pipeline;
	struct pipeline_peer peer;
	struct buf out, in;           /* what is not written yet; what has come and is not decoded yet */
	size_t calls[SCRIPTED_CALLS]; /* those of this connection, as the fake counts them */
	size_t count, replied;        /* of them */
};

/* Takes the result of a call to the fake, which gives it to the call's own waiter. */
struct scripted_waiter {
	struct waiter waiter;
	struct scripted_server *server;
	size_t call;
};

/* Hears of each value that the server has given. */
static void scripted_gave(struct slice key, struct slice value);

static void scripted_result(struct waiter *waiter, const struct result *r)
{
	struct scripted_waiter *w = (struct scripted_waiter *)waiter;
	struct scripted_server *s = w->server;
	size_t call = w->call;

	if (r->status == RESULT_HIT)
		scripted_gave(waiter->key, r->value);
	free(w);
	s->fake->connection = s->peer.connection;
	fake_result(s->fake, call, r);
}

/* What is encoded for a call is that call and nothing else, whatever bytes the client chose. */
static inline void scripted_check_encoded(const struct call *call, struct slice bytes)
{
	static const struct request_limits limits = { 1 << 16, 1 << 20, 10 };
	size_t expected = 1 + ((call->want & WANT_FLUSH) != 0) + ((call->want & WANT_FENCE) != 0);

	if (call->verb != CALL_META)
		expected = 1;
	for (; expected; expected--) {
		struct request r;
		struct request_progress progress = { 0 };
		MUST(request_parse(bytes, &limits, &progress, &r) == REQUEST_READY);
		MUST(!r.noreply || call->verb == CALL_META);
		bytes = slice_skip(bytes, r.consumed);
	}
	MUST(bytes.n == 0);
}

static inline void scripted_push(struct scripted_server *s, size_t i)
{
	const struct fake_call *c = &s->fake->calls[i];
	struct scripted_waiter *w = malloc(sizeof(*w));
	size_t before = buf_size(&s->out);

	MUST(w);
	*w = (struct scripted_waiter){ { scripted_result, c->waiter->key }, s, i };
	if (s->count == SCRIPTED_CALLS ||
		(c->call.verb == CALL_CAS && c->call.connection && c->call.connection != s->peer.connection)) {
		scripted_result(&w->waiter, &(struct result){ .status = RESULT_UNAVAILABLE });
		return;
	}
	s->calls[s->count++] = i;
	pipeline_push(&s->pipeline, s->meta ? &dialect_meta : &dialect_classic, &c->call, &w->waiter, &s->out);
	scripted_check_encoded(&c->call, slice_skip(buf_slice(&s->out), before));
}

static inline void scripted_write(struct scripted_server *s, size_t n)
{
	if (n > buf_size(&s->out))
		n = buf_size(&s->out);
	buf_consume(&s->out, n);
	pipeline_written(&s->pipeline, n);
}

/* The connection breaks; the next one is there at once. */
static inline void scripted_fail(struct scripted_server *s, enum result_status status)
{
	struct pipeline_peer peer = s->peer;

	buf_consume(&s->out, buf_size(&s->out));
	buf_consume(&s->in, buf_size(&s->in));
	s->count = s->replied = 0;
	s->lies = false;
	s->peer.connection++;
	pipeline_fail(&s->pipeline, status, &peer);
}

/* Some of the bytes on the way arrive: at a place of their own, so that one too many is noticed. */
static inline void scripted_read(struct scripted_server *s, struct slice bytes)
{
	char *copy;
	ssize_t n;

	buf_add_slice(&s->in, bytes);
	copy = input_copy(buf_slice(&s->in));
	n = pipeline_read(&s->pipeline, slice_of(copy, buf_size(&s->in)), &s->peer);
	MUST(n >= -1 && n <= (ssize_t)buf_size(&s->in));
	free(copy);
	/* No client can make a server say what breaks the connection for all. */
	MUST(n >= 0 || s->lies);
	if (n < 0)
		scripted_fail(s, RESULT_LOST);
	else
		buf_consume(&s->in, (size_t)n);
	/* More than this it cannot wait for. */
	MUST(buf_size(&s->in) <= SCRIPTED_VALUE_MAX + 2 * DIALECT_LINE_MAX);
}

/* --- replies --- */

static inline void scripted_hit(
	const struct scripted_server *s, const struct call *call, struct slice value, uint8_t choice, struct buf *out)
{
	bool meta = s->meta, brings = !meta || call->want & WANT_VALUE;

	if (!meta)
		buf_printf(out, "VALUE %.*s %u %zu", (int)call->key.n, call->key.p, choice % 4u, value.n);
	else if (brings)
		buf_printf(out, "VA %zu k%.*s f%u", value.n, (int)call->key.n, call->key.p, choice % 4u);
	else
		buf_printf(out, "HD k%.*s f%u", (int)call->key.n, call->key.p, choice % 4u);
	if (call->want & WANT_CAS)
		buf_printf(out, meta ? " c%u" : " %u", choice);
	if (meta && call->want & WANT_TTL)
		buf_printf(out, " t%d", choice % 3 ? -1 : (int)choice);
	if (meta && call->want & WANT_SIZE)
		buf_printf(out, " s%zu", value.n);
	BUF_ADD(out, "\r\n");
	if (brings) {
		buf_add_slice(out, value);
		BUF_ADD(out, "\r\n");
	}
	if (!meta)
		BUF_ADD(out, "END\r\n");
}

/* Some versions of memcached decode a base64 key, and print it as it is. */
static inline void scripted_echo(const struct call *call, struct buf *out)
{
	struct slice flags = call->line, flag;

	(void)slice_token(&flags);
	(void)slice_token(&flags);
	while ((flag = slice_token(&flags)).n) {
		if (flag.p[0] == 'k')
			buf_printf(out, " k%.*s", (int)call->key.n, call->key.p);
	}
	BUF_ADD(out, "\r\n");
}

static inline void scripted_passed(const struct call *call, struct slice value, uint8_t choice, struct buf *out)
{
	static const char *const lines[] = { "HD", "EN", "NF", "NS", "EX", "HD O1 f2", "ME k exp=-1" };

	if (call->want & WANT_FLUSH)
		BUF_ADD(out, "MN\r\n");
	if (choice >= 250) {
		BUF_ADD(out, "SERVER_ERROR out of memory storing object\r\n");
	} else if (choice % 8 < 7) {
		buf_printf(out, "%s", lines[choice % 8]);
		scripted_echo(call, out);
	} else {
		buf_printf(out, "VA %zu f0", value.n);
		scripted_echo(call, out);
		buf_add_slice(out, value);
		BUF_ADD(out, "\r\n");
	}
	if (call->want & WANT_FENCE)
		BUF_ADD(out, "MN\r\n");
}

static inline const char *scripted_word(enum call_verb verb, uint8_t choice)
{
	bool first = choice % 2;

	switch (verb) {
	case CALL_CAS:
		return choice % 3 == 0 ? "NOT_FOUND" : choice % 3 == 1 ? "STORED" : "EXISTS";
	case CALL_INCR:
	case CALL_DECR:
		return choice % 3 == 0 ? "NOT_FOUND" : choice % 3 == 1 ? "7" : "18446744073709551615";
	case CALL_DELETE:
	case CALL_DISCARD:
		return first ? "DELETED" : "NOT_FOUND";
	case CALL_TOUCH:
		return first ? "TOUCHED" : "NOT_FOUND";
	case CALL_FLUSH_ALL:
		return "OK";
	default:
		return first ? "STORED" : "NOT_STORED";
	}
}

/* Adds the reply to the oldest call that has none; even choices are misses. False when all have one. */
static inline bool scripted_reply(struct scripted_server *s, struct slice value, uint8_t choice, struct buf *out)
{
	const struct call *call;

	if (s->replied == s->count)
		return false;
	call = &s->fake->calls[s->calls[s->replied++]].call;
	if (call->verb == CALL_META)
		scripted_passed(call, value, choice, out);
	else if (choice >= 250)
		BUF_ADD(out, "SERVER_ERROR out of memory storing object\r\n");
	else if (call->verb != CALL_GET && call->verb != CALL_GAT)
		buf_printf(out, "%s\r\n", scripted_word(call->verb, choice));
	else if (choice % 2)
		scripted_hit(s, call, value, choice, out);
	else if (s->meta)
		BUF_ADD(out, "EN\r\n");
	else
		BUF_ADD(out, "END\r\n");
	return true;
}

#endif
