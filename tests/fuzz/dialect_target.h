/* Shared by the fuzzers of both dialects: they parse any reply to any call, and encode any call. */
#ifndef FUZZ_DIALECT_TARGET_H
#define FUZZ_DIALECT_TARGET_H

#include "input.h"
#include "protocol/dialect.h"
#include "protocol/request.h"
#include "util/buf.h"

static inline ssize_t dialect_try(
	const struct dialect *d, const struct expect *expect, struct slice in, struct result *r)
{
	char *copy = input_copy(in);
	struct slice all = slice_of(copy, in.n);
	ssize_t n;

	*r = (struct result){ 0 };
	n = d->decode(all, expect, r);
	MUST(n >= -1 && n <= (ssize_t)in.n);
	if (n > 0) {
		struct slice taken = slice_of(copy, (size_t)n);
		MUST(input_within(r->value, taken) && input_within(r->line, taken));
		MUST(r->status <= RESULT_REFUSED ||
			(r->status == RESULT_TOO_LARGE && expect->verb == CALL_DISCARD));
		MUST(r->status != RESULT_HIT || expect->verb == CALL_GET ||
			expect->verb == CALL_GAT);
	}
	free(copy);
	return n;
}

/* The result for a reply does not depend on the bytes after it; and garbage stays garbage. */
static inline void dialect_fuzz_decode(const struct dialect *d, struct slice in)
{
	struct expect expect = { .verb = input_byte(&in) % (CALL_STATS + 1),
		.want = input_byte(&in) & ~(unsigned)(WANT_FLUSH | WANT_FENCE) };
	expect.key = input_bytes(&in, input_byte(&in) % 32);
	struct result whole, r;
	ssize_t n = dialect_try(d, &expect, in, &whole), before = 0;

	for (size_t cut = 0; cut < in.n && before == 0; cut++) {
		before = dialect_try(d, &expect, slice_of(in.p, cut), &r);
		MUST(before == 0 || before == n);
		MUST(before <= 0 ||
			(r.status == whole.status && r.value.n == whole.value.n &&
				r.cas == whole.cas));
	}
}

/* A key as request_key_valid has it. */
static inline struct slice dialect_key(struct slice *in, char key[64])
{
	struct slice bytes = input_bytes(in, 1 + input_byte(in) % 60);
	size_t n = 0;

	for (; n < bytes.n; n++)
		key[n] = (unsigned char)bytes.p[n] <= ' ' || bytes.p[n] == 0x7f ? 'k' : bytes.p[n];
	/* `delete noreply` is no deletion of that key, by the contract. */
	if (n == 0 || slice_equal(slice_of(key, n), SLICE("noreply")))
		key[n++] = 'k';
	return slice_of(key, n);
}

/* The encoding of a call is parsed by our own request parser as exactly that call. */
static inline void dialect_fuzz_encode(const struct dialect *d, struct slice in)
{
	static const struct request_limits limits = { 4096, 1 << 20, 10 };
	char key[64];
	struct call call = {
		.verb = input_byte(&in) % CALL_FLUSH_ALL,
		.want = WANT_VALUE | input_byte(&in) % 16,
		.key = dialect_key(&in, key),
		.flags = (uint32_t)input_number(&in),
		.exptime = (int32_t)input_number(&in),
		.number = input_number(&in),
		.compare = input_number(&in),
		.initial = input_number(&in),
		.vivifies = input_byte(&in) % 2,
	};
	struct buf out = BUF_EMPTY;
	struct request r;
	struct request_progress progress = { 0 };
	call.value = in;

	d->encode(&call, &out);
	MUST(request_parse(buf_slice(&out), &limits, &progress, &r) == REQUEST_READY);
	MUST(r.consumed == buf_size(&out) && !r.noreply && slice_equal(r.key, call.key));
	if (d == &dialect_meta && call_is_meta_write(call.verb, call.want)) {
		/* The numbers are in the flags, which the parser has checked. */
		MUST(!call_stores(call.verb) || slice_equal(r.data, call.value));
		buf_free(&out);
		return;
	}
	if (call_stores(call.verb)) {
		MUST(slice_equal(r.data, call.value) && r.flags == call.flags &&
			r.exptime == call.exptime);
		MUST(call.verb != CALL_CAS || r.number == call.number);
	}
	if (call.verb == CALL_TOUCH)
		MUST(r.exptime == call.exptime);
	if (call.verb == CALL_INCR || call.verb == CALL_DECR)
		MUST(r.number == call.number);
	buf_free(&out);
}

/* A hit that is made as a server makes it is read as it was made. */
static inline void dialect_fuzz_hit(const struct dialect *d, bool meta, struct slice in)
{
	char key[64];
	struct expect expect = {
		.verb = CALL_GET, .want = WANT_VALUE | WANT_CAS, .key = dialect_key(&in, key)
	};
	uint32_t flags = (uint32_t)input_number(&in);
	uint64_t cas = input_number(&in);
	struct buf reply = BUF_EMPTY;
	struct result r;

	if (meta)
		buf_printf(&reply, "VA %zu k%.*s f%u c%llu\r\n", in.n, (int)expect.key.n,
			expect.key.p, flags, (unsigned long long)cas);
	else
		buf_printf(&reply, "VALUE %.*s %u %zu %llu\r\n", (int)expect.key.n, expect.key.p,
			flags, in.n, (unsigned long long)cas);
	buf_add_slice(&reply, in);
	buf_add_slice(&reply, meta ? SLICE("\r\n") : SLICE("\r\nEND\r\n"));
	MUST(d->decode(buf_slice(&reply), &expect, (r = (struct result){ 0 }, &r)) ==
		(ssize_t)buf_size(&reply));
	MUST(r.status == RESULT_HIT && slice_equal(r.value, in) && r.flags == flags &&
		r.cas == cas);
	buf_free(&reply);
}

static inline void dialect_fuzz(const struct dialect *d, bool meta, struct slice in)
{
	switch (input_byte(&in) % 8) {
	case 0:
		dialect_fuzz_encode(d, in);
		break;
	case 1:
		dialect_fuzz_hit(d, meta, in);
		break;
	default:
		dialect_fuzz_decode(d, in);
	}
}

#endif
