/*
 * Touching and deleting what may be a collection with segments. A touch reaches the segments first: a base must not outlive
 * them. A delete asks what the base refers to and deletes it in one go; its segments follow, which nobody can reach any more.
 */
#include "collection/lane.h"
#include "collection/segments.h"

static void end(struct lane *lane, const struct result *r)
{
	if (result_failed(r))
		lane_finish_failed(lane, r);
	else
		lane_finish(lane, r->status == RESULT_MISS ? OUTCOME_MISSING : OUTCOME_DONE);
}

static void deleted(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE)
		segments_forget_all(lane->lanes, lane->waiter.key, buf_slice(&lane->looked_refs));
	end(lane, r);
}

static void late_done(struct segments *segments)
{
	struct lane *lane = segments->arg;

	segments_destroy(segments);
	lane_finish(lane, OUTCOME_DONE);
}

/* The base tells with its touch what it refers to by then: a compaction may have put other segments in place. */
static void base_touched(struct lane *lane, const struct result *r)
{
	struct call touch = { .verb = CALL_TOUCH, .exptime = STAILQ_FIRST(&lane->batch)->ttl };
	struct oplog_base base;

	if (r->status != RESULT_HIT || !oplog_split(r->value, &base) || base.ref_count == 0 ||
		slice_equal(base.refs, buf_slice(&lane->looked_refs)))
		end(lane, r);
	else
		segments_call_all(lane->lanes, lane->waiter.key, base.refs, touch, late_done, lane);
}

static void touch_base(struct lane *lane)
{
	int64_t ttl = STAILQ_FIRST(&lane->batch)->ttl;

	lane_call(lane, (struct call){ .verb = CALL_GAT, .want = WANT_VALUE, .exptime = ttl }, base_touched);
}

static void segments_done(struct segments *segments)
{
	struct lane *lane = segments->arg;

	if (segments->failed) {
		lane_end_all(lane, &(struct outcome){ .status = OUTCOME_FAILED, .result = &segments->failure });
		segments_destroy(segments);
		lane_next(lane);
		return;
	}
	segments_destroy(segments);
	touch_base(lane);
}

static void found(struct lane *lane, const struct result *r)
{
	struct oplog_base base;
	struct call touch = { .verb = CALL_TOUCH, .exptime = STAILQ_FIRST(&lane->batch)->ttl };

	buf_consume(&lane->looked_refs, buf_size(&lane->looked_refs));
	if (result_failed(r) || r->status == RESULT_MISS) {
		end(lane, r);
	} else if (r->value.n == 0 || !memchr("+-@", r->value.p[0], 3)) {
		lane_call(lane, touch, end);
	} else if (!oplog_split(r->value, &base)) {
		/* What it refers to cannot be touched with it. */
		if (base.form == OPLOG_NEWER)
			lane_finish(lane, lane_unreadable(lane, base.form));
		else
			lane_call(lane, touch, end);
	} else if (base.ref_count == 0) {
		touch_base(lane);
	} else {
		buf_add_slice(&lane->looked_refs, base.refs);
		segments_call_all(lane->lanes, lane->waiter.key, base.refs, touch, segments_done, lane);
	}
}

static void found_for_delete(struct lane *lane, const struct result *r)
{
	struct oplog_base base;

	if (result_failed(r) || r->status == RESULT_MISS) {
		end(lane, r);
		return;
	}
	buf_consume(&lane->looked_refs, buf_size(&lane->looked_refs));
	if (oplog_split(r->value, &base))
		buf_add_slice(&lane->looked_refs, base.refs);
	lane_call(lane, (struct call){ .verb = CALL_DELETE }, deleted);
}

void sweep_start(struct lane *lane)
{
	if (STAILQ_FIRST(&lane->batch)->create) {
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, found);
		return;
	}
	if (lane_look(lane, WANT_VALUE))
		lane_call(lane, (struct call){ .verb = CALL_DELETE }, deleted);
	else
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, found_for_delete);
}
