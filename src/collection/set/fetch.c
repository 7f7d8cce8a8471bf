#include "collection/set/fetch.h"

#include "collection/lane/batch.h"
#include "collection/rewrite/base.h"
#include "collection/rewrite/segments.h"
#include "collection/set/presence.h"
#include "util/check.h"

/* A smaller base is read at once instead of comparing its CAS token. */
enum { COMPARE_MIN = 512 };

static lane_step token_read, base_read, removed;
static lane_after reads_done;
static void answer(struct lane *lane);
static void read_list(struct lane *lane);
static void loaded(struct segments *segments), items_checked(struct segments *segments),
	list_read(struct segments *segments);

static void finish(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct fetch *f = lane->work;

	set_view_end_wants(&f->entry->view);
	f->after(lane, status, failure);
}

void fetch_end(struct fetch *f, struct lane *lane, bool drop)
{
	struct cache *cache = lane->lanes->cache;
	struct cache_entry *entry = f->entry;

	segments_destroy(f->segments);
	buf_free(&f->list_base);
	if ((drop || f->is_list) && entry->view.pins == 1) {
		entry->view.pins = 0;
		cache_drop(cache, entry);
	} else {
		cache_close(cache, entry);
	}
}

struct slice fetch_base(const struct fetch *f)
{
	return buf_slice(f->is_list ? &f->list_base : &f->entry->view.base);
}

static bool is_current(const struct set_view *view, const struct result *r)
{
	return view->known && r->cas && view->cas == r->cas && view->connection == r->connection;
}

static void read_base(struct lane *lane)
{
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL }, base_read);
}

void fetch_again(struct lane *lane)
{
	struct fetch *f = lane->work;

	set_view_end_wants(&f->entry->view);
	if (lane_may_retry(lane))
		read_base(lane);
	else
		finish(lane, OUTCOME_BUSY, NULL);
}

static bool should_compare_token(const struct cache_entry *entry)
{
	return entry->view.known && !entry->churning && !entry->suspect && buf_size(&entry->view.base) >= COMPARE_MIN;
}

void fetch_begin(struct fetch *f, struct lane *lane, struct set_request *only, bool fresh, lane_after *after)
{
	lane_count_reads(lane);
	*f = (struct fetch){ .lane = lane, .only = only, .after = after };
	f->entry = cache_open(lane->lanes->cache, lane->waiter.key);
	lane->work = f;
	if (!fresh && should_compare_token(f->entry))
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_CAS | WANT_TTL }, token_read);
	else
		read_base(lane);
}

static void remember(struct fetch *f, const struct result *r)
{
	f->read = *r;
	f->read.value = f->read.line = slice_of("", 0);
}

static void token_read(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;

	if (r->status != RESULT_HIT) {
		base_read(lane, r);
	} else if (is_current(&f->entry->view, r)) {
		lane->lanes->stats.cache_hits++;
		f->entry->churning = false;
		remember(f, r);
		answer(lane);
	} else {
		f->entry->churning = true;
		read_base(lane);
	}
}

/* Whether the base still refers to what was missing. */
static bool is_broken(const struct fetch *f)
{
	const struct set_view *view = &f->entry->view;

	if (f->missing_refs && f->missing_refs == check_of(view->parts.refs))
		return true;
	for (size_t i = 0; f->missing[0] && i < view->run_count; i++) {
		if (memcmp(view->runs[i].id, f->missing, OPLOG_ID) == 0)
			return true;
	}
	return false;
}

static void view_updated(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;

	view->cas = r->cas;
	view->connection = r->connection;
	/* After a lost race the key may hold something else. */
	f->is_list = view->parts.is_list && view->parts.ref_count;
	if (is_broken(f)) {
		base_expire(lane, r, removed);
	} else if (f->is_list) {
		read_list(lane);
	} else if (f->entry->suspect && view->run_count) {
		segments_destroy(f->segments);
		f->segments = NULL;
		segments_call_all(lane->lanes, lane->waiter.key, view->parts.refs, (struct call){ .verb = CALL_GET },
			items_checked, lane);
	} else {
		answer(lane);
	}
}

static void base_read(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	enum oplog_form form;

	if (r->status == RESULT_MISS) {
		finish(lane, OUTCOME_MISSING, NULL);
	} else if (r->status != RESULT_HIT) {
		finish(lane, OUTCOME_FAILED, r);
	} else {
		remember(f, r);
		if (is_current(&f->entry->view, r)) {
			lane->lanes->stats.cache_hits++;
			f->entry->churning = false;
		}
		form = set_view_update(&f->entry->view, r->value);
		if (form == OPLOG_GOOD)
			view_updated(lane, r);
		else if (form == OPLOG_OUTDATED)
			base_expire(lane, r, removed);
		else
			finish(lane, lane_unreadable(lane, form), NULL);
	}
}

static void load(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	struct buf ids = BUF_EMPTY;

	for (size_t i = 0; i < view->want_count; i++) {
		buf_add_slice(&ids, set_view_want_id(view, &view->wants[i]));
		BUF_ADD(&ids, " ");
	}
	segments_destroy(f->segments);
	f->segments = segments_create(lane->lanes, lane->waiter.key, buf_slice(&ids));
	buf_free(&ids);
	segments_call(f->segments, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, loaded, lane);
}

/* A read that finds a base too large, or with much waste, requests its compaction. */
static void request_compaction(struct lane *lane, const struct set_view *view)
{
	size_t size = buf_size(&view->base);

	lane_grew(lane, size);
	if (!view->parts.is_list && size >= COMPARE_MIN && set_view_waste(view) > lane->rule->compact_waste)
		lane_request_compaction(lane);
}

/* A removal of what an older run has cancels two entries. Those of what was never added are too few to matter. */
static void measure(struct lane *lane)
{
	const struct set_view *view = &((struct fetch *)lane->work)->entry->view;
	uint64_t members = view->head.live + view->overlay.live, gone = 0, bytes = buf_size(&view->base);

	for (size_t i = 0; i < view->run_count; i++) {
		members += view->runs[i].ref.entries;
		gone += 2 * view->runs[i].ref.removals;
		bytes += view->runs[i].ref.bytes;
	}
	lane_measured(lane, members > gone ? members - gone : 0, bytes);
}

static void answered(struct lane *lane)
{
	struct fetch *f = lane->work;

	if (!f->is_list && f->read.ttl != TTL_UNKNOWN)
		request_compaction(lane, &f->entry->view);
	if (!f->is_list && lane_is_measured(lane))
		measure(lane);
	presence_consider(lane->lanes, lane->waiter.key, f->entry);
	finish(lane, OUTCOME_DONE, NULL);
}

static void resumed(struct waiter *waiter, const struct result *r)
{
	struct fetch *f = (struct fetch *)((char *)waiter - offsetof(struct fetch, pause));

	f->resume(f->lane, r);
}

/* Calls `resume` after ready I/O; false if there is none to wait for. */
static bool pause(struct fetch *f, lane_step *resume)
{
	struct env *env = lane_env(f->lane);

	if (!env->later)
		return false;
	f->pause.done = resumed;
	f->resume = resume;
	env->later(env, &f->pause, 0);
	return true;
}

static bool answer_slice(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	bool all = true;
	struct op *op;

	if (f->only)
		return set_answer(view, f->only);
	STAILQ_FOREACH(op, &lane->batch, link)
		all &= set_answer(view, op->set);
	return all;
}

static void next_slice(struct lane *lane, const struct result *r)
{
	(void)r;
	answer(lane);
}

static void answer(struct lane *lane)
{
	struct fetch *f = lane->work;
	const struct set_view *view = &f->entry->view;
	uint64_t slices = view->slices;

	while (!answer_slice(lane)) {
		if (view->want_count) {
			load(lane);
			return;
		}
		/* The next call would come no further. The view is dropped at the end. */
		if (view->slices == slices) {
			finish(lane, lane_unreadable(lane, OPLOG_CORRUPT), NULL);
			return;
		}
		slices = view->slices;
		if (pause(f, next_slice))
			return;
	}
	answered(lane);
}

static void take_loaded(struct lane *lane, const struct result *r)
{
	enum { AT_ONCE = 8 /* tables, which takes half a millisecond */ };
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;

	(void)r;
	for (size_t n = 0; f->checked < f->segments->count; n++, f->checked++) {
		struct segment *segment = &f->segments->list[f->checked];
		const struct set_want *want = &view->wants[f->checked];
		if (n == AT_ONCE && pause(f, take_loaded))
			return;
		if (!segment->missing && set_view_load(view, want, buf_slice(&segment->data)))
			continue;
		memcpy(f->missing, view->runs[want->run].id, OPLOG_ID);
		fetch_again(lane);
		return;
	}
	set_view_end_wants(view);
	answer(lane);
}

static void loaded(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct fetch *f = lane->work;

	f->checked = 0;
	if (segments->failure.happened)
		finish(lane, OUTCOME_FAILED, &segments->failure.result);
	else
		take_loaded(lane, NULL);
}

static void removed(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE) {
		lane->lanes->stats.incomplete_sets++;
		finish(lane, OUTCOME_MISSING, NULL);
	} else if (result_failed(r)) {
		finish(lane, OUTCOME_FAILED, r);
	} else {
		fetch_again(lane);
	}
}

static void items_checked(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct fetch *f = lane->work;

	f->segments = segments;
	if (segments->failure.happened) {
		finish(lane, OUTCOME_FAILED, &segments->failure.result);
	} else if (segments->missing) {
		f->missing_refs = check_of(f->entry->view.parts.refs);
		fetch_again(lane);
	} else {
		f->entry->suspect = false;
		answer(lane);
	}
}

static void read_list(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct buf ids = BUF_EMPTY;

	segments_ids(f->entry->view.parts.refs, &ids);
	segments_destroy(f->segments);
	f->segments = segments_create(lane->lanes, lane->waiter.key, buf_slice(&ids));
	buf_free(&ids);
	segments_call(f->segments, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, list_read, lane);
}

/* Whether somebody else has written over a segment. */
static bool is_changed(const struct segments *segments, struct slice refs)
{
	struct oplog_ref ref;

	for (size_t i = 0; i < segments->count && oplog_next_ref(&refs, &ref); i++) {
		if (!oplog_matches(ref.check, buf_slice(&segments->list[i].data)))
			return true;
	}
	return false;
}

static void list_read(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	struct slice refs = view->parts.refs;
	struct buf log = BUF_EMPTY;
	struct oplog_ref ref;
	bool good;

	if (segments->failure.happened) {
		finish(lane, OUTCOME_FAILED, &segments->failure.result);
		return;
	}
	if (segments->missing || is_changed(segments, refs)) {
		f->missing_refs = check_of(refs);
		fetch_again(lane);
		return;
	}
	buf_add_slice(&log, view->parts.head);
	f->segment_bytes = 0;
	for (size_t i = 0; i < segments->count && oplog_next_ref(&refs, &ref); i++) {
		buf_add_slice(&log, oplog_window(buf_slice(&segments->list[i].data), &ref));
		f->segment_bytes += buf_size(&segments->list[i].data);
	}
	buf_add_slice(&log, view->parts.log);
	buf_free(&f->list_base);
	f->list_base = view->base;
	view->base = BUF_EMPTY;
	good = set_view_take_log(view, buf_slice(&log));
	buf_free(&log);
	if (good)
		answer(lane);
	else
		finish(lane, lane_unreadable(lane, OPLOG_CORRUPT), NULL);
}

void fetch_start(struct lane *lane)
{
	fetch_begin(pool_get(lane_env(lane)->pool, sizeof(struct fetch)), lane, NULL, false, reads_done);
}

/* The view of a list was made of one log: describes the stored form instead. */
static void describe_list(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct op *op;

	STAILQ_FOREACH(op, &lane->batch, link) {
		struct set_info *info = &op->set->info;
		if (op->set->verb != SET_INFO)
			continue;
		info->table_bytes = f->segment_bytes;
		info->tables = f->segments->count;
		info->base_bytes = buf_size(&f->list_base);
	}
}

static void reads_done(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct fetch *f = lane->work;
	struct outcome outcome = { .status = status, .result = status == OUTCOME_DONE ? &f->read : failure };

	if (status == OUTCOME_DONE && f->is_list)
		describe_list(lane);
	lane_end_all(lane, &outcome);
	lane->work = NULL;
	fetch_end(f, lane, status != OUTCOME_DONE && status != OUTCOME_FAILED);
	pool_put(lane_env(lane)->pool, f, sizeof(*f));
	lane_next(lane);
}
