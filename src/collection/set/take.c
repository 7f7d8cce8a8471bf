/*
 * Takes all members of a set at once, or a block of a large set: the members of its oldest tables.
 *
 *     read -> choose -> a run is cut: write an index of its other tables
 *                    -> CAS of a base without what was chosen -> delete the parts that were dropped
 *                       -> lost the race: read again, choose again
 *
 * A set that is taken as a whole needs no new part. A block never includes the log, so clients that
 * add members meanwhile cost it only a repetition: the same tables are chosen again, and their
 * index is already written.
 *
 * Newer layers may override every member in the tables of a block. The tables are dropped all the
 * same, and the next block is chosen, because an empty answer means that the set is empty.
 */
#include "collection/set/fetch.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/machines.h"
#include "collection/set/run_writer.h"
#include "collection/set_request.h"
#include "collection/text/held.h"
#include "util/alloc.h"

struct take {
	struct fetch fetch;
	size_t bytes;             /* of the request */
	struct run_writer writer; /* the rest of a run that is cut; all zeroes for none */
	char cut[OPLOG_ID];       /* that run, and the number of its tables that are taken */
	size_t tables;
	/* Parts that the new base does not refer to: runs, and ids of other parts. */
	struct buf runs, parts;
	bool all; /* Nothing is left. */
	bool sent;
};

static lane_after take_on_chosen;
static lane_step take_on_stored;
static void take_on_written(void *arg);

static struct set_request *request_of(const struct lane *lane)
{
	return lane_first(lane)->set;
}

/* Deletes the index that was written, to which no base refers. */
static void drop_writer(struct take *take)
{
	if (!take->writer.finished)
		return;
	part_writer_forget(&take->writer.parts);
	run_writer_fini(&take->writer);
	take->writer = (struct run_writer){ 0 };
}

static void end_take(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct take *take = lane->work;

	/* If the outcome of the CAS is unknown, the index stays. */
	if (take->sent && status == OUTCOME_FAILED && !result_stored_nothing(failure)) {
		run_writer_fini(&take->writer);
		take->writer.finished = false;
	}
	fetch_end(&take->fetch, lane, &(struct outcome){ .status = status, .result = failure });
	drop_writer(take);
	buf_free(&take->runs);
	buf_free(&take->parts);
	free(take);
	lane_next(lane);
}

void take_start(struct lane *lane)
{
	struct take *take = xcalloc(1, sizeof(*take));

	take->bytes = request_of(lane)->bytes;
	fetch_begin(&take->fetch, lane, request_of(lane), true, take_on_chosen);
}

static void choose_again(struct take *take)
{
	struct set_request *request = request_of(take->fetch.open.lane);

	set_request_free(request);
	*request = (struct set_request){ .verb = SET_TAKE, .bytes = take->bytes };
	take->sent = false;
}

/* --- the new base --- */

/* Returns the index of the run that is cut; NULL if the block ends with a run. */
static const struct fences *cut_run(struct take *take, const struct set_place *at)
{
	const struct fences *fences = NULL;

	if (at->table) {
		fences = set_view_index(&take->fetch.entry->view, at->run - 1);
		assert(fences);
	}
	return fences;
}

/* Starts to write the other tables of the run that is cut. Returns false if they are written. */
static bool write_rest(
	struct take *take, const struct fences *fences, const struct set_place *at, int64_t exptime)
{
	struct lane *lane = take->fetch.open.lane;
	const char *id = take->fetch.entry->view.runs[at->run - 1].id;

	if (take->writer.finished && take->tables == at->table &&
		memcmp(take->cut, id, OPLOG_ID) == 0)
		return false;
	drop_writer(take);
	run_writer_init(
		&take->writer, lane->lanes, lane->waiter.key, exptime, take_on_written, lane);
	for (size_t i = at->table; i < fences->count; i++)
		run_writer_take(&take->writer, &fences->list[i]);
	run_writer_finish(&take->writer);
	memcpy(take->cut, id, OPLOG_ID);
	take->tables = at->table;
	return take->writer.parts.pending > 0;
}

static void list_dropped(struct take *take, const struct fences *fences, struct slice runs)
{
	buf_consume(&take->runs, buf_size(&take->runs));
	buf_consume(&take->parts, buf_size(&take->parts));
	buf_add_slice(&take->runs, runs);
	if (!fences)
		return;
	buf_add_word(&take->parts, slice_of(take->cut, OPLOG_ID));
	for (size_t i = 0; i < take->tables; i++)
		buf_add_word(&take->parts, slice_of(fences->list[i].id, OPLOG_ID));
}

/* Writes the base that is left, and lists the parts to which it does not refer any more. */
static void write_base(struct take *take, const struct fences *fences, const struct set_place *at,
	struct buf *value)
{
	struct oplog_base base;
	struct oplog_run run;
	struct slice rest;

	(void)oplog_split(fetch_base(&take->fetch), &base);
	rest = base.refs;
	for (size_t i = 1; i < at->run && !take->all; i++)
		(void)oplog_next_run(&rest, &run);
	if (take->all)
		rest = slice_of(rest.p + rest.n, 0);
	list_dropped(take, fences, slice_of(base.refs.p, base.refs.n - rest.n));
	if (base.is_list || rest.n)
		oplog_add_mark(value, base.is_list, base.wide);
	if (fences) {
		run_writer_ref(&take->writer, value);
		(void)oplog_next_run(&rest, &run);
	}
	buf_add_slice(value, rest);
	if (!take->all)
		buf_add_slice(value, base.log);
	else if (base.is_list)
		held_copy(fetch_base(&take->fetch), value);
}

/* --- the steps --- */

static void store_base(struct lane *lane, const struct fences *fences)
{
	struct take *take = lane->work;
	const struct opening *open = &take->fetch.open;
	struct call_role role = { .change = take->all ? CHANGE_EMPTY : CHANGE_REFS };
	struct buf value = BUF_EMPTY;

	write_base(take, fences, &request_of(lane)->counting.at, &value);
	take->sent = true;
	keep_send(lane, &value, &open->read, open->date, role, take_on_stored);
	buf_free(&value);
}

static void take_block(struct lane *lane)
{
	struct take *take = lane->work;
	const struct set_place *at = &request_of(lane)->counting.at;
	const struct fences *fences = cut_run(take, at);
	const struct opening *open = &take->fetch.open;
	enum outcome_status may = keep_check(&open->read, open->date);

	take->all = at->run == take->fetch.entry->view.run_count + 2;
	/* Before a lost race, the block may have ended elsewhere. */
	if (!fences)
		drop_writer(take);
	if (may != OUTCOME_DONE)
		end_take(lane, may, NULL);
	else if (!fences || !write_rest(take, fences, at, keep_exptime(lane, open->date)))
		store_base(lane, fences);
}

/* A set without members is not written, unless there are parts to delete. */
static void take_on_chosen(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct take *take = lane->work;

	if (status == OUTCOME_DONE &&
		(buf_size(&request_of(lane)->text) || take->fetch.entry->view.run_count))
		take_block(lane);
	else
		end_take(lane, status, failure);
}

static void take_on_written(void *arg)
{
	struct lane *lane = arg;
	struct take *take = lane->work;

	if (take->writer.parts.failure.happened)
		end_take(lane, OUTCOME_FAILED, &take->writer.parts.failure.result);
	else
		take_block(lane);
}

static void take_on_stored(struct lane *lane, const struct result *r)
{
	struct take *take = lane->work;
	bool found = buf_size(&request_of(lane)->text) > 0;

	if (result_failed(r)) {
		end_take(lane, OUTCOME_FAILED, r);
	} else if (r->status != RESULT_DONE) {
		choose_again(take);
		opening_lost(&take->fetch.open);
	} else {
		parts_forget_all(lane->lanes, lane->waiter.key, buf_slice(&take->runs));
		parts_forget(lane->lanes, lane->waiter.key, buf_slice(&take->parts));
		if (take->writer.finished) {
			part_writer_follow(
				&take->writer.parts, keep_ttl(lane, take->fetch.open.date));
			run_writer_fini(&take->writer);
			take->writer = (struct run_writer){ 0 };
		}
		if (found || take->all) {
			end_take(lane, OUTCOME_DONE, NULL);
		} else {
			choose_again(take);
			opening_read(&take->fetch.open);
		}
	}
}
