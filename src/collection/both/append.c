/*
 * One blind APPEND, or PREPEND, for the whole batch, whatever the size of the collection. If
 * reads follow, their base is read in the same round trip. Only a refused append takes more
 * calls:
 *
 *     append -> not stored -> read the size
 *         -> missing: add -> not stored, another proxy was first: append again
 *         -> there: compact -> append again; fail as too large if that makes no room
 *
 * memcached answers NOT_STORED both if the key is missing and if the item would be too large. A
 * very long log is appended in chunks; one that is prepended, starting with the last chunk. A
 * push that creates a list marks it as one.
 */
#include "collection/machines.h"

#include "collection/both/both.h"
#include "collection/lane/batch.h"
#include "collection/rewrite/ahead.h"

static lane_step append_on_reply, append_on_size_read, append_on_added;
static lane_after append_on_compacted;

/* Returns the next chunk of the log to append. */
static struct slice next_chunk(struct lane *lane)
{
	struct slice log = lane_log(lane), rest = slice_skip(log, lane->log_done);
	size_t n;

	if (!lane_first(lane)->front)
		return slice_of(rest.p, oplog_cut(rest, LANE_MERGE_MAX));
	rest = slice_of(log.p, rest.n);
	n = oplog_cut_end(rest, LANE_MERGE_MAX);
	return slice_of(rest.p + rest.n - n, n);
}

/* A push of which some chunks are stored has an unknown outcome: the client must not retry it. */
static void fail(struct lane *lane, enum outcome_status status, const struct result *r)
{
	struct result partly = { .status = RESULT_LOST, .server = r->server };

	if (lane->log_done && op_is_list(lane_first(lane)))
		lane_end(lane, OUTCOME_FAILED, &partly);
	else
		lane_end(lane, status, status == OUTCOME_FAILED ? r : NULL);
}

static bool is_last(const struct lane *lane, struct slice chunk)
{
	return lane->log_done + chunk.n == lane_log(lane).n;
}

/* Returns whether an operation of the batch may create the set. */
static bool creates(const struct lane *lane)
{
	const struct op *op;

	STAILQ_FOREACH(op, &lane->batch, link) {
		if (op->create)
			return true;
	}
	return false;
}

static void append(struct lane *lane)
{
	struct slice log = next_chunk(lane);

	lane->written = log.n;
	lane_forget_behind(lane);
	lane_call(lane,
		&(struct call){ .verb = lane_first(lane)->front ? CALL_PREPEND : CALL_APPEND,
			.value = log,
			.role.creates = lane->rule->copies > 1 && creates(lane) },
		append_on_reply);
	if (is_last(lane, log)) {
		ahead_appends(lane);
		lane_read_along(lane);
	}
	if (lane_by_chance(lane, log.n) || lane_looks_often(lane))
		lane_look_at_size(lane);
}

void append_start(struct lane *lane)
{
	lane_count_appends(lane);
	lane->pushes = op_is_list(lane_first(lane));
	lane->full = 0;
	lane_merge_log(lane);
	append(lane);
}

static void chunk_done(struct lane *lane)
{
	struct env *env = lane_env(lane);
	struct slice chunk = next_chunk(lane);
	bool last = is_last(lane, chunk);

	lane->log_done += chunk.n;
	lane->full = 0;
	if (lane->pushes && env->pushed)
		env->pushed(env, lane->waiter.key);
	if (last)
		lane_end(lane, OUTCOME_DONE, NULL);
	else
		append(lane);
}

static void append_on_reply(struct lane *lane, const struct result *r)
{
	/*
	 * A refused append stored nothing, so the base that was read after it lacks the
	 * words of the batch.
	 */
	lane->reads_along = lane->reads_along && r->status == RESULT_DONE;
	if (r->status == RESULT_DONE)
		chunk_done(lane);
	else if (r->status == RESULT_NOT_STORED)
		lane_call(lane, &(struct call){ .verb = CALL_GET, .want = WANT_SIZE },
			append_on_size_read);
	else
		fail(lane, OUTCOME_FAILED, r);
}

static void create(struct lane *lane)
{
	struct buf value = BUF_EMPTY;

	if (!lane_end_missing(lane)) {
		lane_next(lane);
		return;
	}
	lane_merge_log(lane);
	if (op_is_list(lane_first(lane)))
		oplog_add_mark(&value, true, false);
	buf_add_slice(&value, next_chunk(lane));
	lane_call(lane,
		&(struct call){ .verb = CALL_ADD,
			.value = buf_slice(&value),
			.role.change = CHANGE_WORDS,
			.exptime = lane_first(lane)->ttl },
		append_on_added);
	buf_free(&value);
}

/* Compacting again is useless if the last one did not help: a base may have only references. */
static void make_room(struct lane *lane, const struct result *r)
{
	bool smaller = !lane->full || r->size < lane->full;

	lane->full = r->size;
	if (smaller)
		compact_run(lane, append_on_compacted);
	else
		fail(lane, OUTCOME_TOO_LARGE, r);
}

static void append_on_size_read(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_MISS)
		create(lane);
	else if (r->status != RESULT_HIT)
		fail(lane, OUTCOME_FAILED, r);
	else if (!lane_may_retry(lane))
		fail(lane, OUTCOME_TOO_LARGE, r);
	else if (r->size > lane_log_size(lane))
		make_room(lane, r);
	else
		append(lane);
}

static void append_on_added(struct lane *lane, const struct result *r)
{
	lane->created = r->status == RESULT_DONE;
	if (lane->created)
		chunk_done(lane);
	else if (r->status != RESULT_NOT_STORED)
		lane_end(lane, OUTCOME_FAILED, r);
	else if (lane_retry(lane))
		append(lane);
}

static void append_on_compacted(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	/* After a lost race, the next compaction may make room. */
	if (status != OUTCOME_DONE)
		lane->full = 0;
	if (status == OUTCOME_FAILED)
		fail(lane, OUTCOME_FAILED, failure);
	else if (status == OUTCOME_CORRUPT || status == OUTCOME_TOO_LARGE)
		fail(lane, OUTCOME_TOO_LARGE, &(struct result){ .server = "server" });
	else
		append(lane);
}
