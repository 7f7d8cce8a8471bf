/*
 * Reading and rewriting a list, once for all operations of the batch:
 *
 *     read the base -> load the needed segments -> carry out -> only reads: answer
 *                                                            -> else:       write new segments -> CAS -> answer
 *
 * A rewrite is a strict CAS with the token of the read that it was computed from, so a push since then makes it fail. The
 * machine then retries from the read, a bounded number of times. When a segment is missing it reads the base once more: if the
 * base is still the same, the list has lost a part and is removed.
 */
#include "collection/list/list.h"

#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/list/store.h"
#include "collection/rewrite/base.h"
#include "collection/ttl.h"
#include "util/alloc.h"

/* A base that refers to a missing segment. */
struct broken_base {
	bool known;
	uint64_t cas, connection;
};

struct list_work {
	struct list_store store;
	struct lane *lane;
	struct cas cas;
	int64_t exptime;    /* keeps the time to live of the base */
	struct result read; /* the reply about the base, without its slices */
	struct broken_base broken;
	struct buf text; /* the answers to the operations */
};

static void read_base(struct lane *lane);
static lane_step found, removed;
static lane_after loaded, segments_written;
static void carry_out(struct lane *lane);
static void answer(struct lane *lane);
static void rewrite(struct lane *lane);
static void stored(struct cas *cas, const struct result *r);

static void end_work(struct lane *lane)
{
	struct list_work *w = lane->work;

	lane->work = NULL;
	list_store_fini(&w->store);
	buf_free(&w->text);
	free(w);
}

static void finish(struct lane *lane, enum outcome_status status)
{
	end_work(lane);
	lane_end(lane, status, NULL);
}

/* The failure may be part of the work, which is freed last. */
static void finish_failed(struct lane *lane, const struct result *r)
{
	lane_end_all(lane, &(struct outcome){ .status = OUTCOME_FAILED, .result = r });
	end_work(lane);
	lane_next(lane);
}

void list_start(struct lane *lane)
{
	struct list_work *w = xcalloc(1, sizeof(*w));
	lane->work = w;
	w->lane = w->store.lane = lane;
	lane_count_reads(lane);
	read_base(lane);
}

static void read_base(struct lane *lane)
{
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL }, found);
}

/* Neighbouring pops are one rewrite, so the items of all of them are needed. */
static void need(struct lane *lane, struct segmented_list *list)
{
	uint64_t front = 0, back = 0, most = segmented_list_count(list);
	struct op *op;

	STAILQ_FOREACH(op, &lane->batch, link) {
		uint64_t count = op->list->count < most ? op->list->count : most;
		if (op->list->verb == LIST_POP_FRONT)
			front += count;
		else if (op->list->verb == LIST_POP_BACK)
			back += count;
		else
			segmented_list_need(list, op->list);
	}
	segmented_list_need_ends(list, front, back);
}

/* A list with removals must be read as a whole each time, so a compaction clears them at once. */
static void request_compaction(struct lane *lane, const struct segmented_list *list, const struct result *r)
{
	size_t base_size = lane_env(lane)->options->base_size;
	bool long_list = r->value.n > 2 * base_size && (list->log_bytes > base_size || !list->is_list);

	if (r->ttl != TTL_UNKNOWN && (long_list || (list->is_list && list->tangled)))
		lane_request_compaction(lane);
}

/* Whether this is the base whose segment was missing. */
static bool is_broken(const struct broken_base *broken, const struct result *base)
{
	return broken->known && broken->cas == base->cas && broken->connection == base->connection;
}

static void found(struct lane *lane, const struct result *r)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;

	if (r->status == RESULT_MISS) {
		finish(lane, OUTCOME_MISSING);
	} else if (r->status != RESULT_HIT) {
		finish_failed(lane, r);
	} else if (!segmented_list_read(list, r->value)) {
		finish(lane, list->is_set ? OUTCOME_IS_SET : lane_unreadable(lane, list->form));
	} else {
		list->is_list |= lane_is_list(lane, &(struct oplog_base){ .is_list = list->is_list });
		request_compaction(lane, list, r);
		if (!list->tangled && lane_is_measured(lane))
			lane_measured(lane, segmented_list_count(list), segmented_list_bytes(list));
		need(lane, list);
		w->read = *r;
		w->read.value = w->read.line = slice_of("", 0);
		if (is_broken(&w->broken, r))
			base_expire(lane, r, removed);
		else
			list_store_load(&w->store, loaded);
	}
}

/* --- a base with a missing segment, or a lost race --- */

static void again(struct lane *lane)
{
	struct list_work *w = lane->work;

	list_store_fini(&w->store);
	buf_consume(&w->text, buf_size(&w->text));
	if (lane_may_retry(lane))
		read_base(lane);
	else
		finish(lane, OUTCOME_BUSY);
}

static void removed(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE) {
		lane->lanes->stats.incomplete_sets++;
		finish(lane, OUTCOME_MISSING);
	} else if (result_failed(r)) {
		finish_failed(lane, r);
	} else {
		again(lane);
	}
}

/* --- the operations --- */

static void loaded(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_work *w = lane->work;

	if (status == OUTCOME_DONE) {
		carry_out(lane);
	} else if (status == OUTCOME_FAILED) {
		finish_failed(lane, failure);
	} else if (status == OUTCOME_MISSING) {
		w->broken = (struct broken_base){ true, w->read.cas, w->read.connection };
		again(lane);
	} else {
		lane->lanes->stats.corrupt_values++;
		finish(lane, OUTCOME_CORRUPT);
	}
}

static void carry_out(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;
	bool changed = false;
	struct op *op;

	if (list->tangled)
		segmented_list_settle(list, lane_env(lane)->seed);
	STAILQ_FOREACH(op, &lane->batch, link)
		changed |= segmented_list_apply(list, op->list, &w->text);
	if (changed)
		rewrite(lane);
	else
		answer(lane);
}

static void answer(struct lane *lane)
{
	struct list_work *w = lane->work;

	lane_answer_lists(lane, buf_slice(&w->text), &w->read);
	end_work(lane);
	lane_next(lane);
}

/* --- a rewrite --- */

static void rewrite(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;

	if (w->read.cas == 0 || !ttl_exptime(lane_env(lane), w->read.ttl, &w->exptime)) {
		finish(lane, w->read.cas ? OUTCOME_BUSY : OUTCOME_NO_CAS);
		return;
	}
	if (list->settled)
		segmented_list_spill(list, lane_env(lane)->options->base_size);
	list_store_write(&w->store, w->exptime, segments_written);
}

static void segments_written(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_work *w = lane->work;
	struct buf value = BUF_EMPTY;

	if (status != OUTCOME_DONE) {
		finish_failed(lane, failure);
		return;
	}
	list_store_encode(&w->store, &value);
	cas_replace(&w->cas, lane_env(lane), lane->waiter.key, buf_slice(&value), &w->read, w->exptime, stored);
	buf_free(&value);
}

static void stored(struct cas *cas, const struct result *r)
{
	struct list_work *w = (struct list_work *)((char *)cas - offsetof(struct list_work, cas));
	struct lane *lane = w->lane;

	if (r->status == RESULT_DONE) {
		list_store_committed(&w->store, cas->ttl);
		answer(lane);
	} else if (result_failed(r)) {
		finish_failed(lane, r);
	} else {
		lane->lanes->stats.conflicts += r->status == RESULT_EXISTS;
		list_store_undo(&w->store);
		again(lane);
	}
}
