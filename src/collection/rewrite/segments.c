#include "collection/rewrite/segments.h"

#include "collection/ttl.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/large.h"
#include "collection/text/fences.h"
#include "util/alloc.h"
#include "util/check.h"

enum { CALLS_AT_ONCE = 128 };

struct segments *segments_create(struct lanes *lanes, struct slice key, struct slice ids)
{
	struct segments *s = xcalloc(1, sizeof(*s));
	struct slice rest, id;
	size_t at = 0;

	s->lanes = lanes;
	large_mark(lanes->env->large, key);
	buf_add_slice(&s->ids, ids);
	for (rest = buf_slice(&s->ids); (id = slice_token(&rest)).n; s->count++) {
		buf_add_slice(&s->keys, key);
		BUF_ADD(&s->keys, ".");
		buf_add_slice(&s->keys, id);
	}
	s->list = xcalloc(s->count, sizeof(*s->list));
	rest = buf_slice(&s->ids);
	for (size_t i = 0; (id = slice_token(&rest)).n; i++) {
		size_t n = key.n + 1 + id.n;
		s->list[i].owner = s;
		s->list[i].id = id;
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
	buf_free(&s->ids);
	buf_free(&s->keys);
	failure_free(&s->failure);
	free(s);
}

static void ask(struct segments *s)
{
	while (s->asked < s->count && s->asked - s->answered < CALLS_AT_ONCE) {
		struct segment *segment = &s->list[s->asked++];
		s->call.key = segment->waiter.key;
		s->lanes->env->call(s->lanes->env, &s->call, &segment->waiter);
	}
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct segment *segment = (struct segment *)waiter;
	struct segments *s = segment->owner;

	if (result_failed(r)) {
		failure_keep(&s->failure, r);
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

static bool refs_of_list(struct slice refs)
{
	return refs.n > 1 && refs.p[1] == (char)OPLOG_LIST;
}

void segments_ids(struct slice refs, struct buf *out)
{
	bool list = refs_of_list(refs);
	struct oplog_ref ref;
	struct oplog_run run;

	while (list ? oplog_next_ref(&refs, &ref) : oplog_next_run(&refs, &run)) {
		buf_add_slice(out, list ? ref.id : run.id);
		BUF_ADD(out, " ");
	}
}

/* A call on the items of a set, whose indexes are read first. */
struct segments_of_set {
	struct lanes *lanes;
	struct call call;
	void (*done)(struct segments *segments);
	void *arg;
	struct buf ids; /* of all items that were found */
	bool incomplete;
	size_t key_size;
	char key[];
};

static void call_all(struct segments_of_set *all)
{
	struct segments *s = segments_create(all->lanes, slice_of(all->key, all->key_size), buf_slice(&all->ids));

	segments_call(s, all->call, all->done, all->arg);
	s->missing = all->incomplete;
	all->lanes->background--;
	buf_free(&all->ids);
	free(all);
}

static void indexes_read(struct segments *indexes)
{
	struct segments_of_set *all = indexes->arg;
	struct fences fences;

	if (indexes->failure.happened) {
		indexes->arg = all->arg;
		all->lanes->background--;
		all->done(indexes);
		buf_free(&all->ids);
		free(all);
		return;
	}
	for (size_t i = 0; i < indexes->count; i++) {
		if (!fences_read(&fences, buf_slice(&indexes->list[i].data))) {
			all->incomplete = true;
			continue;
		}
		for (size_t t = 0; t < fences.count; t++) {
			buf_add(&all->ids, fences.list[t].id, OPLOG_ID);
			BUF_ADD(&all->ids, " ");
		}
		fences_free(&fences);
	}
	segments_destroy(indexes);
	call_all(all);
}

void segments_call_all(struct lanes *lanes, struct slice key, struct slice refs, struct call call,
	void (*done)(struct segments *segments), void *arg)
{
	struct segments_of_set *all = xcalloc(1, sizeof(*all) + key.n);
	struct buf indexes = BUF_EMPTY;
	struct oplog_run run;

	all->lanes = lanes;
	all->call = call;
	all->done = done;
	all->arg = arg;
	all->key_size = key.n;
	memcpy(all->key, key.p, key.n);
	lanes->background++;
	segments_ids(refs, &all->ids);
	while (!refs_of_list(refs) && oplog_next_run(&refs, &run)) {
		if (!run.indexed)
			continue;
		buf_add_slice(&indexes, run.id);
		BUF_ADD(&indexes, " ");
	}
	if (buf_size(&indexes))
		segments_call(segments_create(lanes, key, buf_slice(&indexes)),
			(struct call){ .verb = CALL_GET, .want = WANT_VALUE }, indexes_read, all);
	else
		call_all(all);
	buf_free(&indexes);
}

static void forgotten(struct segments *s)
{
	s->lanes->stats.segments_deleted += s->failure.happened ? 0 : s->count - s->missing;
	s->lanes->background--;
	segments_destroy(s);
}

void segments_forget(struct lanes *lanes, struct slice key, struct slice ids)
{
	if (ids.n == 0)
		return;
	lanes->background++;
	segments_call(segments_create(lanes, key, ids), (struct call){ .verb = CALL_DELETE }, forgotten, NULL);
}

void segments_forget_all(struct lanes *lanes, struct slice key, struct slice refs)
{
	if (refs.n == 0)
		return;
	lanes->background++;
	segments_call_all(lanes, key, refs, (struct call){ .verb = CALL_DELETE }, forgotten, NULL);
}

static void touched(struct segments *s)
{
	s->lanes->background--;
	segments_destroy(s);
}

void segments_touch(struct lanes *lanes, struct slice key, struct slice ids, int64_t exptime)
{
	if (ids.n == 0)
		return;
	lanes->background++;
	segments_call(segments_create(lanes, key, ids), (struct call){ .verb = CALL_TOUCH, .exptime = exptime },
		touched, NULL);
}

void segments_touch_all(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime)
{
	if (refs.n == 0)
		return;
	lanes->background++;
	segments_call_all(lanes, key, refs, (struct call){ .verb = CALL_TOUCH, .exptime = exptime }, touched, NULL);
}

static void item_written(struct waiter *waiter, const struct result *r)
{
	struct item_write *write = (struct item_write *)waiter;
	struct lanes *lanes = write->lanes;
	/* Our random id is already taken: treat the segment as not written. */
	struct result taken = { .status = RESULT_BUSY, .server = r->server };

	if (r->status == RESULT_DONE)
		lanes->stats.segments_written++;
	write->answered(write->arg, r->status == RESULT_DONE ? NULL : result_failed(r) ? r : &taken);
	pool_put(lanes->env->pool, write, write->size);
}

void segments_write(struct lanes *lanes, struct slice key, struct slice id, struct slice data, int64_t exptime,
	void (*answered_)(void *arg, const struct result *failure), void *arg)
{
	struct env *env = lanes->env;
	size_t size = sizeof(struct item_write) + key.n + 1 + id.n;
	struct item_write *write = pool_get(env->pool, size);

	memcpy(write->key, key.p, key.n);
	write->key[key.n] = '.';
	memcpy(write->key + key.n + 1, id.p, id.n);
	write->waiter = (struct waiter){ item_written, slice_of(write->key, key.n + 1 + id.n) };
	write->lanes = lanes;
	write->answered = answered_;
	write->arg = arg;
	write->size = size;
	env->call(env,
		&(struct call){
			.verb = CALL_ADD,
			.server = CALL_ANY_SERVER,
			.key = write->waiter.key,
			.value = data,
			.exptime = exptime,
		},
		&write->waiter);
}

bool segments_ttl_differs(const struct lanes *lanes, int64_t exptime, uint64_t started, int64_t ttl)
{
	enum { NEAR = 2 };
	const struct env *env = lanes->env;
	int64_t expected = exptime == 0 ? TTL_NEVER
		: ttl_is_date(exptime)  ? exptime - env->unix_time
					: exptime - (int64_t)((env->now - started) / 1000);

	return expected != ttl && (expected == TTL_NEVER || ttl == TTL_NEVER || llabs(expected - ttl) > NEAR);
}

void segment_writer_init(struct segment_writer *w, struct lanes *lanes, struct slice key, int64_t exptime,
	void (*answered_)(struct segment_writer *writer), void *arg)
{
	*w = (struct segment_writer){
		.lanes = lanes, .key = key, .exptime = exptime, .answered = answered_, .arg = arg
	};
	w->started = lanes->env->now;
	large_mark(lanes->env->large, key);
}

void segment_writer_fini(struct segment_writer *w)
{
	assert(w->pending == 0);
	buf_free(&w->refs);
	failure_free(&w->failure);
}

static void written(void *arg, const struct result *failure)
{
	struct segment_writer *w = arg;

	w->pending--;
	if (failure)
		failure_keep(&w->failure, failure);
	w->answered(w);
}

/* The number in a segment's id is its count of items. */
static void write_one(struct segment_writer *w, struct slice log)
{
	struct oplog_ref ref = { .check = { true, check_of(log) } };
	struct buf id = BUF_EMPTY;
	char group[OPLOG_ID];

	oplog_new_id(OPLOG_LIST, &w->lanes->env->random, group);
	oplog_add_id(&id, group, oplog_count(log), log.n);
	ref.id = buf_slice(&id);
	oplog_add_ref(&w->refs, &ref);
	w->pending++;
	segments_write(w->lanes, w->key, ref.id, log, w->exptime, written, w);
	buf_free(&id);
}

void segment_writer_add(struct segment_writer *w, struct slice log)
{
	while (log.n) {
		size_t n = oplog_cut(log, w->lanes->env->options->segment_size);
		write_one(w, slice_of(log.p, n));
		log = slice_skip(log, n);
	}
}

void segment_writer_follow(const struct segment_writer *w, int64_t ttl)
{
	int64_t exptime;

	if (segments_ttl_differs(w->lanes, w->exptime, w->started, ttl) && ttl_exptime(w->lanes->env, ttl, &exptime))
		segments_touch_all(w->lanes, w->key, buf_slice(&w->refs), exptime);
}
