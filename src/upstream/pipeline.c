#include "upstream/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "util/histogram.h"

/* SHARED_MOST limits the results that are delivered for one reply, and so without a pause. */
enum { RING_MIN = 64, SHARED_MOST = 16 };

/* The waiters that share the reply to a call. */
struct shared_call {
	struct waiter waiter; /* of the call, with the key of the first one */
	size_t count;
	struct waiter *waiters[SHARED_MOST];
};

struct pipeline_entry {
	struct waiter *waiter;
	const struct dialect *dialect;
	uint64_t start, end; /* Range of the call's bytes, counted as pipeline.encoded. */
	uint64_t since;      /* When it was pushed. */
	uint32_t expected;
	uint8_t verb, want;
	bool patient;
};

void pipeline_free(struct pipeline *p)
{
	assert(p->count == 0);
	free(p->ring);
	*p = (struct pipeline){ 0 };
}

static struct pipeline_entry *entry_at(const struct pipeline *p, size_t i)
{
	return &p->ring[(p->first + i) & (p->capacity - 1)];
}

static void grow_ring(struct pipeline *p)
{
	size_t capacity = p->capacity ? p->capacity * 2 : RING_MIN;
	struct pipeline_entry *ring = xmalloc(capacity * sizeof(*ring));

	for (size_t i = 0; i < p->count; i++)
		ring[i] = *entry_at(p, i);
	free(p->ring);
	p->ring = ring;
	p->capacity = capacity;
	p->first = 0;
}

static void pipeline_on_shared(struct waiter *waiter, const struct result *r)
{
	struct shared_call *shared = (struct shared_call *)waiter;

	for (size_t i = 0; i < shared->count; i++)
		shared->waiters[i]->done(shared->waiters[i], r);
	free(shared);
}

static struct shared_call *new_shared(struct waiter *first)
{
	struct shared_call *shared = xmalloc(sizeof(*shared));

	shared->waiter = (struct waiter){ pipeline_on_shared, first->key };
	shared->count = 1;
	shared->waiters[0] = first;
	return shared;
}

/* Joins the waiter to the call with this number, if that is a get of the same fields and key. */
static __attribute__((noinline)) bool share_call(struct pipeline *p, uint32_t number,
	const struct dialect *dialect, const struct call *call, struct waiter *waiter)
{
	struct shared_call *shared;
	struct pipeline_entry *e;

	/* A server may have answered a call that was not written. */
	if (p->pushed - number >= p->count)
		return false;
	e = entry_at(p, p->count - 1 - (size_t)(p->pushed - number));
	if (e->want != call->want || e->expected || call->expected || e->dialect != dialect ||
		!slice_equal(e->waiter->key, call->key))
		return false;
	if (e->waiter->done != pipeline_on_shared)
		e->waiter = &new_shared(e->waiter)->waiter;
	shared = (struct shared_call *)e->waiter;
	if (shared->count == SHARED_MOST)
		return false;
	shared->waiters[shared->count++] = waiter;
	return true;
}

/* Returns whether a get shares an earlier call; else notes that it is pushed. */
static inline bool shares_call(struct pipeline *p, const struct dialect *dialect,
	const struct call *call, struct waiter *waiter)
{
	uint32_t tail;
	struct pipeline_recent *recent;

	memcpy(&tail, call->key.p + call->key.n - sizeof(tail), sizeof(tail));
	recent = &p->recent[tail * UINT32_C(0x9e3779b1) >> 26];
	if (recent->tail == tail && (int32_t)(recent->number - p->barrier) > 0 &&
		share_call(p, recent->number, dialect, call, waiter))
		return true;
	*recent = (struct pipeline_recent){ p->pushed + 1, tail };
	return false;
}

bool pipeline_push(struct pipeline *p, const struct dialect *dialect, const struct call *call,
	struct waiter *waiter, struct buf *out)
{
	size_t before = buf_size(out);

	/* Reads with a CAS id are those of sets and lists, of which a key has one in flight. */
	if (call->only_reads && !(call->want & WANT_CAS) && call->key.n >= sizeof(uint32_t)) {
		if (shares_call(p, dialect, call, waiter))
			return false;
	} else if (call->verb != CALL_GET) {
		p->barrier = p->pushed + 1;
	}
	p->pushed++;
	if (p->count == p->capacity)
		grow_ring(p);
	dialect->encode(call, out);
	struct pipeline_entry *e = entry_at(p, p->count++);
	e->waiter = waiter;
	e->dialect = dialect;
	e->since = p->now;
	e->start = p->encoded;
	p->encoded += buf_size(out) - before;
	e->end = p->encoded;
	e->expected = call->expected;
	p->expected += call->expected;
	e->verb = (uint8_t)call->verb;
	e->want = (uint8_t)call->want;
	e->patient = call->patient;
	p->patient += call->patient;
	return true;
}

void pipeline_written(struct pipeline *p, size_t n)
{
	p->written += n;
	p->barrier = p->pushed;
	assert(p->written <= p->encoded);
}

static inline struct pipeline_entry take_first(struct pipeline *p)
{
	struct pipeline_entry e = *entry_at(p, 0);

	p->first = (p->first + 1) & (p->capacity - 1);
	p->count--;
	p->expected -= e.expected;
	p->patient -= e.patient;
	return e;
}

/*
 * Consecutive calls that were pushed at the same time. They have the same latency and are
 * counted together.
 */
struct batch {
	uint64_t since, count;
};

static void end_batch(const struct batch *batch, const struct pipeline_peer *peer)
{
	if (!peer->latency || !batch->count)
		return;
	histogram_add(peer->latency, peer->now - batch->since, batch->count);
	peer->answer->server = NULL;
}

static void count_in_batch(struct batch *batch, uint64_t since, const struct pipeline_peer *peer)
{
	if (batch->since != since) {
		end_batch(batch, peer);
		*batch = (struct batch){ since, 0 };
		if (peer->answer)
			*peer->answer = (struct pipeline_answer){ peer->server, since };
	}
	batch->count++;
}

static ssize_t read_replies(
	struct pipeline *p, struct slice in, const struct pipeline_peer *peer, struct batch *batch)
{
	size_t taken = 0, left = peer->most ? peer->most : SIZE_MAX;

	for (; taken < in.n && left; left--) {
		if (p->count == 0)
			return -1;
		const struct pipeline_entry *first = entry_at(p, 0);
		struct expect expect = { first->verb, first->want, first->waiter->key,
			peer->value_max };
		struct result r = { .server = peer->server, .connection = peer->connection };
		if (first->start >= p->written)
			return -1;
		ssize_t n = first->dialect->decode(slice_skip(in, taken), &expect, &r);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		taken += (size_t)n;
		struct pipeline_entry e = take_first(p);
		bool early = e.end > p->written;
		count_in_batch(batch, e.since, peer);
		e.waiter->done(e.waiter, &r);
		if (early || r.suspect)
			return -1;
	}
	return (ssize_t)taken;
}

ssize_t pipeline_read(struct pipeline *p, struct slice in, const struct pipeline_peer *peer)
{
	struct batch batch = { .since = UINT64_MAX };
	ssize_t n = read_replies(p, in, peer, &batch);

	end_batch(&batch, peer);
	return n;
}

void pipeline_fail(struct pipeline *p, enum result_status sent, const struct pipeline_peer *peer)
{
	struct pipeline old = *p;
	struct batch batch = { .since = UINT64_MAX };

	*p = (struct pipeline){ 0 };
	while (old.count) {
		struct pipeline_entry e = take_first(&old);
		bool written = e.start < old.written;
		struct result r = {
			.status = written ? sent : RESULT_UNAVAILABLE,
			.server = peer->server,
			.connection = peer->connection,
		};
		if (written)
			count_in_batch(&batch, e.since, peer);
		e.waiter->done(e.waiter, &r);
	}
	end_batch(&batch, peer);
	pipeline_free(&old);
}

size_t pipeline_drop(
	struct pipeline *p, uint64_t age, const struct pipeline_peer *peer, struct buf *out)
{
	size_t dropped = 0;

	for (; p->count; dropped++) {
		const struct pipeline_entry *first = entry_at(p, 0);
		struct result r = { .status = RESULT_UNAVAILABLE,
			.server = peer->server,
			.connection = peer->connection };
		if (first->start < p->written || first->since + age >= peer->now)
			break;
		struct pipeline_entry e = take_first(p);
		buf_consume(out, (size_t)(e.end - e.start));
		p->written = e.end;
		e.waiter->done(e.waiter, &r);
	}
	return dropped;
}

bool pipeline_is_writing_first(const struct pipeline *p)
{
	return p->count && entry_at(p, 0)->end > p->written;
}

/* Returns the number of calls that end at or before a position, counted as pipeline.encoded. */
static size_t calls_before(const struct pipeline *p, uint64_t position)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (entry_at(p, middle)->end <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t pipeline_together(const struct pipeline *p, size_t skip, size_t max)
{
	uint64_t from = p->written + skip;
	size_t first = calls_before(p, from), last = calls_before(p, from + max);

	if (first == p->count)
		return max;
	/* The rest of a split call is sent without any later call. */
	if (entry_at(p, first)->start < from && last > first)
		last = first + 1;
	return last > first ? (size_t)(entry_at(p, last - 1)->end - from) : max;
}
