/*
 * Compaction of the base, alone in its lane:
 *
 *     read -> fold -> short enough: commit the folded log
 *                  -> else:         write it to new segments -> commit a base that refers to them
 *
 * A segment is referred to only after its write was acknowledged. Where the commit fails, the new segments are deleted again,
 * but only when it is sure that nothing refers to them: after an unknown outcome they stay.
 */
#include <stdlib.h>

#include "collection/text/fold.h"
#include "collection/lane.h"
#include "collection/segments.h"
#include "util/alloc.h"

struct compaction {
	lane_after *after;
	struct buf prefix, replacement;
	struct segment_writer writer;
	size_t head_refs; /* bytes of the writer's references that are to what was before the block */
	int64_t exptime;  /* of new segments */
	bool spills;
};

static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct compaction *c = lane->work;
	lane_after *after = c->after;
	struct result kept = { 0 };
	struct buf line = BUF_EMPTY;
	bool failed = false;

	/* The failure may be the writer's, which ends here. */
	if (failure)
		segments_keep_failure(failure, &failed, &kept, &line);
	if (c->spills)
		segment_writer_fini(&c->writer);
	buf_free(&c->prefix);
	buf_free(&c->replacement);
	free(c);
	lane->work = NULL;
	after(lane, status, failed ? &kept : NULL);
	buf_free(&line);
}

static void committed(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct compaction *c = lane->work;
	struct lanes *lanes = lane->lanes;
	struct oplog_base base;

	if (status == OUTCOME_DONE) {
		lanes->stats.compactions++;
		lanes->stats.spills += c->spills;
		if (c->spills)
			segment_writer_follow(&c->writer, lane_rest(lane)->commit.ttl);
		if (oplog_split(buf_slice(&c->replacement), &base) && base.ref_count)
			merge_consider(lanes, lane->waiter.key, base.refs, c->exptime);
	} else if (c->spills && status != OUTCOME_FAILED) {
		segments_forget(lanes, lane->waiter.key, buf_slice(&c->writer.refs));
	}
	end(lane, status, failure);
}

static void segment_written(struct segment_writer *writer)
{
	struct lane *lane = writer->arg;
	struct compaction *c = lane->work;
	struct oplog_base base;

	if (writer->pending)
		return;
	if (writer->failed) {
		segments_forget(lane->lanes, lane->waiter.key, buf_slice(&writer->refs));
		end(lane, OUTCOME_FAILED, &writer->failure);
		return;
	}
	(void)oplog_split(buf_slice(&c->prefix), &base);
	buf_add_slice(&c->replacement, slice_of(buf_slice(&writer->refs).p, c->head_refs));
	buf_add_slice(&c->replacement, base.refs);
	buf_add_slice(&c->replacement, slice_skip(buf_slice(&writer->refs), c->head_refs));
	commit_run(lane, buf_slice(&c->prefix), buf_slice(&c->replacement), NULL, committed);
}

/* Over older segments a removal must stay, since it may be of a member that is in them. */
static void encode(const struct fold *fold, bool over_segments, struct buf *out)
{
	if (over_segments)
		fold_encode_delta(fold, out);
	else
		fold_encode(fold, out);
}

/*
 * What was put before the references goes to segments before theirs: it is older than all. So of it only additions matter, and
 * that clean segments follow does no harm.
 */
static void write_head(struct compaction *c, struct slice head, uint64_t seed)
{
	struct fold fold = { .seed = seed };
	struct buf log = BUF_EMPTY;

	if (fold_log(&fold, head))
		fold_encode(&fold, &log);
	segment_writer_add(&c->writer, buf_slice(&log), true);
	c->head_refs = buf_size(&c->writer.refs);
	buf_free(&log);
	fold_free(&fold);
}

static void rewrite(struct lane *lane, const struct result *r, const struct oplog_base *base, const struct fold *fold,
	int64_t exptime)
{
	const struct collection_options *options = lane_host(lane)->options;
	bool over = base->ref_count > 0;
	size_t size = over ? fold_delta_size(fold) : fold_log_size(fold);
	struct compaction *c = lane->work;
	struct buf log = BUF_EMPTY;

	c->exptime = exptime;
	buf_add_slice(&c->prefix, r->value);
	c->spills = base->head.n || size > (over ? options->base_size / 4 : options->base_size);
	if (!c->spills) {
		buf_add_slice(&c->replacement, base->refs);
		encode(fold, over, &c->replacement);
		commit_run(lane, buf_slice(&c->prefix), buf_slice(&c->replacement), r, committed);
		return;
	}
	encode(fold, over, &log);
	segment_writer_init(&c->writer, lane->lanes, lane->waiter.key, over ? OPLOG_DELTA : OPLOG_CLEAN, exptime,
		segment_written, lane);
	write_head(c, base->head, fold->seed);
	segment_writer_add(&c->writer, buf_slice(&log), true);
	buf_free(&log);
	if (c->writer.pending == 0)
		segment_written(&c->writer);
}

/* Whether a rewrite would gain a tenth at least, or a base that is too long grow shorter. */
static bool is_worth_it(const struct lane *lane, const struct oplog_base *base, const struct fold *fold)
{
	size_t size = base->ref_count ? fold_delta_size(fold) : fold_log_size(fold);

	return base->head.n || size > lane_host(lane)->options->base_size || size + size / 9 < base->log.n;
}

static void go_over_to_list(struct lane *lane, const struct result *r)
{
	struct compaction *c = lane->work;
	lane_after *after = c->after;

	free(c);
	lane->work = NULL;
	list_compact(lane, r, after);
}

static void found(struct lane *lane, const struct result *r)
{
	struct fold fold = { .seed = lane_host(lane)->seed };
	struct oplog_base base;
	int64_t exptime;

	if (result_failed(r)) {
		end(lane, OUTCOME_FAILED, r);
	} else if (r->status == RESULT_MISS) {
		end(lane, OUTCOME_MISSING, NULL);
	} else if (!oplog_split(r->value, &base)) {
		lane->lanes->stats.corrupt_values++;
		end(lane, OUTCOME_CORRUPT, NULL);
	} else if (lane_is_list(lane, &base)) {
		go_over_to_list(lane, r);
	} else if (!fold_log(&fold, base.log)) {
		lane->lanes->stats.corrupt_values++;
		end(lane, OUTCOME_CORRUPT, NULL);
	} else if (!lane_exptime(lane_host(lane), r->ttl, &exptime)) {
		end(lane, OUTCOME_DONE, NULL);
	} else if (!is_worth_it(lane, &base, &fold)) {
		if (base.ref_count && base.head.n == 0)
			merge_consider(lane->lanes, lane->waiter.key, base.refs, exptime);
		end(lane, OUTCOME_DONE, NULL);
	} else {
		rewrite(lane, r, &base, &fold, exptime);
	}
	fold_free(&fold);
}

void compact_run(struct lane *lane, lane_after *after)
{
	struct compaction *c = xcalloc(1, sizeof(*c));

	c->after = after;
	lane->work = c;
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL }, found);
}

/*
 * All segments are wanted in one: the operation goes over to the merge, and the lane goes on. The commit of a merge finds out
 * for itself whether anything stands before the references.
 */
static void merge_all(struct lane *lane, const struct result *r)
{
	struct op *op = STAILQ_FIRST(&lane->batch);
	struct oplog_base base;
	int64_t exptime;

	if (result_failed(r)) {
		lane_finish_failed(lane, r);
	} else if (r->status == RESULT_HIT && oplog_split(r->value, &base) && base.ref_count &&
		!lane_is_list(lane, &base) && lane_exptime(lane_host(lane), r->ttl, &exptime)) {
		STAILQ_REMOVE_HEAD(&lane->batch, link);
		merge_force(lane->lanes, lane->waiter.key, base.refs, exptime, op);
		lane_next(lane);
	} else {
		lane_finish(lane, r->status == RESULT_HIT ? OUTCOME_DONE : OUTCOME_MISSING);
	}
}

static void op_compacted(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	lane->tending = false;
	if (status == OUTCOME_FAILED)
		lane_finish_failed(lane, failure);
	else if (status == OUTCOME_DONE && STAILQ_FIRST(&lane->batch)->create)
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_TTL }, merge_all);
	else
		lane_finish(lane, status);
}

void compact_start(struct lane *lane)
{
	compact_run(lane, op_compacted);
}
