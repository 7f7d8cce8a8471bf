/*
 * Reads a set into its view: the base, then the tables and indexes that the requests need. The
 * base may have been read already, after the append of the preceding operations.
 *
 *     view is known -> read the CAS token -> unchanged: answer
 *                                         -> changed: read the base
 *     read the base -> update the view -> answer -> load the wanted parts -> answer again
 *                                                   -> a part is missing: read the base again
 *
 * If the base refers to a different run now, the missing part was replaced by a merge. If it
 * still refers to the same run, the part was evicted. Then the set is incomplete: it counts as
 * missing, and its base is removed so that it can be loaded again. If the part may be missing
 * only here, the base is kept.
 *
 * For set commands a list is the set of its elements: all of it is read.
 *
 * A read from memory does not access tables and indexes on the server, which then might evict
 * them before the base. So all parts are read from time to time, and immediately on a new
 * connection: this keeps them from being evicted, and detects missing ones.
 */
#include "collection/set/fetch.h"

#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/list/segmented_list.h"
#include "collection/machines.h"
#include "collection/rewrite/ahead.h"
#include "collection/rewrite/parts.h"
#include "collection/set/answer.h"
#include "collection/set/moment.h"
#include "util/alloc.h"
#include "util/check.h"

/*
 * COMPARE_MIN: a base below this size is read at once, without comparing its CAS token first.
 * CALM: a base that has changed is also read at once, until this number of reads has found it
 * unchanged. For a set that is read as often as written, every second comparison would be wasted.
 */
enum { COMPARE_MIN = 512, CALM = 2, PRESENCE_EVERY_MS = 60 * 1000 };

static lane_step fetch_on_token_read, fetch_on_base_read, fetch_fold, fetch_answer,
	fetch_on_view_updated;
static lane_after fetch_on_reads_done;
static void fetch_on_loaded(struct parts *parts), fetch_on_parts_checked(struct parts *parts),
	fetch_on_list_read(struct parts *parts);
static void take_list(struct lane *lane, struct slice segments);

static void fetch_finish(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct fetch *f = lane->work;

	set_view_end_wants(&f->entry->view);
	if (f->open.ahead && status != OUTCOME_DONE)
		opening_read(&f->open);
	else
		f->after(lane, status, failure);
}

void fetch_end(struct fetch *f, struct lane *lane, const struct outcome *outcome)
{
	bool failed = outcome->status != OUTCOME_DONE && outcome->status != OUTCOME_OVERFLOW &&
		outcome->status != OUTCOME_FAILED;
	struct cache *cache = lane->lanes->cache;
	struct cache_entry *entry = f->entry;
	bool has_long = set_view_has_long(&entry->view);
	bool drop = f->is_list || has_long || (failed && !f->stays);

	lane_end_all(lane, outcome);
	lane->work = NULL;
	parts_destroy(f->parts);
	buf_free(&f->list_base);
	/* No other machine may make tables of it. */
	entry->view.known &= !has_long;
	if (drop && entry->view.pins == 1) {
		entry->view.pins = 0;
		cache_drop(cache, entry);
	} else {
		cache_close(cache, entry);
	}
}

static bool is_current(const struct set_view *view, const struct result *r)
{
	return view->known && r->cas && view->cas == r->cas && view->connection == r->connection;
}

static bool should_compare_token(const struct cache_entry *entry)
{
	return entry->view.known && !entry->churning && !entry->suspect &&
		buf_size(&entry->view.base) >= COMPARE_MIN;
}

void fetch_begin(struct fetch *f, struct lane *lane, struct set_request *only, bool rewrites,
	lane_after *after)
{
	lane_count_reads(lane);
	*f = (struct fetch){
		.open = { .lane = lane,
			.rewrites = rewrites,
			.found = fetch_on_base_read,
			.ended = fetch_finish },
		.only = only,
		.after = after,
	};
	STAILQ_INIT(&f->wanting);
	f->entry = cache_open(lane->lanes->cache, lane->waiter.key, lane->hash);
	f->entry->view.env = lane_env(lane);
	/* The connection to a server with parts of the set may have been lost meanwhile. */
	f->entry->suspect |= rules_behind(lane->rule) && f->entry->view.run_count &&
		f->entry->connects != lane_env(lane)->connects;
	f->entry->connects = lane_env(lane)->connects;
	lane->work = f;
	if (!rewrites && lane->reads_along && lane_await_behind(lane, fetch_on_base_read))
		lane->reads_along = false;
	else if (!rewrites && should_compare_token(f->entry))
		lane_call(lane,
			&(struct call){
				.verb = CALL_GET, .want = WANT_CAS | WANT_TTL, .only_reads = true },
			fetch_on_token_read);
	else
		opening_start(&f->open);
}

/* The machines of rewrites make one request of their own. */
static void saw(struct lane *lane, const struct result *r, struct slice base)
{
	const struct fetch *f = lane->work;

	if (!f->only)
		ahead_saw(lane, r, base);
}

/*
 * The answers are those of the moment at which the base was read. Elements of a list stay: its view
 * is at no moment.
 */
static void pass_dates(struct lane *lane, struct set_view *view)
{
	if (lane_is_list(lane, &view->split))
		view->now = 0;
	else
		set_view_advance(view, env_server_time(lane_env(lane), lane->waiter.key));
}

static void fetch_on_token_read(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;

	if (r->status != RESULT_HIT) {
		fetch_on_base_read(lane, r);
	} else if (is_current(&f->entry->view, r)) {
		lane->lanes->stats.cache_hits++;
		opening_keep(&f->open, r, buf_slice(&f->entry->view.base));
		saw(lane, r, buf_slice(&f->entry->view.base));
		if (set_view_is_dated(&f->entry->view))
			pass_dates(lane, &f->entry->view);
		fetch_answer(lane, NULL);
	} else {
		f->entry->churning = CALM;
		opening_read(&f->open);
	}
}

/* Returns whether the base still refers to the missing part. */
static bool is_broken(const struct fetch *f)
{
	const struct set_view *view = &f->entry->view;

	if (f->missing_refs && f->missing_refs == check_of(view->split.refs))
		return true;
	for (size_t i = 0; f->missing[0] && i < view->run_count; i++) {
		if (memcmp(view->runs[i].id, f->missing, OPLOG_ID) == 0)
			return true;
	}
	return false;
}

static void fetch_on_view_updated(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;

	/*
	 * The server may have been restarted or replaced: it may lack parts that the
	 * view has in memory.
	 */
	f->entry->suspect |=
		view->run_count && view->connection && view->connection != r->connection;
	view->cas = r->cas;
	view->connection = r->connection;
	/* After a lost race the key may hold a different collection. */
	f->may_have_long = lane_is_list(lane, &view->split);
	f->is_list = f->may_have_long && (view->split.ref_count || lane->rule->max);
	if (set_view_is_dated(view))
		pass_dates(lane, view);
	if (is_broken(f) && (!f->open.missing_on || f->open.missing_on == r->connection)) {
		f->stays = !f->open.missing_on;
		f->entry->suspect |= f->stays;
		opening_give_up(&f->open, r);
	} else if (f->is_list && !view->split.ref_count) {
		f->segment_bytes = 0;
		take_list(lane, slice_of("", 0));
	} else if (f->is_list) {
		parts_destroy(f->parts);
		f->parts = parts_create_of_list(lane->lanes, lane->waiter.key, view->split.refs);
		parts_call(f->parts,
			(struct call){ .verb = CALL_GET,
				.want = WANT_VALUE,
				.account = lane_account(lane) },
			fetch_on_list_read, lane);
	} else if (f->entry->suspect && view->run_count) {
		parts_destroy(f->parts);
		f->parts = NULL;
		parts_call_all(lane->lanes, lane->waiter.key, view->split.refs,
			(struct call){ .verb = CALL_GET, .account = lane_account(lane) },
			fetch_on_parts_checked, lane);
	} else {
		f->entry->suspect = false;
		fetch_answer(lane, NULL);
	}
}

static void finish_unreadable(struct lane *lane, enum oplog_form form)
{
	fetch_finish(lane, lane_unreadable(lane, form), NULL);
}

/* Folds the rest of the base in slices, and continues with `f->folded`. */
static void fetch_fold(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;

	(void)r;
	while (set_view_is_unfolded(view)) {
		if (!set_view_fold(view)) {
			finish_unreadable(lane, OPLOG_CORRUPT);
			return;
		}
		if (lane_pauses(lane, FOLD_STEPS, fetch_fold))
			return;
	}
	f->folded(lane, &f->open.read);
}

static void fetch_on_base_read(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	enum oplog_form form;

	set_view_end_wants(&f->entry->view);
	f->loading = false;
	if (r->status == RESULT_MISS) {
		fetch_finish(lane, OUTCOME_MISSING, NULL);
	} else if (r->status != RESULT_HIT) {
		fetch_finish(lane, OUTCOME_FAILED, r);
	} else {
		opening_keep(&f->open, r, r->value);
		if (is_current(&f->entry->view, r)) {
			lane->lanes->stats.cache_hits++;
			f->entry->churning -= f->entry->churning > 0;
		} else if (f->entry->churning) {
			f->entry->churning = CALM;
		}
		form = set_view_update(&f->entry->view, r->value);
		f->loading = form == OPLOG_LOADING;
		if (form == OPLOG_GOOD) {
			saw(lane, r, r->value);
			f->folded = fetch_on_view_updated;
			fetch_fold(lane, NULL);
		} else if (form == OPLOG_OUTDATED) {
			opening_remove(&f->open, r);
		} else {
			finish_unreadable(lane, form);
		}
	}
}

static void load(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	struct buf ids = BUF_EMPTY;

	for (size_t i = 0; i < view->want_count; i++)
		buf_add_word(&ids, set_view_want_id(view, &view->wants[i]));
	parts_destroy(f->parts);
	f->parts = parts_create(lane->lanes, lane->waiter.key, buf_slice(&ids));
	buf_free(&ids);
	parts_call(f->parts,
		(struct call){
			.verb = CALL_GET, .want = WANT_VALUE, .account = lane_account(lane) },
		fetch_on_loaded, lane);
}

/* A read that finds a base too large, or with much waste, requests its compaction. */
static void request_compaction(struct lane *lane, const struct set_view *view)
{
	size_t size = buf_size(&view->base);

	lane_grew(lane, size);
	if (set_view_is_spent(view))
		lane_request_compaction(lane);
	if (size < COMPARE_MIN || view->split.is_list || !set_view_has_waste(view))
		return;
	if (set_view_waste(view) > lane->rule->compact_waste)
		lane_request_compaction(lane);
}

static void fetch_on_present(struct parts *parts)
{
	struct lanes *lanes = parts->lanes;
	struct slice key = parts_key(parts);
	struct cache_entry *entry = cache_find(lanes->cache, key, cache_hash(lanes->cache, key));

	if (entry) {
		entry->asking = false;
		entry->present = lanes->env->now;
		entry->suspect |= parts->missing > 0 && !parts->failure.happened;
	}
	lanes->background--;
	parts_destroy(parts);
}

/*
 * Checks all parts of a view in the background if the last check is old. Marks the entry as
 * suspect if one is missing.
 */
static void check_presence(struct lanes *lanes, struct slice key, struct cache_entry *entry)
{
	uint64_t now = lanes->env->now;

	if (entry->view.run_count == 0 || entry->asking)
		return;
	if (entry->present == 0)
		entry->present = now;
	if (now - entry->present < PRESENCE_EVERY_MS)
		return;
	entry->asking = true;
	lanes->background++;
	parts_call_all(lanes, key, entry->view.split.refs, (struct call){ .verb = CALL_GET },
		fetch_on_present, NULL);
}

static void answered(struct lane *lane)
{
	struct fetch *f = lane->work;
	const struct set_view *view = &f->entry->view;

	if (!f->is_list && f->open.read.ttl != TTL_UNKNOWN)
		request_compaction(lane, view);
	if (!f->is_list && lane_is_measured(lane))
		lane_measured_runs(lane, view->head.live + view->overlay.live,
			buf_size(&view->base), view->split.refs);
	check_presence(lane->lanes, lane->waiter.key, f->entry);
	fetch_finish(lane, f->only && f->only->too_large ? OUTCOME_OVERFLOW : OUTCOME_DONE, NULL);
}

/* The view of a list was made of one log; replaces its description by that of the stored form. */
static void describe_list(const struct fetch *f, struct set_request *request)
{
	struct set_info *info = &request->info;

	if (request->verb != SET_INFO)
		return;
	info->table_bytes = f->segment_bytes;
	info->tables = f->parts ? f->parts->count : 0;
	info->base_bytes = buf_size(&f->list_base);
}

/* An element may be too long for a member; then only SET_INFO of a list is answered. */
static bool can_answer(const struct fetch *f, const struct set_request *request)
{
	return !set_view_has_long(&f->entry->view) ||
		(f->may_have_long && request->verb == SET_INFO);
}

/*
 * Answers the operations of the batch one by one, so that only one answer at a time takes
 * memory. Operations that need tables are queued, so that all their tables are loaded at once.
 * Returns false if there is more to do.
 */
static bool answer_batch(struct lane *lane)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	struct outcome done = { .result = &f->open.read };
	struct op *op;

	for (lane_drop_abandoned(lane); (op = lane_first(lane)); lane_drop_abandoned(lane)) {
		uint64_t slices = view->slices;
		if (!can_answer(f, op->set)) {
			done.status = lane_unreadable(lane, OPLOG_CORRUPT);
			lane_end_first(lane, &done);
		} else if (set_answer(view, op->set)) {
			size_t steps = set_answer_steps(op->set);
			if (f->is_list)
				describe_list(f, op->set);
			done.status = op->set->too_large ? OUTCOME_OVERFLOW : OUTCOME_DONE;
			lane_end_first(lane, &done);
			if (lane_is_over(lane, steps) && lane_first(lane)) {
				view->slices++;
				return false;
			}
		} else if (view->slices != slices) {
			lane_use(lane, set_answer_memory(view, op->set));
			return false;
		} else {
			lane_use(lane, 0);
			STAILQ_REMOVE_HEAD(&lane->batch, link);
			STAILQ_INSERT_TAIL(&f->wanting, op, link);
		}
	}
	STAILQ_CONCAT(&lane->batch, &f->wanting);
	return lane_first(lane) == NULL;
}

static void fetch_answer(struct lane *lane, const struct result *r)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	uint64_t slices = view->slices;

	(void)r;
	if (f->only && !can_answer(f, f->only))
		finish_unreadable(lane, OPLOG_CORRUPT);
	else if (f->only ? set_answer(view, f->only) : answer_batch(lane))
		answered(lane);
	else if (view->slices != slices)
		lane_pause(lane, fetch_answer);
	else if (view->want_count)
		load(lane);
	else
		/* The next call would make no progress. The view is dropped at the end. */
		finish_unreadable(lane, OPLOG_CORRUPT);
}

static void fetch_take_loaded(struct lane *lane, const struct result *r)
{
	enum { BYTES = 64 /* of a table that are checked in one step */ };
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;

	(void)r;
	while (f->checked < f->parts->count) {
		struct part *part = &f->parts->list[f->checked];
		const struct set_want *want = &view->wants[f->checked];
		if (!part->missing && set_view_load(view, want, buf_slice(&part->data))) {
			f->checked++;
			if (lane_pauses(lane, buf_size(&part->data) / BYTES, fetch_take_loaded))
				return;
			continue;
		}
		f->open.missing_on = part_missing_on(part);
		memcpy(f->missing, view->runs[want->run].id, OPLOG_ID);
		opening_again(&f->open);
		return;
	}
	set_view_end_wants(view);
	fetch_answer(lane, NULL);
}

static void fetch_on_loaded(struct parts *parts)
{
	struct lane *lane = parts->arg;
	struct fetch *f = lane->work;

	f->checked = 0;
	if (parts->failure.happened)
		fetch_finish(lane, OUTCOME_FAILED, &parts->failure.result);
	else
		fetch_take_loaded(lane, NULL);
}

static void fetch_on_parts_checked(struct parts *parts)
{
	struct lane *lane = parts->arg;
	struct fetch *f = lane->work;

	f->parts = parts;
	if (parts->failure.happened) {
		fetch_finish(lane, OUTCOME_FAILED, &parts->failure.result);
	} else if (parts->missing) {
		f->open.missing_on = parts->missing_on;
		f->missing_refs = check_of(f->entry->view.split.refs);
		opening_again(&f->open);
	} else {
		f->entry->suspect = false;
		f->entry->present = lane_env(lane)->now;
		fetch_answer(lane, NULL);
	}
}

/*
 * Rebuilds the view with the elements of a list as one log, without its base. `segments` are
 * the elements between head and log.
 */
static void take_list(struct lane *lane, struct slice segments)
{
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	struct buf all = BUF_EMPTY, kept = BUF_EMPTY;
	const struct collection_rule *rule = lane->rule;
	bool good;

	buf_add_slice(&all, view->split.head);
	buf_add_slice(&all, segments);
	buf_add_slice(&all, view->split.log);
	good = !rule->max ||
		segmented_list_limit_log(buf_slice(&all), (uint64_t)rule->max,
			rule->newest == NEWEST_FIRST, lane_env(lane)->seed, &kept);
	buf_free(&f->list_base);
	f->list_base = view->base;
	view->base = BUF_EMPTY;
	good = good && set_view_update(view, buf_slice(rule->max ? &kept : &all)) == OPLOG_GOOD;
	buf_free(&all);
	buf_free(&kept);
	f->folded = fetch_answer;
	if (good)
		fetch_fold(lane, NULL);
	else
		finish_unreadable(lane, OPLOG_CORRUPT);
}

static void fetch_on_list_read(struct parts *parts)
{
	struct lane *lane = parts->arg;
	struct fetch *f = lane->work;
	struct set_view *view = &f->entry->view;
	struct slice refs = view->split.refs;
	struct buf segments = BUF_EMPTY;
	struct oplog_ref ref;

	if (parts->failure.happened) {
		fetch_finish(lane, OUTCOME_FAILED, &parts->failure.result);
		return;
	}
	if (parts->missing) {
		f->open.missing_on = parts->missing_on;
		f->missing_refs = check_of(refs);
		opening_again(&f->open);
		return;
	}
	f->segment_bytes = 0;
	for (size_t i = 0; i < parts->count && oplog_next_ref(&refs, &ref); i++) {
		buf_add_slice(&segments, oplog_window(buf_slice(&parts->list[i].data), &ref));
		f->segment_bytes += buf_size(&parts->list[i].data);
	}
	take_list(lane, buf_slice(&segments));
	buf_free(&segments);
}

void fetch_start(struct lane *lane)
{
	fetch_begin(pool_get(lane_env(lane)->pool, sizeof(struct fetch)), lane, NULL, false,
		fetch_on_reads_done);
}

static void fetch_on_reads_done(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct fetch *f = lane->work;
	struct outcome outcome = { .status = status,
		.result = status == OUTCOME_DONE ? &f->open.read : failure };

	fetch_end(f, lane, &outcome);
	pool_put(lane_env(lane)->pool, f, sizeof(*f));
	lane_next(lane);
}

/* --- suspicion --- */

struct suspicion {
	struct op op;
	struct set_request request;
	struct lanes *lanes;
	struct cache_entry *entry;
};

static void fetch_on_found_out(struct op *op, const struct outcome *outcome)
{
	struct suspicion *s = (struct suspicion *)op;

	(void)outcome;
	set_request_free(&s->request);
	cache_close(s->lanes->cache, s->entry);
	free(s);
}

void fetch_suspect(struct lanes *lanes, struct slice key)
{
	struct suspicion *s = xcalloc(1, sizeof(*s));

	s->lanes = lanes;
	s->entry = cache_open(lanes->cache, key, cache_hash(lanes->cache, key));
	s->entry->suspect = true;
	s->op = (struct op){
		.kind = OP_READ,
		.key = slice_of(s->entry->key, s->entry->key_size),
		.set = &s->request,
		.done = fetch_on_found_out,
	};
	s->request = (struct set_request){ .verb = SET_TEST, .members = slice_of("", 0) };
	lanes_submit(lanes, &s->op);
}
