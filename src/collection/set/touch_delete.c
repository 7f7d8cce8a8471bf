/*
 * A touch extends the parts first, since the base must not outlive them:
 *
 *     read the base -> touch all that it refers to -> touch and read the base -> its references changed: touch those too
 *
 * A delete reads the base and deletes it, both calls in one pipeline. Then the parts are unreachable, and are
 * deleted in the background.
 */
#include "collection/set/set.h"

#include "collection/machines.h"
#include "collection/rewrite/parts.h"
#include "collection/text/lease.h"

struct touch_delete {
	struct lane *lane;
	struct waiter read;     /* of the read before a delete */
	struct buf refs;        /* references of the base */
	unsigned pending;       /* of a delete: its two calls */
	struct result deletion; /* the result of the second, without slices; `failure` has them */
	struct failure failure;
};

static lane_step base_read, base_touched, deleted;
static void parts_touched(struct parts *parts), late_parts_touched(struct parts *parts);
static void read_beside_delete(struct waiter *waiter, const struct result *r);

static struct touch_delete *start(struct lane *lane)
{
	struct touch_delete *t = pool_get(lane_env(lane)->pool, sizeof(*t));

	*t = (struct touch_delete){ .lane = lane };
	lane->work = t;
	return t;
}

static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct touch_delete *t = lane->work;

	lane->work = NULL;
	lane_end_all(lane, &(struct outcome){ .status = status, .result = failure });
	buf_free(&t->refs);
	failure_free(&t->failure);
	pool_put(lane_env(lane)->pool, t, sizeof(*t));
	lane_next(lane);
}

static void end_with(struct lane *lane, const struct result *r)
{
	if (result_failed(r))
		end(lane, OUTCOME_FAILED, r);
	else
		end(lane, r->status == RESULT_MISS ? OUTCOME_MISSING : OUTCOME_DONE, NULL);
}

static struct call touch_call(const struct lane *lane)
{
	return (struct call){ .verb = CALL_TOUCH, .exptime = lane_first(lane)->ttl };
}

void touch_start(struct lane *lane)
{
	start(lane);
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, base_read);
}

static void touch_base(struct lane *lane)
{
	struct call call = { .verb = CALL_GAT, .want = WANT_VALUE, .exptime = lane_first(lane)->ttl };

	lane_call(lane, call, base_touched);
}

static bool may_be_base(struct slice value)
{
	return value.n && memchr("+-@", value.p[0], 3);
}

static void base_read(struct lane *lane, const struct result *r)
{
	struct oplog_base base = { .form = OPLOG_CORRUPT };
	struct touch_delete *t = lane->work;

	if (result_failed(r) || r->status == RESULT_MISS) {
		end_with(lane, r);
	} else if (!may_be_base(r->value) || (!oplog_split(r->value, &base) && base.form != OPLOG_LOADING)) {
		/* The parts of a newer form cannot be found, so they would expire before it. */
		if (base.form == OPLOG_NEWER)
			end(lane, OUTCOME_NEWER, NULL);
		else
			lane_call(lane, touch_call(lane), end_with);
	} else {
		lease_add_refs(r->value, &t->refs);
		if (buf_size(&t->refs))
			parts_call_all(lane->lanes, lane->waiter.key, buf_slice(&t->refs), touch_call(lane),
				parts_touched, lane);
		else
			touch_base(lane);
	}
}

static void parts_touched(struct parts *parts)
{
	struct lane *lane = parts->arg;

	if (parts->failure.happened)
		end(lane, OUTCOME_FAILED, &parts->failure.result);
	else
		touch_base(lane);
	parts_destroy(parts);
}

/* A compaction may have replaced the parts after the first read. */
static void base_touched(struct lane *lane, const struct result *r)
{
	const struct touch_delete *t = lane->work;
	struct buf refs = BUF_EMPTY;

	if (r->status == RESULT_HIT)
		lease_add_refs(r->value, &refs);
	if (buf_size(&refs) == 0 || slice_equal(buf_slice(&refs), buf_slice(&t->refs)))
		end_with(lane, r);
	else
		parts_call_all(
			lane->lanes, lane->waiter.key, buf_slice(&refs), touch_call(lane), late_parts_touched, lane);
	buf_free(&refs);
}

static void late_parts_touched(struct parts *parts)
{
	struct lane *lane = parts->arg;

	parts_destroy(parts);
	end(lane, OUTCOME_DONE, NULL);
}

void touch_followers(struct lanes *lanes, struct slice key, struct slice value, int64_t exptime)
{
	struct buf refs = BUF_EMPTY;

	if (may_be_base(value))
		lease_add_refs(value, &refs);
	parts_touch_all(lanes, key, buf_slice(&refs), exptime);
	buf_free(&refs);
}

void delete_start(struct lane *lane)
{
	struct touch_delete *t = start(lane);

	t->pending = 2;
	t->read = (struct waiter){ read_beside_delete, lane->waiter.key };
	env_get(lane_env(lane), WANT_VALUE, &t->read);
	lane_call(lane, (struct call){ .verb = CALL_DELETE }, deleted);
}

/* A call that cannot be sent may be answered before one that was. */
static void count_answer(struct touch_delete *t)
{
	struct lane *lane = t->lane;

	if (--t->pending > 0)
		return;
	if (t->deletion.status == RESULT_DONE)
		parts_forget_all(lane->lanes, lane->waiter.key, buf_slice(&t->refs));
	end_with(lane, t->failure.happened ? &t->failure.result : &t->deletion);
}

static void read_beside_delete(struct waiter *waiter, const struct result *r)
{
	struct touch_delete *t = (struct touch_delete *)((char *)waiter - offsetof(struct touch_delete, read));

	if (r->status == RESULT_HIT && r->value.n)
		lease_add_refs(r->value, &t->refs);
	count_answer(t);
}

static void deleted(struct lane *lane, const struct result *r)
{
	struct touch_delete *t = lane->work;

	t->deletion = *r;
	if (result_failed(r))
		failure_keep(&t->failure, r);
	count_answer(t);
}
