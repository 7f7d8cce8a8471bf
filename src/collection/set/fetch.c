/*
 * Reading a set, once for all the reads of the batch:
 *
 *     cached? -> ask for the cas id alone -> the same: are all segments still there? -> serve it
 *                                         -> another: fetch
 *     fetch the base -> no segments: fold, serve
 *                    -> segments: fetch them all -> fold, serve
 *                                                -> one is missing: fetch the base again
 *
 * A missing segment means that a compaction has just replaced it, and then the base is another one by now. Where the base is
 * still the same the segment was evicted: the set is not whole any more, so it counts as missing, and its base is removed so
 * that it can be loaded anew.
 */
#include <stdlib.h>

#include "collection/text/fold.h"
#include "collection/lane.h"
#include "collection/segments.h"
#include "util/alloc.h"

/* Sets smaller than this are folded faster than looked up. */
enum { CACHE_LEAST = 512 };

struct fetch {
	struct buf base;
	struct result read; /* about the base */
	struct segments *segments;
	struct lane_broken broken;
	unsigned checks; /* of a cached view that are under way: its base, and its segments */
	bool failed;
	struct result failure;
	struct buf failure_line;
};

static void fetch_base(struct lane *lane);

static void end_fetch(struct lane *lane)
{
	struct fetch *f = lane->work;

	lane->work = NULL;
	if (!f)
		return;
	segments_destroy(f->segments);
	buf_free(&f->base);
	buf_free(&f->failure_line);
	free(f);
}

static void finish(struct lane *lane, enum outcome_status status)
{
	end_fetch(lane);
	lane_finish(lane, status);
}

/* Reads that find much waste have it cleared away, behind the reply. */
static bool wants_compaction(const struct lane *lane, const struct set_view *view)
{
	const struct host *host = lane_host(lane);

	return view->base_bytes > 2 * host->options->base_size ||
		(view->base_bytes >= CACHE_LEAST &&
			view->waste > rules_collection(host->rules, lane->waiter.key)->compact_waste);
}

static bool is_pop(const struct lane *lane)
{
	const struct op *op = STAILQ_FIRST(&lane->batch);

	return op && op->kind == OP_POP;
}

static void serve(struct lane *lane, struct set_view *view, struct slice base, const struct result *r)
{
	struct outcome outcome = { .status = OUTCOME_DONE, .view = view, .result = r };

	if (wants_compaction(lane, view) && r->ttl != TTL_UNKNOWN)
		lane_tend(lane);
	if (is_pop(lane))
		pop_choose(lane, view, base, r);
	else
		lane_end_all(lane, &outcome);
}

/* A pop is still to be written, a read is done. */
static void go_on(struct lane *lane)
{
	end_fetch(lane);
	if (is_pop(lane))
		pop_commit(lane);
	else
		lane_next(lane);
}

static void serve_cached(struct lane *lane, struct cache_entry *entry, const struct result *r)
{
	lane->lanes->stats.cache_hits++;
	entry->restless = false;
	serve(lane, &entry->view, r->value, r);
	cache_grown(lane->lanes->cache, entry);
	go_on(lane);
}

static bool is_current(const struct cache_entry *entry, const struct result *r)
{
	return entry && r->cas && entry->view.cas == r->cas && entry->view.connection == r->connection;
}

/* What was put before the references is older than all else, so of it only additions count. */
static bool fold_head(struct fold *fold, struct slice log)
{
	struct fold head = { .seed = fold->seed };
	bool good = fold_log(&head, log);

	for (size_t i = 0; i < head.member_count && good; i++) {
		if (head.members[i].live)
			fold_add(fold, slice_of(head.members[i].p, head.members[i].n));
	}
	fold->tokens += head.tokens;
	fold_free(&head);
	return good;
}

/* The members, from the logs of the base and from segments, of which deltas and log have the last word over clean ones. */
static bool build(struct lane *lane, const struct oplog_base *base, struct segments *segments, struct set_view *view)
{
	struct fold fold = { .seed = lane_host(lane)->seed };
	bool good = base->head.n == 0 || fold_head(&fold, base->head);
	size_t head_tokens = fold.tokens;

	view->roster.seed = fold.seed;
	for (size_t i = 0; segments && i < segments->count && good; i++) {
		struct slice data = buf_slice(&segments->list[i].data);
		view->segment_bytes += data.n;
		if (!segments->list[i].ref.clean)
			good = fold_log(&fold, oplog_window(data, &segments->list[i].ref));
	}
	size_t delta_tokens = fold.tokens, mentioned = fold_delta_size(&fold);
	good = good && fold_log(&fold, base->log);
	for (size_t i = 0; segments && i < segments->count && good; i++) {
		if (segments->list[i].ref.clean)
			good = roster_add_clean(&view->roster, buf_slice(&segments->list[i].data), &fold);
	}
	if (good) {
		roster_add_fold(&view->roster, &fold);
		size_t need = segments ? fold_delta_size(&fold) - mentioned : fold_log_size(&fold);
		view->tokens = fold.tokens - delta_tokens + head_tokens;
		/* To a list nothing that is said again is waste. */
		if (base->log.n && !lane_is_list(lane, base))
			view->waste = 1.0 - (double)need / (double)base->log.n;
	}
	fold_free(&fold);
	return good;
}

static void serve_built(struct lane *lane, struct slice value, const struct oplog_base *base, struct segments *segments,
	const struct result *r)
{
	struct set_view view = { .cas = r->cas, .connection = r->connection };
	struct cache *cache = lane->lanes->cache;
	struct cache_entry *entry = NULL;

	if (!build(lane, base, segments, &view)) {
		set_view_free(&view);
		lane->lanes->stats.corrupt_values++;
		finish(lane, OUTCOME_CORRUPT);
		return;
	}
	view.base_bytes = r->size;
	if (segments) {
		view.segments = segments->count;
		buf_add_slice(&view.refs, buf_slice(&segments->refs));
	}
	if (r->cas && r->size + view.segment_bytes >= CACHE_LEAST)
		entry = cache_store(cache, lane->waiter.key, &view);
	serve(lane, entry ? &entry->view : &view, value, r);
	if (entry)
		cache_grown(cache, entry);
	set_view_free(&view);
	go_on(lane);
}

/* --- segments --- */

static void fetch_again(struct lane *lane)
{
	if (++lane->attempts <= LANE_ATTEMPTS)
		fetch_base(lane);
	else
		finish(lane, OUTCOME_BUSY);
}

static void removed(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE) {
		lane->lanes->stats.incomplete_sets++;
		finish(lane, OUTCOME_MISSING);
	} else if (result_failed(r)) {
		end_fetch(lane);
		lane_finish_failed(lane, r);
	} else {
		fetch_again(lane);
	}
}

/* Whether a call on all segments found them; else what follows from that is done. */
static bool all_there(struct lane *lane, const struct segments *segments)
{
	struct fetch *f = lane->work;

	if (segments->failed) {
		struct outcome failed = { .status = OUTCOME_FAILED, .result = &segments->failure };
		lane_end_all(lane, &failed);
		end_fetch(lane);
		lane_next(lane);
		return false;
	}
	if (segments->missing) {
		lane_note_broken(&f->broken, &f->read);
		fetch_again(lane);
		return false;
	}
	return true;
}

/* The same base as when it was last found not to be whole. */
static bool is_known_broken(const struct lane *lane, const struct result *r)
{
	const struct fetch *f = lane->work;

	return f && lane_is_broken(&f->broken, r);
}

static struct fetch *remember(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;

	if (!f)
		f = lane->work = xcalloc(1, sizeof(*f));
	segments_destroy(f->segments);
	f->segments = NULL;
	buf_consume(&f->base, buf_size(&f->base));
	buf_add_slice(&f->base, r->value);
	f->read = *r;
	f->read.line = slice_of("", 0);
	f->read.value = buf_slice(&f->base);
	return f;
}

static void segments_present(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct cache_entry *entry = cache_find(lane->lanes->cache, lane->waiter.key);
	struct fetch *f = lane->work;

	if (!all_there(lane, segments))
		return;
	if (is_current(entry, &f->read))
		serve_cached(lane, entry, &f->read);
	else
		fetch_base(lane);
}

/* The segments are asked about too, which also tells the server that they are in use. */
static void use_cached(struct lane *lane, struct cache_entry *entry, const struct result *r)
{
	struct fetch *f;

	if (entry->view.segments == 0) {
		serve_cached(lane, entry, r);
		return;
	}
	f = remember(lane, r);
	f->segments = segments_create(lane->lanes, lane->waiter.key, buf_slice(&entry->view.refs));
	segments_call(f->segments, (struct call){ .verb = CALL_GET }, segments_present, lane);
}

static void segments_fetched(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct fetch *f = lane->work;
	struct oplog_base base;

	if (all_there(lane, segments)) {
		(void)oplog_split(buf_slice(&f->base), &base);
		serve_built(lane, buf_slice(&f->base), &base, segments, &f->read);
	}
}

static void fetch_segments(struct lane *lane, const struct result *r, const struct oplog_base *base)
{
	struct fetch *f;

	if (is_known_broken(lane, r)) {
		lane_expire_base(lane, r, removed);
		return;
	}
	f = remember(lane, r);
	f->segments = segments_create(lane->lanes, lane->waiter.key, base->refs);
	segments_call(f->segments, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, segments_fetched, lane);
}

/* --- the base --- */

static void fetched(struct lane *lane, const struct result *r)
{
	struct cache_entry *entry = cache_find(lane->lanes->cache, lane->waiter.key);
	struct oplog_base base;

	if (r->status == RESULT_MISS) {
		if (entry)
			cache_drop(lane->lanes->cache, entry);
		finish(lane, OUTCOME_MISSING);
	} else if (r->status != RESULT_HIT) {
		end_fetch(lane);
		lane_finish_failed(lane, r);
	} else if (is_current(entry, r) && !is_known_broken(lane, r)) {
		use_cached(lane, entry, r);
	} else if (!oplog_split(r->value, &base)) {
		lane->lanes->stats.corrupt_values++;
		finish(lane, OUTCOME_CORRUPT);
	} else if (base.ref_count) {
		fetch_segments(lane, r, &base);
	} else {
		serve_built(lane, r->value, &base, NULL, r);
	}
}

static void fetch_base(struct lane *lane)
{
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL }, fetched);
}

static void validated(struct lane *lane, const struct result *r)
{
	struct cache_entry *entry = cache_find(lane->lanes->cache, lane->waiter.key);

	if (r->status == RESULT_HIT && !is_current(entry, r)) {
		if (entry)
			entry->restless = true;
		fetch_base(lane);
	} else {
		fetched(lane, r);
	}
}

/* --- a cached view of a large set: base and segments are asked about at once --- */

static void checked(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct cache_entry *entry = cache_find(lane->lanes->cache, lane->waiter.key);

	if (--f->checks > 0)
		return;
	if (f->failed) {
		lane_end_all(lane, &(struct outcome){ .status = OUTCOME_FAILED, .result = &f->failure });
		end_fetch(lane);
		lane_next(lane);
	} else if (f->read.status == RESULT_MISS) {
		fetched(lane, &f->read);
	} else if (!is_current(entry, &f->read)) {
		if (entry)
			entry->restless = true;
		fetch_base(lane);
	} else if (all_there(lane, f->segments)) {
		serve_cached(lane, entry, &f->read);
	}
}

static void base_checked(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;

	f->read = *r;
	f->read.value = f->read.line = slice_of("", 0);
	if (result_failed(r))
		segments_keep_failure(r, &f->failed, &f->failure, &f->failure_line);
	checked(lane);
}

static void segments_checked(struct segments *segments)
{
	checked(segments->arg);
}

static void check_large(struct lane *lane, const struct cache_entry *entry)
{
	struct fetch *f = lane->work = xcalloc(1, sizeof(*f));

	f->checks = 2;
	f->segments = segments_create(lane->lanes, lane->waiter.key, buf_slice(&entry->view.refs));
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_CAS | WANT_TTL }, base_checked);
	segments_call(f->segments, (struct call){ .verb = CALL_GET }, segments_checked, lane);
}

void fetch_start(struct lane *lane)
{
	struct cache_entry *entry = cache_find(lane->lanes->cache, lane->waiter.key);

	lane_count_reads(lane);
	if (entry && !entry->restless && !is_pop(lane) && entry->view.segments)
		check_large(lane, entry);
	else if (entry && !entry->restless && !is_pop(lane))
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_CAS | WANT_TTL }, validated);
	else
		fetch_base(lane);
}
