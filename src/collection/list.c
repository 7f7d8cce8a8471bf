/*
 * Reading and rewriting a list, once for all the operations of the batch:
 *
 *     read the base -> read the segments of which something is wanted -> reads: answer
 *                                                                     -> rewrites: write new segments -> CAS -> answer
 *
 * A rewrite is a strict CAS: with the token of the read that it was computed from, and lost to whatever was pushed since. Then
 * all begins anew, a bounded number of times. A segment that is gone is what it is to a set: see fetch.c.
 */
#include <stdlib.h>

#include "collection/chain_store.h"
#include "collection/lane.h"
#include "util/alloc.h"

struct list_work {
	struct chain_store store;
	struct result read; /* of the base, without its slices */
	struct lane_broken broken;
	struct buf text; /* what the operations are answered */
};

static void read_base(struct lane *lane);

static void end_work(struct lane *lane)
{
	struct list_work *w = lane->work;

	lane->work = NULL;
	chain_store_fini(&w->store);
	buf_free(&w->text);
	free(w);
}

static void finish(struct lane *lane, enum outcome_status status)
{
	end_work(lane);
	lane_finish(lane, status);
}

/* The failure may lie in the work. */
static void finish_failed(struct lane *lane, const struct result *r)
{
	lane_end_all(lane, &(struct outcome){ .status = OUTCOME_FAILED, .result = r });
	end_work(lane);
	lane_next(lane);
}

static void again(struct lane *lane)
{
	struct list_work *w = lane->work;

	chain_store_fini(&w->store);
	buf_consume(&w->text, buf_size(&w->text));
	if (++lane->attempts <= LANE_ATTEMPTS)
		read_base(lane);
	else
		finish(lane, OUTCOME_BUSY);
}

static void answer(struct lane *lane)
{
	struct list_work *w = lane->work;

	lane_answer_lists(lane, buf_slice(&w->text), &w->read);
	end_work(lane);
	lane_next(lane);
}

/* --- a rewrite --- */

static void mended(struct lane *lane, const struct result *r)
{
	struct list_work *w = lane->work;

	(void)r;
	chain_store_committed(&w->store, lane_rest(lane)->commit.ttl);
	answer(lane);
}

static void committed(struct lane *lane, const struct result *r)
{
	struct list_work *w = lane->work;

	if (r->status == RESULT_DONE) {
		commit_mend_ttl(lane, mended, r);
	} else if (result_failed(r)) {
		finish_failed(lane, r);
	} else {
		lane->lanes->stats.conflicts += r->status == RESULT_EXISTS;
		chain_store_undo(&w->store);
		again(lane);
	}
}

static void segments_written(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_work *w = lane->work;
	struct buf *value = &lane_rest(lane)->commit.value;

	if (status != OUTCOME_DONE) {
		finish_failed(lane, failure);
		return;
	}
	buf_consume(value, buf_size(value));
	chain_store_encode(&w->store, value);
	commit_cas(lane, buf_slice(value), &w->read, lane_rest(lane)->commit.exptime, committed);
}

static void rewrite(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct chain *chain = &w->store.chain;

	if (!lane_exptime(lane_host(lane), w->read.ttl, &lane_rest(lane)->commit.exptime)) {
		finish(lane, OUTCOME_BUSY);
		return;
	}
	if (chain->settled)
		chain_spill(chain, lane_host(lane)->options->base_size);
	chain_store_write(&w->store, lane_rest(lane)->commit.exptime, segments_written);
}

/* --- what was read --- */

static void carry_out(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct chain *chain = &w->store.chain;
	bool changed = false;
	struct op *op;

	if (chain->tangled)
		chain_settle(chain, lane_host(lane)->seed);
	STAILQ_FOREACH(op, &lane->batch, link)
		changed |= chain_apply(chain, op->list, &w->text);
	if (changed)
		rewrite(lane);
	else
		answer(lane);
}

static void loaded(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_work *w = lane->work;

	if (status == OUTCOME_DONE) {
		carry_out(lane);
	} else if (status == OUTCOME_FAILED) {
		finish_failed(lane, failure);
	} else if (status == OUTCOME_MISSING) {
		lane_note_broken(&w->broken, &w->read);
		again(lane);
	} else {
		lane->lanes->stats.corrupt_values++;
		finish(lane, OUTCOME_CORRUPT);
	}
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

/* Neighbouring pops are one rewrite: what they take together is wanted. */
static void need(struct lane *lane, struct chain *chain)
{
	uint64_t front = 0, back = 0, most = chain_count(chain);
	struct op *op;

	STAILQ_FOREACH(op, &lane->batch, link) {
		uint64_t count = op->list->count < most ? op->list->count : most;
		if (op->list->verb == LIST_POP_FRONT)
			front += count;
		else if (op->list->verb == LIST_POP_BACK)
			back += count;
		else
			chain_need(chain, op->list);
	}
	chain_need_ends(chain, front, back);
}

bool lane_is_list(const struct lane *lane, const struct oplog_base *base)
{
	/* In sorted tables it is a set, whatever the rule says. */
	if (base->block.n)
		return base->is_list;
	return rules_collection(lane_host(lane)->rules, lane->waiter.key)->type == COLLECTION_LIST;
}

/* A list with removals has to be read as a whole each time: they are cleared away at once. */
static void tend(struct lane *lane, const struct chain *chain, const struct result *r)
{
	size_t base_size = lane_host(lane)->options->base_size;
	bool long_list = r->value.n > 2 * base_size && (chain->log_bytes > base_size || !chain->is_list);

	if (r->ttl != TTL_UNKNOWN && (long_list || (chain->is_list && chain->tangled)))
		lane_tend(lane);
}

static void found(struct lane *lane, const struct result *r)
{
	struct list_work *w = lane->work;
	struct chain *chain = &w->store.chain;

	if (r->status == RESULT_MISS) {
		finish(lane, OUTCOME_MISSING);
	} else if (r->status != RESULT_HIT) {
		finish_failed(lane, r);
	} else if (!chain_read(chain, r->value)) {
		finish(lane, chain->is_set ? OUTCOME_IS_SET : lane_unreadable(lane, chain->form));
	} else {
		chain->is_list |= lane_is_list(lane, &(struct oplog_base){ .is_list = chain->is_list });
		tend(lane, chain, r);
		need(lane, chain);
		w->read = *r;
		w->read.value = w->read.line = slice_of("", 0);
		if (lane_is_broken(&w->broken, r))
			lane_expire_base(lane, r, removed);
		else
			chain_store_load(&w->store, loaded);
	}
}

static void read_base(struct lane *lane)
{
	lane_call(lane, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL }, found);
}

void list_start(struct lane *lane)
{
	struct list_work *w = xcalloc(1, sizeof(*w));
	lane->work = w;
	w->store.lane = lane;
	lane_count_reads(lane);
	read_base(lane);
}
