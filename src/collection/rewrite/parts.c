#include "collection/rewrite/parts.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/large.h"
#include "collection/text/fences.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "util/alloc.h"

enum { CALLS_AT_ONCE = 128 };

/* Makes the list of the parts in s->ids. */
static void make_list(struct parts *s, struct slice key)
{
	struct slice rest, id;
	size_t at = 0;

	large_mark(s->lanes->env->large, key);
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
}

struct parts *parts_create(struct lanes *lanes, struct slice key, struct slice ids)
{
	struct parts *s = xcalloc(1, sizeof(*s));

	s->lanes = lanes;
	buf_add_slice(&s->ids, ids);
	make_list(s, key);
	return s;
}

struct slice parts_key(const struct parts *s)
{
	return slice_of(s->list[0].waiter.key.p, s->list[0].waiter.key.n - s->list[0].id.n - 1);
}

static bool refs_of_list(struct slice refs)
{
	return refs.n > 1 && (refs.p[1] == (char)OPLOG_LIST || refs.p[1] == (char)OPLOG_OLD_LIST);
}

/*
 * Appends the ids in `refs`, each followed by a space: the ids of segments, or of runs without
 * the tables of their indexes.
 */
static void add_ids(struct slice refs, struct buf *out)
{
	bool list = refs_of_list(refs);
	struct oplog_ref ref;
	struct oplog_run run;

	while (list ? oplog_next_ref(&refs, &ref) : oplog_next_run(&refs, &run))
		buf_add_word(out, list ? ref.id : run.id);
}

struct parts *parts_create_of_list(struct lanes *lanes, struct slice key, struct slice refs)
{
	struct buf ids = BUF_EMPTY;
	struct oplog_ref ref;
	struct parts *s;

	add_ids(refs, &ids);
	s = parts_create(lanes, key, buf_slice(&ids));
	for (size_t i = 0; oplog_next_ref(&refs, &ref); i++)
		s->list[i].check = ref.check;
	buf_free(&ids);
	return s;
}

void parts_destroy(struct parts *s)
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

static void call_more(struct parts *s)
{
	while (s->asked < s->count && s->asked - s->answered < CALLS_AT_ONCE) {
		struct part *part = &s->list[s->asked++];
		s->call.key = part->waiter.key;
		s->lanes->env->call(s->lanes->env, &s->call, &part->waiter);
	}
}

uint64_t part_missing_on(const struct part *part)
{
	return part_key_is_at_base(part->waiter.key) ? part->connection : 0;
}

static void note_missing(struct part *part)
{
	uint64_t on = part_missing_on(part);

	part->missing = true;
	part->owner->missing++;
	if (on)
		part->owner->missing_on = on;
}

static void parts_on_answer(struct waiter *waiter, const struct result *r)
{
	struct part *part = (struct part *)waiter;
	struct parts *s = part->owner;

	part->connection = r->connection;
	if (result_failed(r)) {
		failure_keep(&s->failure, r);
	} else if (r->status == RESULT_MISS ||
		(r->status == RESULT_HIT && !oplog_matches(part->check, r->value))) {
		note_missing(part);
	} else if (r->status == RESULT_HIT) {
		buf_add_slice(&part->data, r->value);
	}
	s->answered++;
	call_more(s);
	if (s->answered == s->count)
		s->done(s);
}

void parts_call(struct parts *s, struct call call, void (*done)(struct parts *parts), void *arg)
{
	assert(s->count > 0);
	s->call = call;
	s->call.server = CALL_ANY_SERVER;
	s->call.patient = true;
	s->done = done;
	s->arg = arg;
	s->asked = s->answered = s->missing = 0;
	s->missing_on = 0;
	for (size_t i = 0; i < s->count; i++)
		s->list[i].waiter.done = parts_on_answer;
	call_more(s);
}

/*
 * indexes->arg is the object for all parts; it has the ids of the indexes, and of the
 * tables without an index.
 */
static void parts_on_indexes(struct parts *indexes)
{
	struct parts *all = indexes->arg;
	struct fences fences;
	uint64_t missing_on;
	size_t missing;

	all->lanes->background--;
	if (indexes->failure.happened) {
		indexes->arg = all->arg;
		all->done(indexes);
		parts_destroy(all);
		return;
	}
	for (size_t i = 0; i < indexes->count; i++) {
		if (!fences_read(&fences, buf_slice(&indexes->list[i].data))) {
			if (!indexes->list[i].missing)
				note_missing(&indexes->list[i]);
			continue;
		}
		for (size_t t = 0; t < fences.count; t++)
			buf_add_word(&all->ids, slice_of(fences.list[t].id, OPLOG_ID));
		fences_free(&fences);
	}
	make_list(all, parts_key(indexes));
	missing = indexes->missing;
	missing_on = indexes->missing_on;
	parts_destroy(indexes);
	parts_call(all, all->call, all->done, all->arg);
	all->missing = missing;
	all->missing_on = missing_on;
}

void parts_call_all(struct lanes *lanes, struct slice key, struct slice refs, struct call call,
	void (*done)(struct parts *parts), void *arg)
{
	struct parts *all = xmalloc(sizeof(*all));
	struct buf indexes = BUF_EMPTY;
	struct oplog_run run;

	*all = (struct parts){ .lanes = lanes, .call = call, .done = done, .arg = arg };
	add_ids(refs, &all->ids);
	while (!refs_of_list(refs) && oplog_next_run(&refs, &run)) {
		if (run.indexed)
			buf_add_word(&indexes, run.id);
	}
	if (buf_size(&indexes)) {
		lanes->background++;
		parts_call(parts_create(lanes, key, buf_slice(&indexes)),
			(struct call){
				.verb = CALL_GET, .want = WANT_VALUE, .account = call.account },
			parts_on_indexes, all);
	} else {
		make_list(all, key);
		parts_call(all, call, done, arg);
	}
	buf_free(&indexes);
}

/* --- in the background --- */

static void parts_on_end(struct parts *s)
{
	if (s->call.verb == CALL_DELETE && !s->failure.happened)
		s->lanes->stats.segments_deleted += s->count - s->missing;
	s->lanes->background--;
	parts_destroy(s);
}

static void call_behind(struct lanes *lanes, struct slice key, struct slice ids, struct call call)
{
	if (ids.n == 0)
		return;
	lanes->background++;
	parts_call(parts_create(lanes, key, ids), call, parts_on_end, NULL);
}

static void call_all_behind(
	struct lanes *lanes, struct slice key, struct slice refs, struct call call)
{
	if (refs.n == 0)
		return;
	lanes->background++;
	parts_call_all(lanes, key, refs, call, parts_on_end, NULL);
}

void parts_forget(struct lanes *lanes, struct slice key, struct slice ids)
{
	call_behind(lanes, key, ids, (struct call){ .verb = CALL_DELETE });
}

void parts_forget_all(struct lanes *lanes, struct slice key, struct slice refs)
{
	call_all_behind(lanes, key, refs, (struct call){ .verb = CALL_DELETE });
}

static struct call touch_call(const struct env *env, int64_t exptime)
{
	return (struct call){ .verb = CALL_TOUCH, .exptime = ttl_of_part(env, exptime) };
}

void parts_touch_all(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime,
	struct account *account, void (*done)(struct parts *parts), void *arg)
{
	struct call call = touch_call(lanes->env, exptime);

	call.account = account;
	parts_call_all(lanes, key, refs, call, done, arg);
}

/* --- writing --- */

struct part_write {
	struct waiter waiter;
	struct part_writer *writer;
	size_t size;
	char key[];
};

void part_writer_init(struct part_writer *w, struct lanes *lanes, struct slice key, int64_t exptime,
	void (*answered_)(void *arg), void *arg)
{
	*w = (struct part_writer){
		.lanes = lanes, .key = key, .exptime = exptime, .answered = answered_, .arg = arg
	};
	w->started = lanes->env->now;
	w->behind = rules_behind(rules_collection(lanes->env->rules, key));
	large_mark(lanes->env->large, key);
}

void part_writer_fini(struct part_writer *w)
{
	assert(w->pending == 0);
	buf_free(&w->ids);
	failure_free(&w->failure);
}

static void parts_on_written(struct waiter *waiter, const struct result *r)
{
	struct part_write *write = (struct part_write *)waiter;
	struct part_writer *w = write->writer;
	/* Our random id is already taken: the part counts as not written. */
	struct result taken = { .status = RESULT_BUSY, .server = r->server };

	pool_put(w->lanes->env->pool, write, write->size);
	w->pending--;
	if (r->status == RESULT_DONE)
		w->lanes->stats.segments_written++;
	else
		failure_keep(&w->failure, result_failed(r) ? r : &taken);
	w->answered(w->arg);
}

void part_writer_add(struct part_writer *w, struct slice id, struct slice data)
{
	struct env *env = w->lanes->env;
	size_t size = sizeof(struct part_write) + w->key.n + 1 + id.n;
	struct part_write *write = pool_get(env->pool, size);
	char *p = slice_write(write->key, w->key);

	*p++ = '.';
	p = slice_write(p, id);
	write->waiter =
		(struct waiter){ parts_on_written, slice_of(write->key, (size_t)(p - write->key)) };
	write->writer = w;
	write->size = size;
	buf_add_word(&w->ids, id);
	w->pending++;
	lanes_charge(w->lanes, w->key, data.n);
	env->call(env,
		&(struct call){
			.verb = CALL_ADD,
			.expected = (uint32_t)data.n,
			.server = CALL_ANY_SERVER,
			.key = write->waiter.key,
			.value = data,
			.exptime = ttl_of_part(env, w->exptime),
		},
		&write->waiter);
}

/*
 * Returns whether a base that got `exptime` at `started` would now have a time to live that
 * differs from `ttl` by more than 2 seconds.
 */
static bool ttl_differs(const struct part_writer *w, int64_t ttl)
{
	enum { NEAR = 2 };
	const struct env *env = w->lanes->env;
	int64_t expected = w->exptime == 0 ? TTL_NEVER
		: ttl_is_date(w->exptime)  ? w->exptime - env->unix_time
					   : w->exptime - (int64_t)((env->now - w->started) / 1000);

	return expected != ttl &&
		(expected == TTL_NEVER || ttl == TTL_NEVER || llabs(expected - ttl) > NEAR);
}

void part_writer_follow(const struct part_writer *w, int64_t ttl)
{
	int64_t exptime;

	if (ttl_differs(w, ttl) && ttl_exptime(w->lanes->env, ttl, &exptime))
		call_behind(
			w->lanes, w->key, buf_slice(&w->ids), touch_call(w->lanes->env, exptime));
}

void part_writer_forget(const struct part_writer *w)
{
	parts_forget(w->lanes, w->key, buf_slice(&w->ids));
}
