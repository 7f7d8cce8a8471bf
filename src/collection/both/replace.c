/*
 * Replaces a set or list:
 *
 *     write a long set to a run -> read the base
 *         -> a collection: CAS with the token of that read -> lost: read again
 *         -> missing: ADD                                  -> lost: read again
 *
 * It never uses `set`, which deletes the old item if it fails.
 */
#include "collection/machines.h"

#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/rewrite/opening.h"
#include "collection/set/run_writer.h"
#include "collection/text/fold.h"
#include "collection/text/lease.h"
#include "util/alloc.h"

struct replacement {
	struct run_writer writer; /* all zeroes if the base contains the log itself */
	struct fold fold;         /* fold of the part of the log that was read */
	struct slice rest;        /* unread rest of the log */
	/* The base was sent, and the last reply does not show that it was refused. */
	bool sent;
	struct buf base;     /* the new base */
	struct buf old_refs; /* references of the old base */
};

static lane_step replace_on_base_read, replace_on_written;
static void replace_on_run_written(void *arg);

/*
 * Deletes the old parts after success. After a failure deletes the new run, if no
 * base can refer to it.
 */
static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct replacement *p = lane->work;
	bool refused = !p->sent || status != OUTCOME_FAILED || result_stored_nothing(failure);

	lane_end_all(lane, &(struct outcome){ .status = status, .result = failure });
	if (status == OUTCOME_DONE)
		parts_forget_all(lane->lanes, lane->waiter.key, buf_slice(&p->old_refs));
	else if (refused)
		part_writer_forget(&p->writer.parts);
	run_writer_fini(&p->writer);
	fold_free(&p->fold);
	buf_free(&p->base);
	buf_free(&p->old_refs);
	free(p);
	lane->work = NULL;
	lane_next(lane);
}

static void read_base(struct lane *lane)
{
	struct replacement *p = lane->work;

	p->sent = false;
	lane_call(lane, &(struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS },
		replace_on_base_read);
}

static void replace_fill_run(struct lane *lane, const struct result *r)
{
	struct replacement *p = lane->work;

	(void)r;
	if (!run_writer_fill_slice(&p->writer, lane, replace_fill_run))
		return;
	run_writer_finish(&p->writer);
}

static void folded(struct lane *lane)
{
	struct replacement *p = lane->work;

	if (fold_log_size(&p->fold, false) > lane_log_size(lane)) {
		run_writer_init(&p->writer, lane->lanes, lane->waiter.key, lane_first(lane)->ttl,
			replace_on_run_written, lane);
		run_writer_fill(&p->writer, &p->fold, false);
		replace_fill_run(lane, NULL);
	} else {
		fold_encode(&p->fold, false, &p->base);
		read_base(lane);
	}
}

static void replace_fold_some(struct lane *lane, const struct result *r)
{
	struct replacement *p = lane->work;

	(void)r;
	while (p->rest.n) {
		if (!fold_portion(&p->fold, &p->rest)) {
			end(lane, OUTCOME_CORRUPT, NULL);
			return;
		}
		if (lane_pauses(lane, FOLD_STEPS, replace_fold_some))
			return;
	}
	folded(lane);
}

/* Moving a list to segments is left to compaction. */
void replace_start(struct lane *lane)
{
	struct op *op = lane_first(lane);
	struct replacement *p = xcalloc(1, sizeof(*p));

	lane->work = p;
	p->fold.seed = lane_env(lane)->seed;
	p->rest = op->log;
	if (op->built) {
		buf_add_slice(&p->base, op->log);
		read_base(lane);
	} else if (op_is_list(op)) {
		oplog_add_mark(&p->base, true, false);
		buf_add_slice(&p->base, op->log);
		read_base(lane);
	} else {
		replace_fold_some(lane, NULL);
	}
}

static void replace_on_run_written(void *arg)
{
	struct lane *lane = arg;
	struct replacement *p = lane->work;

	if (p->writer.parts.pending || !p->writer.finished)
		return;
	if (p->writer.parts.failure.happened) {
		end(lane, OUTCOME_FAILED, &p->writer.parts.failure.result);
		return;
	}
	oplog_add_mark(&p->base, false, p->writer.parts.wide);
	run_writer_ref(&p->writer, &p->base);
	read_base(lane);
}

/*
 * Returns the outcome if the condition of the operation does not hold. A collection that is
 * being loaded counts as missing, but REPLACE_MISSING must not overwrite it: the additions by
 * other clients would be lost.
 */
static enum outcome_status condition(struct lane *lane, const struct result *r, enum base_kind kind)
{
	bool loading = kind == BASE_LOADING && lane_first(lane)->mode != REPLACE_MISSING;

	return lane_condition(lane, kind != BASE_MISSING && !loading, r->cas);
}

static void replace_on_base_read(struct lane *lane, const struct result *r)
{
	struct replacement *p = lane->work;
	const struct op *op = lane_first(lane);
	struct base base = base_sort_whole(lane, r);
	bool hit = base.kind != BASE_MISSING;
	enum outcome_status status = condition(lane, r, base.kind);
	struct call call = {
		.verb = hit ? CALL_CAS : CALL_ADD,
		.value = buf_slice(&p->base),
		.flags = op->flags,
		.exptime = op->ttl,
		.number = r->cas,
		.connection = r->connection,
	};

	if (base.kind == BASE_FAILED) {
		end(lane, OUTCOME_FAILED, r);
	} else if (base.kind == BASE_FOREIGN) {
		end(lane, lane_unreadable(lane, base.form), NULL);
	} else if (status == OUTCOME_DONE && hit && r->cas == 0) {
		end(lane, OUTCOME_NO_CAS, NULL);
	} else if (status != OUTCOME_DONE) {
		end(lane, status, NULL);
	} else {
		if (hit) {
			buf_consume(&p->old_refs, buf_size(&p->old_refs));
			lease_add_refs(r->value, &p->old_refs);
		}
		p->sent = true;
		lane_call(lane, &call, replace_on_written);
	}
}

static void replace_on_written(struct lane *lane, const struct result *r)
{
	const struct op *op = lane_first(lane);

	if (r->status == RESULT_DONE) {
		if (op_is_list(op) && op->log.n > 2 * lane_env(lane)->options->base_size)
			lane_request_compaction(lane);
		end(lane, OUTCOME_DONE, NULL);
	} else if (result_failed(r)) {
		end(lane, OUTCOME_FAILED, r);
	} else if (lane_may_retry(lane)) {
		read_base(lane);
	} else {
		end(lane, OUTCOME_BUSY, NULL);
	}
}
