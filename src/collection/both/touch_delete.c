/*
 * The base must not outlive the parts. So a touch that extends its life extends that of the
 * parts first:
 *
 *     read the base -> extend: touch the parts -> touch and read the base
 *                             -> its references changed: touch those parts too
 *                   -> else:   touch and read the base -> touch the parts
 *     a part is missing: read the base again -> its references changed: continue with those
 *                                            -> else: the set is missing
 *
 * Two concurrent touches may leave the base with the time to live of one, and the parts with
 * that of the other. So each finally checks the time to live of the other kind: that of a part
 * after a touch of the base, that of the base after one of the parts. If another touch has
 * changed it, the parts are touched again.
 *
 * A delete reads the base and deletes it, both calls in one pipeline. Then the parts are
 * unreachable, and are deleted in the background.
 */
#include "collection/both/both.h"

#include <stdlib.h>

#include "collection/account.h"
#include "collection/machines.h"
#include "collection/rewrite/opening.h"
#include "collection/rewrite/parts.h"
#include "collection/text/lease.h"
#include "collection/ttl.h"
#include "util/alloc.h"

struct touch_delete {
	struct lane *lane;
	struct waiter read;     /* of the read before a delete, or of the check of a part */
	struct buf refs;        /* references of the base */
	bool reached;           /* touch: the parts of these references were touched */
	bool incomplete;        /* touch: at least one of these parts is missing */
	bool touched;           /* touch: the base was touched */
	int64_t exptime;        /* touch: exptime of the base for which the parts are touched */
	struct buf part;        /* touch: key of one of the parts */
	unsigned pending;       /* delete: number of its two calls in flight */
	struct result deletion; /* result of the deletion, without slices; `failure` has them */
	struct failure failure;
};

static lane_step touch_delete_on_base_read, touch_delete_on_base_touched, touch_delete_on_base_seen,
	touch_delete_on_deleted;
static void touch_delete_on_parts_touched(struct parts *parts);
static void touch_delete_on_part_seen(struct waiter *waiter, const struct result *r);
static void touch_delete_read_beside_delete(struct waiter *waiter, const struct result *r);

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
	buf_free(&t->part);
	failure_free(&t->failure);
	pool_put(lane_env(lane)->pool, t, sizeof(*t));
	lane_next(lane);
}

static void touch_delete_end_with(struct lane *lane, const struct result *r)
{
	if (result_failed(r))
		end(lane, OUTCOME_FAILED, r);
	else
		end(lane, r->status == RESULT_MISS ? OUTCOME_MISSING : OUTCOME_DONE, NULL);
}

static void read_base(struct lane *lane)
{
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_TTL },
		touch_delete_on_base_read);
}

void touch_start(struct lane *lane)
{
	start(lane)->exptime = lane_first(lane)->ttl;
	read_base(lane);
}

static void touch_base(struct lane *lane)
{
	struct call call = {
		.verb = CALL_GAT, .want = WANT_VALUE, .exptime = lane_first(lane)->ttl
	};

	lane_call(lane, call, touch_delete_on_base_touched);
}

static void touch_parts(struct lane *lane)
{
	struct touch_delete *t = lane->work;

	t->reached = true;
	parts_touch_all(lane->lanes, lane->waiter.key, buf_slice(&t->refs), t->exptime,
		lane_account(lane), touch_delete_on_parts_touched, lane);
}

/* Stores the references of the base that was read. Returns whether they have changed. */
static bool take_refs(struct touch_delete *t, struct slice value)
{
	struct buf before = t->refs;
	bool changed;

	t->refs = BUF_EMPTY;
	lease_add_refs(value, &t->refs);
	changed = !slice_equal(buf_slice(&t->refs), buf_slice(&before));
	buf_free(&before);
	return changed;
}

static void touch_delete_on_base_read(struct lane *lane, const struct result *r)
{
	struct base base = base_sort(lane, r);
	struct touch_delete *t = lane->work;

	if (base.kind == BASE_FAILED || base.kind == BASE_MISSING) {
		touch_delete_end_with(lane, r);
	} else if (base.form == OPLOG_NEWER) {
		/* Its parts cannot be found, so they would expire before the base. */
		end(lane, OUTCOME_NEWER, NULL);
	} else if (base.kind == BASE_FOREIGN || base.kind == BASE_OUTDATED) {
		lane_call(lane,
			(struct call){ .verb = CALL_TOUCH, .exptime = lane_first(lane)->ttl },
			touch_delete_end_with);
	} else if (!take_refs(t, r->value) && t->incomplete) {
		end(lane, OUTCOME_MISSING, NULL);
	} else if (buf_size(&t->refs) &&
		(t->touched || ttl_prolongs(lane_env(lane), lane_first(lane)->ttl, r->ttl))) {
		touch_parts(lane);
	} else {
		touch_base(lane);
	}
}

static void touch_delete_on_parts_touched(struct parts *parts)
{
	struct lane *lane = parts->arg;
	struct touch_delete *t = lane->work;

	t->incomplete = parts->missing > 0;
	buf_consume(&t->part, buf_size(&t->part));
	buf_add_slice(&t->part, parts->list[0].waiter.key);
	if (parts->failure.happened)
		end(lane, OUTCOME_FAILED, &parts->failure.result);
	else if (t->incomplete && lane_may_retry(lane))
		read_base(lane);
	else if (t->incomplete)
		end(lane, OUTCOME_BUSY, NULL);
	else if (t->touched)
		lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_TTL },
			touch_delete_on_base_seen);
	else
		touch_base(lane);
	parts_destroy(parts);
}

/*
 * Touches the parts, if that has not been done yet or if a compaction has replaced
 * them after the read.
 */
static void touch_delete_on_base_touched(struct lane *lane, const struct result *r)
{
	struct touch_delete *t = lane->work;

	t->touched = r->status == RESULT_HIT;
	if (t->touched && (take_refs(t, r->value) || !t->reached) && buf_size(&t->refs)) {
		touch_parts(lane);
	} else if (t->touched && buf_size(&t->refs)) {
		t->read = (struct waiter){ touch_delete_on_part_seen, buf_slice(&t->part) };
		env_get(lane_env(lane), WANT_TTL, &t->read);
	} else {
		touch_delete_end_with(lane, r);
	}
}

/* The touch is done. It does not fail if the check is impossible. */
static void touch_delete_on_part_seen(struct waiter *waiter, const struct result *r)
{
	const struct touch_delete *t =
		(struct touch_delete *)((char *)waiter - offsetof(struct touch_delete, read));
	struct lane *lane = t->lane;

	if (r->status == RESULT_HIT && r->ttl != TTL_UNKNOWN &&
		ttl_prolongs(lane_env(lane), t->exptime, r->ttl) && lane_may_retry(lane))
		touch_parts(lane);
	else
		end(lane, OUTCOME_DONE, NULL);
}

/*
 * Returns the seconds to live of the base for which the parts were touched. The parts live
 * longer by more than NEAR.
 */
static int64_t expected(const struct touch_delete *t)
{
	enum { NEAR = 5 };
	int64_t date = lane_env(t->lane)->unix_time;

	return t->exptime == 0 ? TTL_NEVER
			       : NEAR + (ttl_is_date(t->exptime) ? t->exptime - date : t->exptime);
}

static void touch_delete_on_base_seen(struct lane *lane, const struct result *r)
{
	struct touch_delete *t = lane->work;
	struct env *env = lane_env(lane);
	int64_t exptime;

	if (r->status == RESULT_HIT && ttl_exptime(env, r->ttl, &exptime) &&
		ttl_prolongs(env, exptime, expected(t)) && lane_may_retry(lane)) {
		t->exptime = exptime;
		touch_parts(lane);
	} else {
		end(lane, OUTCOME_DONE, NULL);
	}
}

/* A reply that is delivered again once the parts were touched. */
struct followers {
	struct lanes *lanes;
	struct account *account;
	struct waiter *waiter;
	struct result result;
	struct buf value;
};

static void touch_delete_on_followers_touched(struct parts *parts)
{
	struct followers *f = parts->arg;

	parts_destroy(parts);
	f->lanes->background--;
	account_use(f->account, 0, sizeof(*f) + f->value.cap);
	f->result.value = buf_slice(&f->value);
	f->waiter->done(f->waiter, &f->result);
	buf_free(&f->value);
	free(f);
}

bool touch_followers(struct lanes *lanes, struct account *account, int64_t exptime,
	struct waiter *waiter, const struct result *r)
{
	struct buf refs = BUF_EMPTY;
	struct followers *f;

	if (base_is_possible(r->value))
		lease_add_refs(r->value, &refs);
	if (buf_size(&refs) == 0)
		return false;
	f = xmalloc(sizeof(*f));
	*f = (struct followers){
		.lanes = lanes, .account = account, .waiter = waiter, .result = *r
	};
	f->result.line = slice_of("", 0);
	buf_add_slice(&f->value, r->value);
	account_use(account, sizeof(*f) + f->value.cap, 0);
	lanes->background++;
	parts_touch_all(lanes, waiter->key, buf_slice(&refs), exptime, account,
		touch_delete_on_followers_touched, f);
	buf_free(&refs);
	return true;
}

void delete_start(struct lane *lane)
{
	struct touch_delete *t = start(lane);

	t->pending = 2;
	t->read = (struct waiter){ touch_delete_read_beside_delete, lane->waiter.key };
	env_get(lane_env(lane), WANT_VALUE, &t->read);
	lane_call(lane, (struct call){ .verb = CALL_DELETE }, touch_delete_on_deleted);
}

/* If a call cannot be sent, its result may precede the reply to an earlier call. */
static void count_answer(struct touch_delete *t)
{
	struct lane *lane = t->lane;

	if (--t->pending > 0)
		return;
	if (t->deletion.status == RESULT_DONE)
		parts_forget_all(lane->lanes, lane->waiter.key, buf_slice(&t->refs));
	touch_delete_end_with(lane, t->failure.happened ? &t->failure.result : &t->deletion);
}

static void touch_delete_read_beside_delete(struct waiter *waiter, const struct result *r)
{
	struct touch_delete *t =
		(struct touch_delete *)((char *)waiter - offsetof(struct touch_delete, read));

	if (r->status == RESULT_HIT && r->value.n)
		lease_add_refs(r->value, &t->refs);
	count_answer(t);
}

static void touch_delete_on_deleted(struct lane *lane, const struct result *r)
{
	struct touch_delete *t = lane->work;

	t->deletion = *r;
	if (result_failed(r))
		failure_keep(&t->failure, r);
	count_answer(t);
}
