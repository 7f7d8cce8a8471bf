/*
 * Reading a set, once for all the reads of the batch:
 *
 *     a view that is known -> ask for the cas id alone -> the same: answer
 *                                                      -> another: read the base
 *     read the base -> the view follows -> answer -> what is wanted of runs is loaded -> answer
 *                                                    -> it is gone: read the base again
 *
 * An item that is gone was replaced by a merge, and then the base refers to another run by now. Where it still refers to the
 * same one the item was evicted: the set is not whole any more, so it counts as missing, and its base is removed so that it
 * can be loaded again. Items that no read needs are asked for now and then behind the replies, which keeps them as recently
 * used as the base.
 *
 * To set commands a list is the set of its items: all of it is read.
 */
#include <stdlib.h>

#include "collection/lane.h"
#include "collection/segments.h"
#include "collection/set/cache.h"
#include "collection/set/presence.h"
#include "util/alloc.h"
#include "util/check.h"
#include "util/random.h"

/* A base that is smaller is read sooner than asked about. */
enum { ASK_LEAST = 512 };

struct fetch {
	struct cache_entry *entry;
	struct result read; /* about the base, without its slices */
	size_t size;        /* of the base */
	struct segments *segments;
	size_t segment_bytes; /* of a list */
	char lost[OPLOG_ID];  /* the run of which an item was gone; empty for none */
	uint64_t lost_refs;   /* the check of references of which some item was gone; 0 for none */
	bool is_list;         /* the view is of no use to later reads */
	struct set_request taken;
};

static void read_base(struct lane *lane);
static void answer(struct lane *lane);

static bool is_pop(const struct lane *lane)
{
	const struct op *op = lane_first(lane);

	return op && op->kind == OP_POP;
}

/* Ends the machine's own; with `drop` the view goes too. */
static void end_fetch(struct lane *lane, bool drop)
{
	struct fetch *f = lane->work;
	struct cache *cache = lane->lanes->cache;
	struct cache_entry *entry = f->entry;

	lane->work = NULL;
	set_view_end_wants(&entry->view);
	segments_destroy(f->segments);
	set_request_free(&f->taken);
	if ((drop || f->is_list) && entry->view.pins == 1) {
		entry->view.pins = 0;
		cache_drop(cache, entry);
	} else {
		cache_close(cache, entry);
	}
	pool_put(lane_host(lane)->pool, f, sizeof(*f));
}

static void finish(struct lane *lane, enum outcome_status status)
{
	end_fetch(lane, true);
	lane_finish(lane, status);
}

/* The failure may lie in what ends here. */
static void finish_failed(struct lane *lane, const struct result *r)
{
	lane_end_all(lane, &(struct outcome){ .status = OUTCOME_FAILED, .result = r });
	end_fetch(lane, false);
	lane_next(lane);
}

static bool is_current(const struct set_view *view, const struct result *r)
{
	return view->known && r->cas && view->cas == r->cas && view->connection == r->connection;
}

static void read_again(struct lane *lane)
{
	struct fetch *f = lane->work;

	set_view_end_wants(&f->entry->view);
	if (++lane->attempts <= LANE_ATTEMPTS)
		read_base(lane);
	else
		finish(lane, OUTCOME_BUSY);
}

/* --- taking members out, so that no two who do it get the same --- */

static void pop_mended(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;

	(void)r;
	lane_end_all(lane, &(struct outcome){ .status = OUTCOME_DONE, .log = buf_slice(&f->taken.text) });
	end_fetch(lane, false);
	lane_next(lane);
}

/* Another one changed the set: other members are chosen. */
static void pop_again(struct lane *lane)
{
	struct fetch *f = lane->work;

	f->taken.answered = false;
	buf_consume(&f->taken.text, buf_size(&f->taken.text));
	f->taken.random = random_next(&lane_host(lane)->random);
	read_again(lane);
}

static void popped(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE)
		commit_mend_ttl(lane, pop_mended, r);
	else if (result_failed(r))
		finish_failed(lane, r);
	else
		pop_again(lane);
}

/* The removals go behind the log by CAS with the token of the read in which the members were found. */
static void commit_pop(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	struct slice removals = buf_slice(&f->taken.text);
	struct buf *value = &lane_rest(lane)->commit.value;
	int64_t exptime;

	if (removals.n == 0) {
		pop_mended(lane, r);
	} else if (!lane_exptime(lane_host(lane), r->ttl, &exptime)) {
		finish(lane, OUTCOME_BUSY);
	} else {
		buf_consume(value, buf_size(value));
		buf_add_slice(value, buf_slice(&f->entry->view.base));
		buf_add_slice(value, removals);
		commit_cas(lane, buf_slice(value), r, exptime, popped);
	}
}

/* --- the reply --- */

/* Reads that find a base too large, or much waste in it, have it compacted behind the reply. */
static void request_compaction(struct lane *lane, const struct set_view *view)
{
	const struct host *host = lane_host(lane);
	size_t size = buf_size(&view->base);

	lane_grew(lane, size);
	if (!view->parts.is_list && size >= ASK_LEAST &&
		set_view_waste(view) > rules_collection(host->rules, lane->waiter.key)->compact_waste)
		lane_tend(lane);
}

/* The view holds what its segments hold as well. */
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
		info->base_bytes = f->size;
	}
}

static void serve(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct result read = f->read;
	struct outcome outcome = { .status = OUTCOME_DONE, .result = &read };

	if (!f->is_list && read.ttl != TTL_UNKNOWN)
		request_compaction(lane, &f->entry->view);
	presence_consider(lane->lanes, lane->waiter.key, f->entry);
	if (is_pop(lane)) {
		commit_pop(lane, &read);
		return;
	}
	if (f->is_list)
		describe_list(lane);
	lane_end_all(lane, &outcome);
	end_fetch(lane, false);
	lane_next(lane);
}

/* --- what is wanted of runs --- */

static void loaded(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;

	if (segments->failed) {
		finish_failed(lane, &segments->failure);
		return;
	}
	for (size_t i = 0; i < segments->count; i++) {
		struct segment *segment = &segments->list[i];
		const struct set_want *want = &view->wants[i];
		if (!segment->missing && set_view_load(view, want, buf_slice(&segment->data)))
			continue;
		memcpy(f->lost, view->runs[want->run].id, OPLOG_ID);
		read_again(lane);
		return;
	}
	set_view_end_wants(view);
	answer(lane);
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

static void answer(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	bool all = true;
	struct op *op;

	if (is_pop(lane)) {
		all = set_answer(view, &f->taken);
	} else {
		STAILQ_FOREACH(op, &lane->batch, link)
			all &= set_answer(view, op->set);
	}
	if (all)
		serve(lane);
	else
		load(lane);
}

/* --- a set that is not whole --- */

static void removed(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE) {
		lane->lanes->stats.incomplete_sets++;
		finish(lane, OUTCOME_MISSING);
	} else if (result_failed(r)) {
		finish_failed(lane, r);
	} else {
		read_again(lane);
	}
}

/* Whether the base still refers to what was gone when it was read. */
static bool is_broken(const struct fetch *f)
{
	const struct set_view *view = &f->entry->view;

	if (f->lost_refs && f->lost_refs == check_of(view->parts.refs))
		return true;
	for (size_t i = 0; f->lost[0] && i < view->run_count; i++) {
		if (memcmp(view->runs[i].id, f->lost, OPLOG_ID) == 0)
			return true;
	}
	return false;
}

static void suspected(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct fetch *f = lane->work;

	f->segments = segments;
	if (segments->failed) {
		finish_failed(lane, &segments->failure);
	} else if (segments->missing) {
		f->lost_refs = check_of(f->entry->view.parts.refs);
		read_again(lane);
	} else {
		f->entry->suspect = false;
		answer(lane);
	}
}

/* --- a list --- */

static void list_read(struct segments *segments)
{
	struct lane *lane = segments->arg;
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	struct slice refs = view->parts.refs;
	struct buf log = BUF_EMPTY;
	struct oplog_ref ref;
	bool good;

	if (segments->failed) {
		finish_failed(lane, &segments->failure);
		return;
	}
	if (segments->missing) {
		f->lost_refs = check_of(refs);
		read_again(lane);
		return;
	}
	buf_add_slice(&log, view->parts.head);
	f->segment_bytes = 0;
	for (size_t i = 0; i < segments->count && oplog_next_ref(&refs, &ref); i++) {
		buf_add_slice(&log, oplog_window(buf_slice(&segments->list[i].data), &ref));
		f->segment_bytes += buf_size(&segments->list[i].data);
	}
	buf_add_slice(&log, view->parts.log);
	good = set_view_take_log(view, buf_slice(&log));
	buf_free(&log);
	if (good)
		answer(lane);
	else
		finish(lane, lane_unreadable(lane, OPLOG_CORRUPT));
}

static void read_list(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct buf ids = BUF_EMPTY;

	f->is_list = true;
	segments_ids(f->entry->view.parts.refs, &ids);
	segments_destroy(f->segments);
	f->segments = segments_create(lane->lanes, lane->waiter.key, buf_slice(&ids));
	buf_free(&ids);
	segments_call(f->segments, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, list_read, lane);
}

/* --- the base --- */

/* The view knows what the base says. */
static void followed(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;

	view->cas = r->cas;
	view->connection = r->connection;
	if (is_broken(f)) {
		lane_expire_base(lane, r, removed);
	} else if (view->parts.is_list && view->parts.ref_count) {
		read_list(lane);
	} else if (f->entry->suspect && view->run_count) {
		segments_destroy(f->segments);
		f->segments = NULL;
		segments_call_all(lane->lanes, lane->waiter.key, view->parts.refs, (struct call){ .verb = CALL_GET },
			suspected, lane);
	} else {
		answer(lane);
	}
}

static void remember(struct fetch *f, const struct result *r)
{
	f->read = *r;
	f->read.value = f->read.line = slice_of("", 0);
}

static void base_read(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	enum oplog_form form;

	if (r->status == RESULT_MISS) {
		finish(lane, OUTCOME_MISSING);
	} else if (r->status != RESULT_HIT) {
		finish_failed(lane, r);
	} else {
		remember(f, r);
		f->size = r->value.n;
		if (is_current(&f->entry->view, r)) {
			lane->lanes->stats.cache_hits++;
			f->entry->churning = false;
		}
		form = set_view_update(&f->entry->view, r->value);
		if (form == OPLOG_GOOD)
			followed(lane, r);
		else if (form == OPLOG_OUTDATED)
			lane_expire_base(lane, r, removed);
		else
			finish(lane, lane_unreadable(lane, form));
	}
}

static void read_base(struct lane *lane)
{
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL }, base_read);
}

static void asked(struct lane *lane, const struct result *r)
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

static bool is_worth_asking(const struct lane *lane, const struct cache_entry *entry)
{
	return entry->view.known && !entry->churning && !entry->suspect && buf_size(&entry->view.base) >= ASK_LEAST &&
		!is_pop(lane);
}

void fetch_start(struct lane *lane)
{
	struct fetch *f = pool_get(lane_host(lane)->pool, sizeof(*f));
	const struct op *op = lane_first(lane);

	lane_count_reads(lane);
	memset(f, 0, sizeof(*f));
	f->entry = cache_open(lane->lanes->cache, lane->waiter.key);
	f->taken = (struct set_request){ .verb = SET_SAMPLE, .count = op->delta, .sign = "-" };
	if (op->kind == OP_POP)
		f->taken.random = random_next(&lane_host(lane)->random);
	lane->work = f;
	if (is_worth_asking(lane, f->entry))
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_CAS | WANT_TTL }, asked);
	else
		read_base(lane);
}
