/*
 *     read -> fold -> short enough: commit the folded log
 *                  -> else: spill it to a new run -> commit a base that refers to the run -> consider a merge
 *
 * Of a set that somebody loads, only the words are compacted: see text/lease.h. Their removals stay.
 *
 * A part is referred to only after its write was acknowledged. If the commit certainly failed, the new parts are
 * deleted. After an unknown outcome they stay.
 */
#include "collection/set/set.h"

#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/list/list.h"
#include "collection/machines.h"
#include "collection/rewrite/base.h"
#include "collection/set/merge.h"
#include "collection/set/run_writer.h"
#include "collection/text/fold.h"
#include "collection/text/lease.h"
#include "collection/ttl.h"
#include "util/alloc.h"

static lane_step base_read, merge_all;
static lane_after committed, op_compacted;
static void runs_written(void *arg);

struct compaction {
	struct base_rewrite rewrite;
	lane_after *after;
	struct buf prefix, replacement;
	struct run_writer head, log; /* new runs: of the head, and of the log; all zeroes without `spills` */
	struct result read;          /* the reply about the prefix, without slices */
	int64_t exptime;             /* of new parts */
	bool spills, all;            /* all: spill the log however short it is */
	bool loading;                /* somebody loads the set */
};

/* The failure may be that of a writer, which is freed last. */
static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct compaction *c = lane->work;

	lane->work = NULL;
	c->after(lane, status, failure);
	run_writer_fini(&c->head);
	run_writer_fini(&c->log);
	buf_free(&c->prefix);
	buf_free(&c->replacement);
	free(c);
}

static void forget(const struct compaction *c)
{
	part_writer_forget(&c->head.parts);
	part_writer_forget(&c->log.parts);
}

void compact_run(struct lane *lane, lane_after *after)
{
	struct compaction *c = xcalloc(1, sizeof(*c));

	c->after = after;
	c->all = lane_first(lane)->kind == OP_COMPACT && lane_first(lane)->all;
	lane->work = c;
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL }, base_read);
}

/* Only additions of the head matter, since it is older than all runs. */
static void spill(struct lane *lane, const struct oplog_base *base, const struct fold *fold)
{
	struct compaction *c = lane->work;
	struct lanes *lanes = lane->lanes;
	struct fold head = { .seed = fold->seed };

	run_writer_init(&c->head, lanes, lane->waiter.key, c->exptime, runs_written, lane);
	run_writer_init(&c->log, lanes, lane->waiter.key, c->exptime, runs_written, lane);
	if (fold_log(&head, base->head))
		run_writer_add_fold(&c->head, &head, false);
	fold_free(&head);
	run_writer_add_fold(&c->log, fold, base->ref_count || c->head.table.count || c->head.run.tables);
	run_writer_finish(&c->head);
	run_writer_finish(&c->log);
	runs_written(lane);
}

static void rewrite(struct lane *lane, const struct result *r, const struct oplog_base *base, const struct fold *fold)
{
	bool over = base->ref_count > 0;
	size_t log_size = lane_log_size(lane), size = fold_log_size(fold, over);
	struct compaction *c = lane->work;

	buf_add_slice(&c->prefix, r->value);
	c->read = *r;
	c->read.line = slice_of("", 0);
	c->spills = base->head.n || (over && c->all && size) || size > (over ? log_size / 4 : log_size);
	if (c->spills) {
		spill(lane, base, fold);
		return;
	}
	buf_add_slice(&c->replacement, base->block);
	fold_encode(fold, over, &c->replacement);
	base_rewrite_head(&c->rewrite, lane, buf_slice(&c->prefix), buf_slice(&c->replacement), r, committed);
}

/* Whether a rewrite saves a tenth, or shortens a base that is too long. */
static bool is_worth_it(const struct lane *lane, const struct oplog_base *base, const struct fold *fold)
{
	size_t size = fold_log_size(fold, base->ref_count > 0);
	const struct compaction *c = lane->work;

	if (lane_first(lane)->merges_only)
		return false;
	return base->head.n || (c->all && (base->ref_count ? size : base->log.n > size)) ||
		size > lane_log_size(lane) || size + size / 9 < base->log.n;
}

/* --- a set that somebody loads --- */

static bool words_are_worth_it(const struct lane *lane, struct slice log, const struct fold *fold)
{
	size_t size = fold_log_size(fold, true);

	return !lane_first(lane)->merges_only && (size > lane_log_size(lane) || size + size / 9 < log.n);
}

static void rewrite_words(
	struct lane *lane, const struct result *r, struct lease_base *loading, const struct fold *fold)
{
	struct compaction *c = lane->work;
	struct buf log = BUF_EMPTY;

	buf_add_slice(&c->prefix, r->value);
	c->read = *r;
	c->read.line = slice_of("", 0);
	c->loading = true;
	c->spills = fold_log_size(fold, true) > lane_log_size(lane) / 4;
	if (c->spills) {
		spill(lane, &(struct oplog_base){ .head = SLICE(""), .ref_count = 1 }, fold);
		return;
	}
	fold_encode(fold, true, &log);
	loading->log = buf_slice(&log);
	lease_write(loading, SLICE(""), &c->replacement);
	buf_free(&log);
	base_rewrite_head(&c->rewrite, lane, buf_slice(&c->prefix), buf_slice(&c->replacement), r, committed);
}

static void compact_words(struct lane *lane, const struct result *r, struct lease_base *loading)
{
	struct fold fold = { .seed = lane_env(lane)->seed };
	struct compaction *c = lane->work;

	if (c->all) {
		end(lane, OUTCOME_MISSING, NULL);
	} else if (loading->is_list) {
		end(lane, OUTCOME_DONE, NULL);
	} else if (!fold_log(&fold, loading->log)) {
		end(lane, lane_unreadable(lane, OPLOG_CORRUPT), NULL);
	} else if (!ttl_exptime(lane_env(lane), r->ttl, &c->exptime)) {
		end(lane, OUTCOME_DONE, NULL);
	} else if (!words_are_worth_it(lane, loading->log, &fold)) {
		merge_consider_loaded(lane->lanes, lane->waiter.key, loading->loaded, c->exptime);
		end(lane, OUTCOME_DONE, NULL);
	} else {
		rewrite_words(lane, r, loading, &fold);
	}
	fold_free(&fold);
}

/* The words become the newest of the runs that have words. */
static void refer_to_words(struct compaction *c)
{
	struct buf runs = BUF_EMPTY;
	struct lease_base loading;

	(void)lease_split(buf_slice(&c->prefix), &loading);
	buf_add_slice(&runs, loading.runs);
	run_writer_ref(&c->log, &runs);
	loading.runs = buf_slice(&runs);
	loading.log = SLICE("");
	lease_write(&loading, SLICE(""), &c->replacement);
	buf_free(&runs);
}

/* --- one that is complete --- */

static void hand_to_list(struct lane *lane, const struct result *r)
{
	struct compaction *c = lane->work;
	lane_after *after = c->after;

	free(c);
	lane->work = NULL;
	list_compact(lane, r, after);
}

static void base_read(struct lane *lane, const struct result *r)
{
	struct fold fold = { .seed = lane_env(lane)->seed };
	struct compaction *c = lane->work;
	struct lease_base loading;
	struct oplog_base base;

	if (result_failed(r)) {
		end(lane, OUTCOME_FAILED, r);
	} else if (r->status == RESULT_MISS) {
		end(lane, OUTCOME_MISSING, NULL);
	} else if (lease_split(r->value, &loading)) {
		compact_words(lane, r, &loading);
	} else if (!oplog_split(r->value, &base)) {
		end(lane, lane_unreadable(lane, base.form), NULL);
	} else if (lane_is_list(lane, &base)) {
		hand_to_list(lane, r);
	} else if (!fold_log(&fold, base.log)) {
		end(lane, lane_unreadable(lane, OPLOG_CORRUPT), NULL);
	} else if (!ttl_exptime(lane_env(lane), r->ttl, &c->exptime)) {
		end(lane, OUTCOME_DONE, NULL);
	} else if (!is_worth_it(lane, &base, &fold)) {
		if (base.ref_count && base.head.n == 0)
			merge_consider(lane->lanes, lane->waiter.key, base.block, c->exptime);
		end(lane, OUTCOME_DONE, NULL);
	} else {
		if (lane_is_measured(lane))
			lane_measured_runs(lane, fold.live, r->value.n, base.refs);
		rewrite(lane, r, &base, &fold);
	}
	fold_free(&fold);
}

/* The run of the head becomes the oldest, and that of the log the newest. */
static void refer_to_runs(struct compaction *c)
{
	struct oplog_base base;

	(void)oplog_split(buf_slice(&c->prefix), &base);
	if (base.ref_count || c->head.run.tables || c->log.run.tables)
		BUF_ADD(&c->replacement, OPLOG_SET_MARK);
	run_writer_ref(&c->head, &c->replacement);
	buf_add_slice(&c->replacement, base.refs);
	run_writer_ref(&c->log, &c->replacement);
}

static void runs_written(void *arg)
{
	struct lane *lane = arg;
	struct compaction *c = lane->work;

	if (c->head.parts.pending || c->log.parts.pending || !c->log.finished)
		return;
	if (c->head.parts.failure.happened || c->log.parts.failure.happened) {
		forget(c);
		end(lane, OUTCOME_FAILED,
			c->head.parts.failure.happened ? &c->head.parts.failure.result : &c->log.parts.failure.result);
		return;
	}
	if (c->loading)
		refer_to_words(c);
	else
		refer_to_runs(c);
	c->read.value = buf_slice(&c->prefix);
	base_rewrite_head(&c->rewrite, lane, buf_slice(&c->prefix), buf_slice(&c->replacement), &c->read, committed);
}

static void committed(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct compaction *c = lane->work;
	struct lanes *lanes = lane->lanes;
	struct oplog_base base;

	if (status == OUTCOME_DONE) {
		lanes->stats.compactions++;
		lanes->stats.spills += c->spills;
		if (c->spills) {
			part_writer_follow(&c->head.parts, c->rewrite.cas.ttl);
			part_writer_follow(&c->log.parts, c->rewrite.cas.ttl);
		}
		if (oplog_split(buf_slice(&c->replacement), &base) && base.ref_count)
			merge_consider(lanes, lane->waiter.key, base.block, c->exptime);
	} else if (status != OUTCOME_FAILED || result_stored_nothing(failure)) {
		forget(c);
	}
	end(lane, status, failure);
}

void compact_start(struct lane *lane)
{
	compact_run(lane, op_compacted);
}

/* Hands the operation over, so that the lane can go on. */
static void again(struct lane *lane)
{
	struct op *op = lane_first(lane);

	STAILQ_REMOVE_HEAD(&lane->batch, link);
	if (!merge_again(lane->lanes, op, true))
		op->done(op, &(struct outcome){ .status = OUTCOME_BUSY });
	lane_next(lane);
}

static void op_compacted(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct op *op = lane_first(lane);

	lane->compaction_requested = false;
	/* Another proxy has compacted the set, or is about to: a client that asked for it waits. */
	if (status == OUTCOME_BUSY && op->all)
		again(lane);
	else if (status == OUTCOME_FAILED)
		lane_end(lane, OUTCOME_FAILED, failure);
	else if (status == OUTCOME_DONE && op->all)
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_TTL }, merge_all);
	else
		lane_end(lane, status, NULL);
}

/*
 * Hands the operation over to a merge of all runs, so that the lane can go on. The commit of the merge checks the head
 * itself.
 */
static void merge_all(struct lane *lane, const struct result *r)
{
	struct op *op = lane_first(lane);
	struct oplog_base base;
	int64_t exptime;

	if (result_failed(r)) {
		lane_end(lane, OUTCOME_FAILED, r);
	} else if (r->status == RESULT_HIT && oplog_split(r->value, &base) && base.ref_count &&
		!lane_is_list(lane, &base) && ttl_exptime(lane_env(lane), r->ttl, &exptime)) {
		STAILQ_REMOVE_HEAD(&lane->batch, link);
		merge_force(lane->lanes, lane->waiter.key, base.block, exptime, op);
		lane_next(lane);
	} else {
		lane_end(lane, r->status == RESULT_HIT ? OUTCOME_DONE : OUTCOME_MISSING, NULL);
	}
}
