/*
 * Compacts a set:
 *
 *     read -> fold -> short enough: commit the folded log, and update the view if it was current
 *                  -> else: spill it to a new run -> commit a base that refers to the run
 *                                                 -> consider a merge
 *
 * Of a set that is being loaded, only the words are compacted: see text/lease.h. Their removals
 * are kept.
 *
 * A part is referred to only after its write was acknowledged. If the commit certainly failed,
 * the new parts are deleted. After an unknown outcome they are kept.
 */
#include "collection/both/both.h"

#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/list/list.h"
#include "collection/machines.h"
#include "collection/rewrite/base.h"
#include "collection/rewrite/opening.h"
#include "collection/set/cache.h"
#include "collection/set/merge.h"
#include "collection/set/run_writer.h"
#include "collection/text/fold.h"
#include "collection/text/lease.h"
#include "util/alloc.h"

static lane_step compact_on_base_read, compact_merge_all;
static lane_after compact_on_committed, compact_on_op_compacted;
static void compact_on_runs_written(void *arg);

struct compaction {
	struct base_rewrite rewrite;
	lane_after *after;
	struct buf prefix, replacement; /* prefix: the base that was read */
	/* The parsed prefix; all zeroes while a client loads the set. */
	struct oplog_base base;
	struct lease_base words;             /* the parsed prefix in that case */
	struct fold log;                     /* fold of the part of its log that was read */
	struct slice rest;                   /* unread rest of the log */
	struct run_writer head_run, log_run; /* new runs; all zeroes without `spills` */
	struct result read;                  /* the reply about the prefix, without slices */
	int64_t date, exptime;               /* of the base: see keep_date; of new parts */
	bool spills, all;                    /* all: spill the log even if it is short */
	bool merges_only;                    /* do not fold */
	bool loading;                        /* a client is loading the set */
	bool of_view;                        /* the replacement was made from the view's fold */
};

/* The failure may belong to a writer, so the writers are freed last. */
static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct compaction *c = lane->work;

	lane->work = NULL;
	c->after(lane, status, failure);
	run_writer_fini(&c->head_run);
	run_writer_fini(&c->log_run);
	fold_free(&c->log);
	buf_free(&c->prefix);
	buf_free(&c->replacement);
	free(c);
}

static void forget(const struct compaction *c)
{
	part_writer_forget(&c->head_run.parts);
	part_writer_forget(&c->log_run.parts);
}

void compact_run(struct lane *lane, lane_after *after)
{
	struct compaction *c = xcalloc(1, sizeof(*c));

	c->after = after;
	c->log.seed = lane_env(lane)->seed;
	if (lane_first(lane)->kind == OP_COMPACT) {
		c->all = lane_first(lane)->all;
		c->merges_only = lane_first(lane)->merges_only;
	}
	lane->work = c;
	lane_call(lane,
		&(struct call){ .verb = CALL_GET,
			.want = WANT_VALUE | WANT_CAS | WANT_TTL,
			.role.settled = true },
		compact_on_base_read);
}

/* --- a spill: each step does a portion, and pauses when the slice is over --- */

static void compact_fill_log(struct lane *lane, const struct result *r)
{
	struct compaction *c = lane->work;

	(void)r;
	if (!run_writer_fill_slice(&c->log_run, lane, compact_fill_log))
		return;
	run_writer_finish(&c->head_run);
	run_writer_finish(&c->log_run);
	compact_on_runs_written(lane);
}

static void compact_fill_head(struct lane *lane, const struct result *r)
{
	struct compaction *c = lane->work;

	(void)r;
	if (!run_writer_fill_slice(&c->head_run, lane, compact_fill_head))
		return;
	run_writer_fill(&c->log_run, &c->log,
		c->loading || c->base.ref_count || c->head_run.table.count ||
			c->head_run.run.tables);
	compact_fill_log(lane, NULL);
}

/* Only additions of the head matter, since it is older than all runs. */
static void spill(struct lane *lane)
{
	struct compaction *c = lane->work;

	run_writer_init(&c->head_run, lane->lanes, lane->waiter.key, c->exptime,
		compact_on_runs_written, lane);
	run_writer_init(&c->log_run, lane->lanes, lane->waiter.key, c->exptime,
		compact_on_runs_written, lane);
	run_writer_fill_from_log(&c->head_run, c->base.head);
	compact_fill_head(lane, NULL);
}

/* --- the decision --- */

static bool spills(const struct lane *lane, const struct fold *log)
{
	const struct compaction *c = lane->work;
	bool over = c->base.ref_count > 0;
	size_t log_size = lane_log_size(lane), size = fold_log_size(log, over);

	return c->base.head.n || (over && c->all && size) ||
		size > (over ? log_size / 4 : log_size);
}

static void shorten(struct lane *lane, const struct fold *log)
{
	struct compaction *c = lane->work;

	buf_add_slice(&c->replacement, c->base.block);
	fold_encode(log, c->base.ref_count > 0, &c->replacement);
	c->read.value = buf_slice(&c->prefix);
	base_rewrite_head(&c->rewrite, lane, buf_slice(&c->prefix), buf_slice(&c->replacement),
		&c->read, c->date, compact_on_committed);
}

/* Returns whether a rewrite saves a tenth, or shortens a base that is too long. */
static bool is_worth_it(const struct lane *lane, const struct fold *folded)
{
	const struct compaction *c = lane->work;
	size_t size = fold_log_size(folded, c->base.ref_count > 0), log = c->base.log.n;

	/* The new log has a date, too. */
	if (c->date > 0 && log >= DATE_TOKEN)
		log -= DATE_TOKEN;
	if (c->merges_only)
		return false;
	return c->base.head.n || (c->all && (c->base.ref_count ? size : log > size)) ||
		size > lane_log_size(lane) || size + size / 9 < log;
}

/* --- a set that is being loaded --- */

static bool words_are_worth_it(const struct lane *lane)
{
	const struct compaction *c = lane->work;
	size_t size = fold_log_size(&c->log, true);

	return !c->merges_only && (size > lane_log_size(lane) || size + size / 9 < c->words.log.n);
}

static void rewrite_words(struct lane *lane)
{
	struct compaction *c = lane->work;
	struct buf log = BUF_EMPTY;

	c->spills = fold_log_size(&c->log, true) > lane_log_size(lane) / 4;
	if (c->spills) {
		spill(lane);
		return;
	}
	fold_encode(&c->log, true, &log);
	c->words.log = buf_slice(&log);
	lease_write(&c->words, SLICE(""), &c->replacement);
	buf_free(&log);
	c->read.value = buf_slice(&c->prefix);
	base_rewrite_head(&c->rewrite, lane, buf_slice(&c->prefix), buf_slice(&c->replacement),
		&c->read, c->date, compact_on_committed);
}

static void words_folded(struct lane *lane)
{
	const struct compaction *c = lane->work;

	if (words_are_worth_it(lane)) {
		rewrite_words(lane);
		return;
	}
	merge_consider_loaded(
		lane->lanes, lane->waiter.key, c->words.loaded, c->words.wide, c->exptime);
	end(lane, OUTCOME_DONE, NULL);
}

/* The words become the newest of the runs that have words. */
static void refer_to_words(struct compaction *c)
{
	struct buf runs = BUF_EMPTY;

	buf_add_slice(&runs, c->words.runs);
	run_writer_ref(&c->log_run, &runs);
	c->words.runs = buf_slice(&runs);
	c->words.log = SLICE("");
	c->words.wide = c->words.wide || c->log_run.parts.wide;
	lease_write(&c->words, SLICE(""), &c->replacement);
	buf_free(&runs);
}

/* --- a complete set --- */

static void hand_to_list(struct lane *lane, const struct result *r)
{
	struct compaction *c = lane->work;
	lane_after *after = c->after;

	free(c);
	lane->work = NULL;
	list_compact(lane, r, after);
}

static void measure(struct lane *lane, const struct fold *log)
{
	const struct compaction *c = lane->work;

	if (lane_is_measured(lane))
		lane_measured_runs(lane, log->live, buf_size(&c->prefix), c->base.refs);
}

static void folded(struct lane *lane)
{
	struct compaction *c = lane->work;

	if (is_worth_it(lane, &c->log)) {
		measure(lane, &c->log);
		c->spills = spills(lane, &c->log);
		if (c->spills)
			spill(lane);
		else
			shorten(lane, &c->log);
		return;
	}
	if (c->base.ref_count && c->base.head.n == 0)
		merge_consider(lane->lanes, lane->waiter.key, c->base.block, c->exptime);
	end(lane, OUTCOME_DONE, NULL);
}

static void compact_fold_log_of(struct lane *lane, const struct result *r)
{
	struct compaction *c = lane->work;

	(void)r;
	while (c->rest.n) {
		if (!fold_portion(&c->log, &c->rest)) {
			end(lane, lane_unreadable(lane, OPLOG_CORRUPT), NULL);
			return;
		}
		if (lane_pauses(lane, FOLD_STEPS, compact_fold_log_of))
			return;
	}
	if (c->log.dated)
		fold_expire(&c->log, env_server_time(lane_env(lane), lane->waiter.key));
	if (c->loading)
		words_folded(lane);
	else
		folded(lane);
}

/* Returns the view of the base, if it is in memory and derived from exactly this base. */
static struct set_view *view_of(const struct lane *lane, struct slice base)
{
	struct cache_entry *entry = cache_find(lane->lanes->cache, lane->waiter.key, lane->hash);

	return entry && set_view_is_of(&entry->view, base) ? &entry->view : NULL;
}

/*
 * Usually a read requested the compaction, and has folded the log. A spill takes long, and
 * needs a fold of its own.
 */
static bool was_folded(struct lane *lane)
{
	struct compaction *c = lane->work;
	const struct set_view *view = c->loading ? NULL : view_of(lane, buf_slice(&c->prefix));

	if (!view || !is_worth_it(lane, &view->overlay) || spills(lane, &view->overlay))
		return false;
	c->of_view = true;
	measure(lane, &view->overlay);
	shorten(lane, &view->overlay);
	return true;
}

static void keep_base(struct compaction *c, const struct result *r)
{
	buf_add_slice(&c->prefix, r->value);
	c->read = result_bare(r);
	if (c->loading)
		(void)lease_split(buf_slice(&c->prefix), &c->words);
	else
		(void)oplog_split(buf_slice(&c->prefix), &c->base);
	c->rest = c->loading ? c->words.log : c->base.log;
}

static void compact_on_base_read(struct lane *lane, const struct result *r)
{
	struct compaction *c = lane->work;
	struct base base = base_sort(lane, r);

	c->loading = base.kind == BASE_LOADING;
	if (base.kind == BASE_FAILED) {
		end(lane, OUTCOME_FAILED, r);
	} else if (base.kind == BASE_MISSING || (c->loading && c->all)) {
		end(lane, OUTCOME_MISSING, NULL);
	} else if (base.kind == BASE_FOREIGN || base.kind == BASE_OUTDATED) {
		end(lane, lane_unreadable(lane, base.form), NULL);
	} else if (c->loading && base.loading.is_list) {
		end(lane, OUTCOME_DONE, NULL);
	} else if (base.kind == BASE_LIST) {
		hand_to_list(lane, r);
	} else if ((c->date = keep_date(lane, r, r->value)) == KEEP_UNKNOWN) {
		end(lane, OUTCOME_DONE, NULL);
	} else {
		c->exptime = keep_exptime(lane, c->date);
		keep_base(c, r);
		if (!was_folded(lane))
			compact_fold_log_of(lane, NULL);
	}
}

/* The run of the head becomes the oldest, and that of the log the newest. */
static void refer_to_runs(struct compaction *c)
{
	if (c->base.ref_count || c->head_run.run.tables || c->log_run.run.tables)
		oplog_add_mark(&c->replacement, false,
			c->base.wide || c->head_run.parts.wide || c->log_run.parts.wide);
	run_writer_ref(&c->head_run, &c->replacement);
	buf_add_slice(&c->replacement, c->base.refs);
	run_writer_ref(&c->log_run, &c->replacement);
}

static void compact_on_runs_written(void *arg)
{
	struct lane *lane = arg;
	struct compaction *c = lane->work;
	const struct failure *failures[] = { &c->head_run.parts.failure,
		&c->log_run.parts.failure };

	if (c->head_run.parts.pending || c->log_run.parts.pending || !c->log_run.finished)
		return;
	for (int i = 0; i < 2; i++) {
		if (failures[i]->happened) {
			forget(c);
			end(lane, OUTCOME_FAILED, &failures[i]->result);
			return;
		}
	}
	if (c->loading)
		refer_to_words(c);
	else
		refer_to_runs(c);
	c->read.value = buf_slice(&c->prefix);
	base_rewrite_head(&c->rewrite, lane, buf_slice(&c->prefix), buf_slice(&c->replacement),
		&c->read, c->date, compact_on_committed);
}

static void compact_on_committed(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct compaction *c = lane->work;
	struct lanes *lanes = lane->lanes;
	struct oplog_base base;
	struct set_view *view =
		status == OUTCOME_DONE && c->of_view ? view_of(lane, buf_slice(&c->prefix)) : NULL;

	if (view)
		set_view_compacted(view, buf_slice(&c->replacement));
	if (status == OUTCOME_DONE) {
		lanes->stats.compactions++;
		lanes->stats.spills += c->spills;
		if (c->spills) {
			int64_t ttl = keep_ttl(lane, c->rewrite.date);
			part_writer_follow(&c->head_run.parts, ttl);
			part_writer_follow(&c->log_run.parts, ttl);
		}
		/* A request for compaction goes on to merge all runs. */
		if (!c->all && oplog_split(buf_slice(&c->replacement), &base) && base.ref_count)
			merge_consider(lanes, lane->waiter.key, base.block, c->exptime);
	} else if (status != OUTCOME_FAILED || result_stored_nothing(failure)) {
		forget(c);
	}
	end(lane, status, failure);
}

void compact_start(struct lane *lane)
{
	compact_run(lane, compact_on_op_compacted);
}

/* Removes the operation from the lane, so that the lane can continue. */
static void again(struct lane *lane)
{
	struct op *op = lane_first(lane);

	STAILQ_REMOVE_HEAD(&lane->batch, link);
	if (!merge_again(lane->lanes, op, true))
		op->done(op, &(struct outcome){ .status = OUTCOME_BUSY });
	lane_next(lane);
}

static void compact_on_op_compacted(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct op *op = lane_first(lane);

	lane->compaction_requested = false;
	/* Another proxy has compacted the set, or is about to: the client's request is retried. */
	if (status == OUTCOME_BUSY && op->all)
		again(lane);
	else if (status == OUTCOME_FAILED)
		lane_end(lane, OUTCOME_FAILED, failure);
	else if (status == OUTCOME_DONE && op->all)
		lane_call(lane, &(struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_TTL },
			compact_merge_all);
	else
		lane_end(lane, status, NULL);
}

/*
 * Passes the operation on to a merge of all runs, so that the lane can continue. The commit of
 * the merge checks the head itself.
 */
static void compact_merge_all(struct lane *lane, const struct result *r)
{
	struct op *op = lane_first(lane);
	struct base base = base_sort(lane, r);
	int64_t date = keep_date(lane, r, r->value);

	if (base.kind == BASE_FAILED) {
		lane_end(lane, OUTCOME_FAILED, r);
	} else if (base.kind == BASE_SET && base.split.ref_count && date != KEEP_UNKNOWN) {
		STAILQ_REMOVE_HEAD(&lane->batch, link);
		merge_force(lane->lanes, lane->waiter.key, base.split.block,
			keep_exptime(lane, date), op);
		lane_next(lane);
	} else {
		lane_end(lane, base.kind == BASE_MISSING ? OUTCOME_MISSING : OUTCOME_DONE, NULL);
	}
}
