#include "collection/segments.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/large.h"
#include "util/alloc.h"

enum { CALLS_AT_ONCE = 128 };

void segments_keep_failure(const struct result *r, bool *failed, struct result *failure, struct buf *line)
{
	if (*failed)
		return;
	*failed = true;
	*failure = *r;
	buf_add_slice(line, r->line);
	failure->line = buf_slice(line);
	failure->value = slice_of("", 0);
}

struct segments *segments_create(struct lanes *lanes, struct slice key, struct slice refs)
{
	struct segments *s = xcalloc(1, sizeof(*s));
	struct slice rest;
	struct oplog_ref ref;
	size_t at = 0;

	s->lanes = lanes;
	large_mark(lanes->host->large, key);
	buf_add_slice(&s->refs, refs);
	for (rest = buf_slice(&s->refs); oplog_next_ref(&rest, &ref); s->count++) {
		buf_add_slice(&s->keys, key);
		BUF_ADD(&s->keys, ".");
		buf_add_slice(&s->keys, ref.id);
	}
	s->list = xcalloc(s->count, sizeof(*s->list));
	rest = buf_slice(&s->refs);
	for (size_t i = 0; oplog_next_ref(&rest, &ref); i++) {
		size_t n = key.n + 1 + ref.id.n;
		s->list[i].owner = s;
		s->list[i].ref = ref;
		s->list[i].waiter.key = slice_of(buf_slice(&s->keys).p + at, n);
		at += n;
	}
	return s;
}

void segments_destroy(struct segments *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		buf_free(&s->list[i].data);
	free(s->list);
	buf_free(&s->refs);
	buf_free(&s->keys);
	buf_free(&s->failure_line);
	free(s);
}

static void ask(struct segments *s)
{
	while (s->asked < s->count && s->asked - s->answered < CALLS_AT_ONCE) {
		struct segment *segment = &s->list[s->asked++];
		s->call.key = segment->waiter.key;
		s->lanes->host->call(s->lanes->host, &s->call, &segment->waiter);
	}
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct segment *segment = (struct segment *)waiter;
	struct segments *s = segment->owner;

	if (result_failed(r)) {
		segments_keep_failure(r, &s->failed, &s->failure, &s->failure_line);
	} else if (r->status == RESULT_MISS) {
		segment->missing = true;
		s->missing++;
	} else if (r->status == RESULT_HIT) {
		buf_add_slice(&segment->data, r->value);
	}
	s->answered++;
	ask(s);
	if (s->answered == s->count)
		s->done(s);
}

void segments_call(struct segments *s, struct call call, void (*done)(struct segments *segments), void *arg)
{
	assert(s->count > 0);
	s->call = call;
	s->call.server = CALL_ANY_SERVER;
	s->done = done;
	s->arg = arg;
	s->asked = s->answered = s->missing = 0;
	for (size_t i = 0; i < s->count; i++)
		s->list[i].waiter.done = answered;
	ask(s);
}

static void forgotten(struct segments *s)
{
	s->lanes->stats.segments_deleted += s->count - s->missing;
	s->lanes->background--;
	segments_destroy(s);
}

void segments_forget(struct lanes *lanes, struct slice key, struct slice refs)
{
	if (refs.n == 0)
		return;
	lanes->background++;
	segments_call(segments_create(lanes, key, refs), (struct call){ .verb = CALL_DELETE }, forgotten, NULL);
}

static void touched(struct segments *s)
{
	s->lanes->background--;
	segments_destroy(s);
}

void segments_touch(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime)
{
	if (refs.n == 0)
		return;
	lanes->background++;
	segments_call(segments_create(lanes, key, refs), (struct call){ .verb = CALL_TOUCH, .exptime = exptime },
		touched, NULL);
}

/* --- writing --- */

struct write_part {
	struct waiter waiter;
	struct segment_writer *writer;
	size_t size;
	char key[];
};

void segment_writer_init(struct segment_writer *w, struct lanes *lanes, struct slice key, enum oplog_kind kind,
	int64_t exptime, void (*answered_)(struct segment_writer *writer), void *arg)
{
	*w = (struct segment_writer){
		.lanes = lanes, .key = key, .kind = kind, .exptime = exptime, .answered = answered_, .arg = arg
	};
	w->started = lanes->host->now;
	oplog_new_group(kind, &lanes->host->random, w->group);
	large_mark(lanes->host->large, key);
}

void segment_writer_fini(struct segment_writer *w)
{
	assert(w->pending == 0);
	buf_free(&w->refs);
	buf_free(&w->failure_line);
}

static void written(struct waiter *waiter, const struct result *r)
{
	struct write_part *part = (struct write_part *)waiter;
	struct segment_writer *w = part->writer;
	/* Somebody else's item under a name that nobody else has: as good as not written. */
	struct result taken = { .status = RESULT_BUSY, .server = r->server };

	w->pending--;
	if (r->status == RESULT_DONE)
		w->lanes->stats.segments_written++;
	else
		segments_keep_failure(result_failed(r) ? r : &taken, &w->failed, &w->failure, &w->failure_line);
	pool_put(w->lanes->host->pool, part, part->size);
	w->answered(w);
}

/* The number of a list's segment says how many items it has, so each is a group of its own. */
static size_t number_of(struct segment_writer *w, struct slice log)
{
	if (w->kind != OPLOG_LIST)
		return w->count++;
	oplog_new_group(w->kind, &w->lanes->host->random, w->group);
	return oplog_count(log);
}

static void write_one(struct segment_writer *w, struct slice log)
{
	struct host *host = w->lanes->host;
	size_t size = sizeof(struct write_part) + w->key.n + 1 + OPLOG_ID_MAX;
	struct write_part *part = pool_get(host->pool, size);
	struct slice id;
	size_t before, number;

	BUF_ADD(&w->refs, "@");
	before = buf_size(&w->refs);
	number = number_of(w, log);
	oplog_add_id(&w->refs, w->group, number, log.n);
	id = slice_skip(buf_slice(&w->refs), before);
	memcpy(part->key, w->key.p, w->key.n);
	part->key[w->key.n] = '.';
	memcpy(part->key + w->key.n + 1, id.p, id.n);
	part->waiter = (struct waiter){ written, slice_of(part->key, w->key.n + 1 + id.n) };
	part->writer = w;
	part->size = size;
	BUF_ADD(&w->refs, " ");
	w->pending++;
	host->call(host,
		&(struct call){
			.verb = CALL_ADD,
			.server = CALL_ANY_SERVER,
			.key = part->waiter.key,
			.value = log,
			.exptime = w->exptime,
		},
		&part->waiter);
}

size_t segment_writer_add(struct segment_writer *w, struct slice log, bool whole)
{
	size_t most = w->lanes->host->options->segment_size, taken = 0, n;

	while (log.n - taken > (whole ? 0 : most)) {
		n = oplog_cut(slice_skip(log, taken), most);
		write_one(w, slice_of(log.p + taken, n));
		taken += n;
	}
	return taken;
}

/* What the segments have left by now. */
static int64_t expected_ttl(const struct segment_writer *w)
{
	const struct host *host = w->lanes->host;

	if (w->exptime == 0)
		return TTL_NEVER;
	if (lane_is_date(w->exptime))
		return w->exptime - host->unix_time;
	return w->exptime - (int64_t)((host->now - w->started) / 1000);
}

void segment_writer_follow(const struct segment_writer *w, int64_t ttl)
{
	enum { NEAR = 2 };
	int64_t expected = expected_ttl(w), exptime;
	bool same = expected == ttl || (expected != TTL_NEVER && ttl != TTL_NEVER && llabs(expected - ttl) <= NEAR);

	if (!same && lane_exptime(w->lanes->host, ttl, &exptime))
		segments_touch(w->lanes, w->key, buf_slice(&w->refs), exptime);
}
