/*
 * Leases: one client at a time loads a missing set or list, and additions by other clients
 * meanwhile are kept. All state is in the base: see text/lease.h. Taking a lease:
 *
 *     read the base
 *         -> missing: ADD of one with a lease -> another proxy was first: read again
 *         -> an expired lease: CAS with a new lease -> lost the race: read again
 *         -> another lease, or a set: report it
 *         -> a set of which a part is missing: as an expired lease. Its log is kept, as words
 *
 * Loading, and completing a load:
 *
 *     read the base -> another lease, or none: missing
 *                   -> this one: write the members to parts, once
 *                                -> CAS -> lost the race: read again
 *
 * All of this is committed by a CAS with the token of the read that it was computed from. So no
 * word that is appended meanwhile is lost, and a lease that was taken over changes nothing.
 * Only the clock decides when a lease may be taken over.
 */
#include "collection/machines.h"

#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/list/list.h"
#include "collection/rewrite/opening.h"
#include "collection/set/merge.h"
#include "collection/set/run_writer.h"
#include "collection/text/lease.h"
#include "util/alloc.h"

/*
 * Races that may be lost. Loads are rare, and restarting one is expensive; words may
 * arrive fast meanwhile.
 */
enum { ATTEMPTS = 16 * LANE_ATTEMPTS };

static bool may_retry(struct lane *lane)
{
	lane->lanes->stats.conflicts++;
	return ++lane->attempts <= ATTEMPTS;
}

static void read_all(struct lane *lane, lane_step *step)
{
	lane_call(lane,
		&(struct call){ .verb = CALL_GET,
			.want = WANT_VALUE | WANT_CAS | WANT_TTL,
			.role.settled = true },
		step);
}

static void renew(struct lane *lane, struct lease *lease)
{
	lease->deadline = (uint64_t)lane_env(lane)->unix_time + lease->seconds;
}

/* --- taking a lease --- */

struct taking {
	struct buf dropped; /* references that a new lease drops */
	struct result read; /* the reply about a set, without slices, while its parts are checked */
	int64_t date;       /* of the base that was read: see keep_date */
	struct buf base;    /* that set */
	char token[LEASE_TOKEN];
};

static lane_step lease_on_key_read, lease_on_added, lease_on_taken_over;

/* On success the first operation of the batch has the lease. */
static void end_taking(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct taking *t = lane->work;

	lane->work = NULL;
	if (status == OUTCOME_DONE) {
		lane_end_first(lane, &(struct outcome){ .log = slice_of(t->token, LEASE_TOKEN) });
		status = OUTCOME_LOADING;
	}
	lane_end_all(lane, &(struct outcome){ .status = status, .result = failure });
	buf_free(&t->dropped);
	buf_free(&t->base);
	free(t);
	lane_next(lane);
}

static void try_again(struct lane *lane)
{
	if (may_retry(lane))
		read_all(lane, lease_on_key_read);
	else
		end_taking(lane, OUTCOME_BUSY, NULL);
}

void lease_start(struct lane *lane)
{
	struct taking *t = xcalloc(1, sizeof(*t));

	lease_new_token(&lane_env(lane)->random, t->token);
	lane->work = t;
	read_all(lane, lease_on_key_read);
}

static void set_lease(struct lane *lane, struct lease_base *base)
{
	struct taking *t = lane->work;
	const struct op *op = lane_first(lane);

	base->is_list = op_is_list(op);
	base->lease = (struct lease){ .token = slice_of(t->token, LEASE_TOKEN),
		.seconds = (uint32_t)op->count };
	renew(lane, &base->lease);
}

static void create(struct lane *lane)
{
	struct lease_base base = { .head = SLICE("") };
	struct buf value = BUF_EMPTY;

	set_lease(lane, &base);
	lease_write(&base, SLICE(""), &value);
	lane_call(lane,
		&(struct call){ .verb = CALL_ADD,
			.value = buf_slice(&value),
			.exptime = lane_first(lane)->ttl },
		lease_on_added);
	buf_free(&value);
}

static void lease_on_added(struct lane *lane, const struct result *r)
{
	if (result_failed(r))
		end_taking(lane, OUTCOME_FAILED, r);
	else if (r->status == RESULT_DONE)
		end_taking(lane, OUTCOME_DONE, NULL);
	else
		try_again(lane);
}

/* Drops the loaded members of the other lease. The words are kept. */
static void take_over(struct lane *lane, const struct result *r, struct lease_base *base)
{
	struct taking *t = lane->work;
	struct buf value = BUF_EMPTY;
	enum outcome_status status = keep_check(r, t->date);
	struct call call;

	if (status != OUTCOME_DONE) {
		end_taking(lane, status, NULL);
		return;
	}
	buf_consume(&t->dropped, buf_size(&t->dropped));
	buf_add_slice(&t->dropped, base->loaded);
	base->loaded = SLICE("");
	set_lease(lane, base);
	lease_write(base, SLICE(""), &value);
	call = keep_cas(&value, r, t->date);
	call.role.change = CHANGE_SETTLED;
	lane_call(lane, &call, lease_on_taken_over);
	buf_free(&value);
}

static void lease_on_taken_over(struct lane *lane, const struct result *r)
{
	struct taking *t = lane->work;

	if (result_failed(r)) {
		end_taking(lane, OUTCOME_FAILED, r);
	} else if (r->status != RESULT_DONE) {
		try_again(lane);
	} else {
		parts_forget_all(lane->lanes, lane->waiter.key, buf_slice(&t->dropped));
		end_taking(lane, OUTCOME_DONE, NULL);
	}
}

/*
 * Reads report a set that has lost a part as missing, and some keep its base. Without this, it
 * could not be loaded again.
 */
static void lease_on_parts_checked(struct parts *parts)
{
	struct lane *lane = parts->arg;
	struct taking *t = lane->work;
	struct oplog_base split;
	struct lease_base base;

	(void)oplog_split(buf_slice(&t->base), &split);
	base = (struct lease_base){ .head = split.head, .log = split.log, .loaded = split.refs };
	if (parts->failure.happened)
		end_taking(lane, OUTCOME_FAILED, &parts->failure.result);
	else if (parts->missing && split.is_list == op_is_list(lane_first(lane)))
		take_over(lane, &t->read, &base);
	else
		end_taking(lane, OUTCOME_PRESENT, NULL);
	parts_destroy(parts);
}

/* Looks for the parts of a set or list. */
static void look_for_parts(struct lane *lane, const struct result *r, struct slice refs)
{
	struct taking *t = lane->work;

	t->read = result_bare(r);
	buf_consume(&t->base, buf_size(&t->base));
	buf_add_slice(&t->base, r->value);
	parts_call_all(lane->lanes, lane->waiter.key, refs,
		(struct call){ .verb = CALL_GET, .account = lane_account(lane) },
		lease_on_parts_checked, lane);
}

static void lease_on_key_read(struct lane *lane, const struct result *r)
{
	struct base base = base_sort_whole(lane, r);
	struct taking *t = lane->work;

	t->date = keep_date(lane, r, r->value);
	if (base.kind == BASE_FAILED)
		end_taking(lane, OUTCOME_FAILED, r);
	else if (base.kind == BASE_MISSING)
		create(lane);
	else if (base.kind == BASE_FOREIGN)
		end_taking(lane, lane_unreadable(lane, base.form), NULL);
	else if (base.kind == BASE_OUTDATED ||
		(base.kind != BASE_LOADING && base.split.ref_count == 0))
		end_taking(lane, OUTCOME_PRESENT, NULL);
	else if (base.kind != BASE_LOADING)
		look_for_parts(lane, r, base.split.refs);
	else if (!lease_is_over(&base.loading.lease, lane_env(lane)->unix_time))
		end_taking(lane, OUTCOME_LOADING, NULL);
	else if (base.loading.runs.n && op_is_list(lane_first(lane)))
		end_taking(lane, OUTCOME_IS_SET, NULL);
	else
		take_over(lane, r, &base.loading);
}

/* --- loading --- */

struct loading {
	struct lane *lane;
	struct result read; /* the reply about the base, without slices */
	struct buf base;    /* as it was read */
	int64_t date;       /* of the base: see keep_date */
	/* The members are written to parts: by `run` for a set, by `segments` for a list. */
	bool writes;
	struct run_writer run;
	struct part_writer segments;
	struct slice rest; /* elements that are still to be written to segments */
	struct buf refs;   /* to these parts */
	bool has_parts;    /* the base that is written has parts */
	bool sent;         /* a CAS was sent, and was not refused */
};

static lane_step lease_on_base_read, lease_on_stored;
static void lease_on_parts_written(void *arg);

static struct part_writer *writer_of(struct loading *l)
{
	return op_is_list(lane_first(l->lane)) ? &l->segments : &l->run.parts;
}

/*
 * Deletes the new parts if no base can refer to them. The failure may belong to their writer,
 * which is freed last.
 */
static void end_loading(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct loading *l = lane->work;
	bool is_list = op_is_list(lane_first(lane));
	bool refused = !l->sent || status != OUTCOME_FAILED || result_stored_nothing(failure);

	if (l->writes && status != OUTCOME_DONE && refused)
		part_writer_forget(writer_of(l));
	lane->work = NULL;
	lane_end_all(lane, &(struct outcome){ .status = status, .result = failure });
	if (l->writes && is_list)
		part_writer_fini(&l->segments);
	else if (l->writes)
		run_writer_fini(&l->run);
	buf_free(&l->base);
	buf_free(&l->refs);
	free(l);
	lane_next(lane);
}

static void read_base(struct lane *lane)
{
	struct loading *l = lane->work;

	l->sent = false;
	read_all(lane, lease_on_base_read);
}

void load_start(struct lane *lane)
{
	struct loading *l = xcalloc(1, sizeof(*l));

	l->lane = lane;
	lane->work = l;
	read_base(lane);
}

static void lease_fill_run(struct lane *lane, const struct result *r)
{
	struct loading *l = lane->work;

	(void)r;
	if (!run_writer_fill_slice(&l->run, lane, lease_fill_run))
		return;
	run_writer_finish(&l->run);
	run_writer_ref(&l->run, &l->refs);
}

static void lease_write_segments(struct lane *lane, const struct result *r)
{
	struct loading *l = lane->work;
	size_t steps = lane_env(lane)->options->segment_size / LIST_STEP_BYTES;

	(void)r;
	do {
		list_write_segment(&l->segments, &l->rest, &l->refs);
	} while (l->rest.n && !lane_pauses(lane, steps, lease_write_segments));
}

static void write_parts(struct lane *lane)
{
	struct loading *l = lane->work;
	const struct op *op = lane_first(lane);
	int64_t exptime = keep_exptime(lane, l->date);

	l->writes = true;
	if (op_is_list(op)) {
		part_writer_init(&l->segments, lane->lanes, lane->waiter.key, exptime,
			lease_on_parts_written, lane);
		l->rest = op->log;
		lease_write_segments(lane, NULL);
		return;
	}
	run_writer_init(
		&l->run, lane->lanes, lane->waiter.key, exptime, lease_on_parts_written, lane);
	run_writer_fill_from_log(&l->run, op->log);
	lease_fill_run(lane, NULL);
}

/*
 * If the load completes a set with few members, they stay in its log, unless words in runs
 * would then be older.
 */
static bool needs_parts(struct lane *lane, const struct lease_base *base)
{
	const struct op *op = lane_first(lane);

	return op->log.n && (!op->completes || base->runs.n || op->log.n > lane_log_size(lane));
}

static void commit(struct lane *lane, struct lease_base *base)
{
	struct loading *l = lane->work;
	const struct op *op = lane_first(lane);
	struct buf value = BUF_EMPTY;
	struct call call;

	base->wide |= l->writes && writer_of(l)->wide;
	if (op->completes) {
		lease_complete(base, buf_slice(&l->refs), l->writes ? SLICE("") : op->log, &value);
	} else {
		renew(lane, &base->lease);
		lease_write(base, buf_slice(&l->refs), &value);
	}
	l->has_parts = l->writes || base->loaded.n || base->runs.n;
	l->sent = true;
	call = keep_cas(&value, &l->read, l->date);
	call.role.change = CHANGE_SETTLED;
	lane_call(lane, &call, lease_on_stored);
	buf_free(&value);
}

static void lease_on_base_read(struct lane *lane, const struct result *r)
{
	struct loading *l = lane->work;
	const struct op *op = lane_first(lane);
	struct base base = base_sort(lane, r);
	enum outcome_status status;

	l->date = keep_date(lane, r, r->value);
	if (base.kind == BASE_FAILED) {
		end_loading(lane, OUTCOME_FAILED, r);
	} else if (base.kind != BASE_LOADING || base.loading.is_list != op_is_list(op) ||
		!slice_equal(base.loading.lease.token, op->token)) {
		end_loading(lane, OUTCOME_MISSING, NULL);
	} else if ((status = keep_check(r, l->date)) != OUTCOME_DONE) {
		end_loading(lane, status, NULL);
	} else {
		l->read = result_bare(r);
		if (l->writes || !needs_parts(lane, &base.loading)) {
			commit(lane, &base.loading);
			return;
		}
		buf_add_slice(&l->base, r->value);
		write_parts(lane);
	}
}

static void lease_on_parts_written(void *arg)
{
	struct lane *lane = arg;
	struct loading *l = lane->work;
	const struct part_writer *writer = writer_of(l);
	bool all_sent = op_is_list(lane_first(lane)) ? l->rest.n == 0 : l->run.finished;
	struct lease_base base;

	if (writer->pending || !all_sent)
		return;
	if (writer->failure.happened) {
		end_loading(lane, OUTCOME_FAILED, &writer->failure.result);
		return;
	}
	(void)lease_split(buf_slice(&l->base), &base);
	commit(lane, &base);
}

/* Merges many small runs even while the set is being loaded. */
static void was_stored(struct lane *lane)
{
	struct loading *l = lane->work;

	if (l->writes)
		part_writer_follow(writer_of(l), keep_ttl(lane, l->date));
	if (l->has_parts && !op_is_list(lane_first(lane)))
		lane_request_compaction(lane);
}

static void lease_on_stored(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE) {
		was_stored(lane);
		end_loading(lane, OUTCOME_DONE, NULL);
	} else if (result_failed(r)) {
		end_loading(lane, OUTCOME_FAILED, r);
	} else {
		if (may_retry(lane))
			read_base(lane);
		else
			end_loading(lane, OUTCOME_BUSY, NULL);
	}
}
