/*
 * A touch of a base appends its date (text/date.h), and then touches and reads the base, both calls
 * in one pipeline. If the base then has no date, it was replaced in between; the touch is repeated.
 * If it has another date, that of a later touch, the base is touched with that. So after the last
 * of several concurrent touches, the item expires at the last date of its base.
 *
 * The base must not outlive the parts. So a touch that extends its life extends that of the
 * parts first:
 *
 *     read the base -> extend: touch the parts -> append, touch and read the base
 *                             -> its references changed: touch those parts too
 *                   -> else:   append, touch and read the base -> touch the parts
 *                   -> empty:  replace it by itself, with a CAS
 *                   -> no set or list: touch it
 *     a part is missing: read the base again -> its references changed: continue with those
 *                                            -> else: the set is missing
 *     the append is refused, but the base is there: it is too large: compact it, and start again
 *
 * An empty value may be an emptied set or an item of a client, so its bytes must not change.
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
	/* Of the read before a delete; of a touch's append, or its check of a part. */
	struct waiter read;
	struct buf refs;        /* references of the base */
	bool reached;           /* touch: the parts of these references were touched */
	bool incomplete;        /* touch: at least one of these parts is missing */
	bool touched;           /* touch: the base was touched */
	int64_t exptime;        /* touch: exptime of the base for which the parts are touched */
	int64_t target;         /* touch: exptime of the touch of the base */
	int64_t date;           /* touch: the date of that; DATE_NONE: it is in the past */
	struct buf part;        /* touch: key of one of the parts */
	unsigned pending;       /* number of calls in flight, of two */
	bool refused;           /* touch: the append was refused */
	struct buf value;       /* touch: the base, as it was read by the touch */
	struct result deletion; /* result of the deletion, without slices; `failure` has them */
	struct result touch;    /* the same of the touch */
	struct failure failure;
};

static lane_step touch_delete_on_base_read, touch_delete_on_base_touched, touch_delete_on_base_seen,
	touch_delete_on_empty_replaced, touch_delete_on_deleted, touch_delete_on_dates_dropped;
static lane_after touch_delete_on_compacted;
static void touch_delete_on_appended(struct waiter *waiter, const struct result *r);
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

static void free_work(struct lane *lane)
{
	struct touch_delete *t = lane->work;

	lane->work = NULL;
	buf_free(&t->refs);
	buf_free(&t->part);
	buf_free(&t->value);
	failure_free(&t->failure);
	pool_put(lane_env(lane)->pool, t, sizeof(*t));
}

/*
 * The failure may belong to the work, which is freed last. The outcome of a touch has the reply
 * about the base.
 */
static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct touch_delete *t = lane->work;

	t->touch.value = buf_slice(&t->value);
	if (status == OUTCOME_DONE && t->touch.status == RESULT_HIT && t->touched)
		failure = &t->touch;
	lane_end_all(lane, &(struct outcome){ .status = status, .result = failure });
	free_work(lane);
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
	lane_call(lane,
		&(struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL },
		touch_delete_on_base_read);
}

static void start_touch(struct lane *lane)
{
	struct touch_delete *t = lane->work;
	int64_t exptime = lane_first(lane)->ttl;

	t->exptime = t->target = exptime;
	t->touched = t->reached = t->incomplete = false;
	read_base(lane);
}

void touch_start(struct lane *lane)
{
	(void)start(lane);
	start_touch(lane);
}

/* Reads the base with it, for the references and the date that it has then. */
static void touch_only(struct lane *lane)
{
	struct touch_delete *t = lane->work;
	struct call call = {
		.verb = CALL_GAT, .want = WANT_VALUE | WANT_CAS | WANT_TTL, .exptime = t->target
	};

	t->pending++;
	lane_call(lane, &call, touch_delete_on_base_touched);
}

static void touch_base(struct lane *lane)
{
	struct touch_delete *t = lane->work;
	struct env *env = lane_env(lane);
	struct buf token = BUF_EMPTY;

	t->date = t->target < 0 ? DATE_NONE : keep_date_from(lane, t->target);
	if (t->date != DATE_NONE) {
		date_add(&token, t->date);
		t->pending++;
		t->read = (struct waiter){ touch_delete_on_appended, lane->waiter.key };
		env->call(env,
			&(struct call){ .verb = CALL_APPEND,
				.server = CALL_ANY_SERVER,
				.key = lane->waiter.key,
				.value = buf_slice(&token) },
			&t->read);
		buf_free(&token);
	}
	touch_only(lane);
}

/* The new CAS id makes concurrent rewrites fail, as that of an append does. */
static void touch_empty(struct lane *lane, const struct result *r)
{
	const struct touch_delete *t = lane->work;
	struct call call = { .verb = CALL_TOUCH, .exptime = t->target };

	if (r->cas)
		call = (struct call){
			.verb = CALL_CAS,
			.value = SLICE(""),
			.flags = r->flags,
			.exptime = t->target,
			.number = r->cas,
			.connection = r->connection,
		};
	lane_call(lane, &call, touch_delete_on_empty_replaced);
}

static void touch_delete_on_empty_replaced(struct lane *lane, const struct result *r)
{
	if ((r->status == RESULT_EXISTS || r->status == RESULT_NOT_STORED) && lane_may_retry(lane))
		read_base(lane);
	else if (r->status == RESULT_EXISTS || r->status == RESULT_NOT_STORED)
		end(lane, OUTCOME_BUSY, NULL);
	else
		touch_delete_end_with(lane, r);
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
	struct base base = base_sort_whole(lane, r);
	struct touch_delete *t = lane->work;

	if (base.kind == BASE_FAILED || base.kind == BASE_MISSING) {
		touch_delete_end_with(lane, r);
	} else if (base.form == OPLOG_NEWER) {
		/* Its parts cannot be found, so they would expire before the base. */
		end(lane, OUTCOME_NEWER, NULL);
	} else if (base.kind == BASE_FOREIGN || base.kind == BASE_OUTDATED) {
		lane_call(lane,
			&(struct call){ .verb = CALL_TOUCH, .exptime = lane_first(lane)->ttl },
			touch_delete_end_with);
	} else if (r->value.n == 0 && lane->rule->copies < 2) {
		touch_empty(lane, r);
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
		lane_call(lane, &(struct call){ .verb = CALL_GET, .want = WANT_TTL },
			touch_delete_on_base_seen);
	else
		touch_base(lane);
	parts_destroy(parts);
}

/* --- after the touch --- */

/* Too many dates would fill the base. If the CAS loses a race, they stay until the next touch. */
static void drop_dates(struct lane *lane)
{
	enum { MANY = 16 };
	struct touch_delete *t = lane->work;
	struct call call;

	if (t->touch.status == RESULT_HIT && t->touch.cas && lane->rule->copies < 2 &&
		date_count(buf_slice(&t->value)) > MANY) {
		call = keep_cas(&t->value, &t->touch, t->date);
		lane_call(lane, &call, touch_delete_on_dates_dropped);
	} else {
		end(lane, OUTCOME_DONE, NULL);
	}
}

static void touch_delete_on_dates_dropped(struct lane *lane, const struct result *r)
{
	(void)r;
	end(lane, OUTCOME_DONE, NULL);
}

/* The append has not changed the base, which is there: it would be too large. */
static void compact_full(struct lane *lane)
{
	if (!lane_may_retry(lane)) {
		end(lane, OUTCOME_TOO_LARGE, NULL);
		return;
	}
	free_work(lane);
	compact_run(lane, touch_delete_on_compacted);
}

static void touch_delete_on_compacted(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	if (status == OUTCOME_FAILED) {
		lane_end(lane, status, failure);
		return;
	}
	touch_start(lane);
}

/* Returns whether the base that was touched does not have the date of the touch, and repeats it. */
static bool is_repeated(struct lane *lane, struct slice value)
{
	struct touch_delete *t = lane->work;
	struct base base = base_sort_whole(lane, &t->touch);
	int64_t date = date_last(value);

	if (t->date == DATE_NONE || date == t->date || base.kind == BASE_FOREIGN ||
		!lane_may_retry(lane))
		return false;
	if (date == DATE_NONE) {
		start_touch(lane);
	} else {
		t->reached = false;
		t->date = t->target = date;
		t->exptime = keep_exptime(lane, date);
		touch_only(lane);
	}
	return true;
}

/*
 * Touches the parts, if that has not been done yet or if a compaction has replaced
 * them after the read.
 */
static void was_touched(struct lane *lane)
{
	struct touch_delete *t = lane->work;
	const struct result *r = &t->touch;

	if (t->failure.happened) {
		end(lane, OUTCOME_FAILED, &t->failure.result);
		return;
	}
	t->touch.value = buf_slice(&t->value);
	t->touched = r->status == RESULT_HIT;
	if (t->touched && t->refused) {
		compact_full(lane);
		return;
	}
	if (t->touched && is_repeated(lane, r->value))
		return;
	if (t->touched && (take_refs(t, r->value) || !t->reached) && buf_size(&t->refs)) {
		touch_parts(lane);
	} else if (t->touched && buf_size(&t->refs)) {
		t->read = (struct waiter){ touch_delete_on_part_seen, buf_slice(&t->part) };
		env_get(lane_env(lane), WANT_TTL, &t->read);
	} else if (t->touched) {
		drop_dates(lane);
	} else {
		touch_delete_end_with(lane, r);
	}
}

/* If a call cannot be sent, its result may precede that of the append. */
static void count_touch(struct lane *lane, const struct result *r)
{
	struct touch_delete *t = lane->work;

	if (result_failed(r))
		failure_keep(&t->failure, r);
	if (--t->pending == 0)
		was_touched(lane);
}

static void touch_delete_on_appended(struct waiter *waiter, const struct result *r)
{
	struct touch_delete *t =
		(struct touch_delete *)((char *)waiter - offsetof(struct touch_delete, read));

	t->refused = r->status == RESULT_NOT_STORED;
	count_touch(t->lane, r);
}

static void touch_delete_on_base_touched(struct lane *lane, const struct result *r)
{
	struct touch_delete *t = lane->work;

	buf_consume(&t->value, buf_size(&t->value));
	buf_add_slice(&t->value, r->value);
	t->touch = result_bare(r);
	count_touch(lane, r);
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
		drop_dates(lane);
}

/*
 * Returns the seconds to live of the base for which the parts were touched. The parts live
 * longer by more than NEAR.
 */
static int64_t expected(const struct touch_delete *t)
{
	enum { NEAR = 5 };
	int64_t now = env_server_time(lane_env(t->lane), t->lane->waiter.key);

	return t->exptime == 0 ? TTL_NEVER
			       : NEAR + (ttl_is_date(t->exptime) ? t->exptime - now : t->exptime);
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
		drop_dates(lane);
	}
}

/* --- a base that was touched as an item --- */

/* The touch of a base, whose reply the waiter receives. */
struct followers {
	struct op op;
	struct lanes *lanes;
	struct waiter *waiter;
};

static void touch_delete_on_followers_touched(struct op *op, const struct outcome *outcome)
{
	struct followers *f = (struct followers *)op;
	struct call call = { .verb = CALL_GAT,
		.want = WANT_VALUE | WANT_CAS | WANT_TTL,
		.server = CALL_ANY_SERVER,
		.key = op->key,
		.exptime = op->ttl };

	f->lanes->background--;
	account_use(op->account, 0, sizeof(*f));
	if (outcome->result)
		f->waiter->done(f->waiter, outcome->result);
	else if (outcome->status == OUTCOME_MISSING)
		f->waiter->done(f->waiter, &(struct result){ .status = RESULT_MISS });
	else
		/* Another client has replaced the base by an item. */
		lanes_call(f->lanes, op->account, &call, f->waiter);
	free(f);
}

bool touch_is_base(const struct lanes *lanes, struct slice key, struct slice value)
{
	struct oplog_base split;
	struct lease_base loading;

	if (value.n == 0 || !base_is_possible(value) ||
		rules_collection(lanes->env->rules, key)->encoding != ENCODING_OPLOG)
		return false;
	if (oplog_split(value, &split))
		return oplog_is_log(split.log);
	return split.form == OPLOG_LOADING && lease_split(value, &loading);
}

bool touch_followers(struct lanes *lanes, struct account *account, int64_t exptime,
	struct waiter *waiter, const struct result *r)
{
	struct followers *f;

	if (!touch_is_base(lanes, waiter->key, r->value))
		return false;
	f = xmalloc(sizeof(*f));
	*f = (struct followers){
		.op = { .kind = OP_TOUCH,
			.key = waiter->key,
			.ttl = exptime,
			.account = account,
			.done = touch_delete_on_followers_touched },
		.lanes = lanes,
		.waiter = waiter,
	};
	account_use(account, sizeof(*f), 0);
	lanes->background++;
	lanes_submit(lanes, &f->op);
	return true;
}

/* --- delete --- */

void delete_start(struct lane *lane)
{
	struct touch_delete *t = start(lane);

	t->pending = 2;
	t->read = (struct waiter){ touch_delete_read_beside_delete, lane->waiter.key };
	env_get(lane_env(lane), WANT_VALUE, &t->read);
	lane_call(lane, &(struct call){ .verb = CALL_DELETE }, touch_delete_on_deleted);
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
