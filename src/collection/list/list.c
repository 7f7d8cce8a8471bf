/*
 * Reads and rewrites a list, once for all operations of the batch:
 *
 *     read the base -> load the needed segments -> carry out
 *         -> only reads: answer
 *         -> else:       write new segments -> CAS -> answer
 *
 * A rewrite is a strict CAS with the token of the read that it was computed from, so a push
 * since then makes it fail. The machine then retries from the read, a bounded number of times.
 * If a segment is missing, it reads the base once more: if the base is still the same, the list
 * has lost a segment and is removed; unless the segment may be missing only here.
 *
 * A rewrite omits the read if the base was read ahead, see rewrite/ahead.h. If that does not
 * lead to a CAS, the base is read.
 *
 * Compaction is a batch of its own; both/compact.c reads the base and starts it. The log at the
 * tail becomes segments after the existing ones, and the log at the head becomes segments
 * before them. If a log and the segment next to it fit into one segment, they are merged, so
 * that the number of segments stays small.
 *
 *     plan -> load the segments next to the logs -> write new segments
 *          -> commit a base that refers to them
 *
 * Duplicates are kept. If a log has removals, the whole list is loaded and rewritten.
 */
#include "collection/list/list.h"

#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/list/hold.h"
#include "collection/list/segment_cache.h"
#include "collection/list/segmented_list.h"
#include "collection/machines.h"
#include "collection/rewrite/ahead.h"
#include "collection/rewrite/base.h"
#include "collection/rewrite/opening.h"
#include "collection/rewrite/parts.h"
#include "util/alloc.h"
#include "util/check.h"

/*
 * The segments of a list, in the work of a machine; must be its first member. All zeroes except
 * the lane is an empty list.
 */
struct list_store {
	struct opening open; /* for compaction, only its lane */
	struct segmented_list list;
	struct parts *segments;
	struct part_writer writer;
	struct buf refs; /* references to the written segments, in order */
	size_t taken;    /* segments that were read and are already in the list */
	/* Index of the piece that is being written; the number of pieces when all were sent. */
	size_t at;
	struct buf log; /* its log, of which `rest` is still to be written */
	struct slice rest;
	bool writes; /* the writer is in use */
	/*
	 * Receives the outcome, perhaps before the call returns; OUTCOME_MISSING: a
	 * segment is missing.
	 */
	lane_after *done;
};

/*
 * Only segments from small reads are cached: the ends of a list, and repeated reads of one place.
 */
enum { CACHED_MAX = 2, CACHE_FRACTION = 8 };

static void store_fini(struct list_store *store)
{
	parts_destroy(store->segments);
	store->segments = NULL;
	if (store->writes)
		part_writer_fini(&store->writer);
	buf_free(&store->refs);
	buf_free(&store->log);
	store->writes = false;
	segmented_list_free(&store->list);
}

static void settle(struct list_store *store)
{
	if (store->list.tangled)
		segmented_list_settle(&store->list, lane_env(store->open.lane)->seed);
}

/* Leaves out the elements beyond the rule's limit. In a tangled list these are not known. */
static void limit(struct list_store *store)
{
	const struct collection_rule *rule = store->open.lane->rule;

	if (!store->list.tangled)
		segmented_list_limit(
			&store->list, (uint64_t)rule->max, rule->newest == NEWEST_FIRST);
}

/* --- loading segments --- */

static void take_from_cache(struct list_store *store)
{
	struct lanes *lanes = store->open.lane->lanes;
	struct buf key = BUF_EMPTY;

	for (size_t i = 0; i < store->list.piece_count; i++) {
		struct list_piece *piece = &store->list.pieces[i];
		struct log_index *log_index;
		if (!piece->needed)
			continue;
		buf_consume(&key, buf_size(&key));
		buf_add_slice(&key, store->open.lane->waiter.key);
		BUF_ADD(&key, ".");
		buf_add_slice(&key, piece->ref.id);
		log_index = segment_cache_find(
			lanes->segment_cache, buf_slice(&key), lane_env(store->open.lane)->now);
		if (log_index && segmented_list_load(piece, log_index))
			piece->needed = false;
	}
	buf_free(&key);
}

static bool take_segment(struct list_store *store, struct list_piece *piece, struct part *segment)
{
	struct log_index *log_index = log_index_create(buf_slice(&segment->data), &segment->data);
	struct env *env = lane_env(store->open.lane);
	bool good = log_index && segmented_list_load(piece, log_index);

	piece->needed = false;
	if (good && store->segments->count <= CACHED_MAX)
		segment_cache_put(store->open.lane->lanes->segment_cache, segment->waiter.key,
			log_index, env->now, env->options->cache / CACHE_FRACTION);
	log_index_release(log_index);
	return good;
}

/* The segments were requested in the order of their pieces. */
static void list_take_segments(struct lane *lane, const struct result *r)
{
	struct list_store *store = lane->work;
	bool good = true;

	(void)r;
	for (size_t i = 0; i < store->list.piece_count && good; i++) {
		struct part *segment;
		size_t size;
		if (!store->list.pieces[i].needed)
			continue;
		segment = &store->segments->list[store->taken];
		size = buf_size(&segment->data);
		good = take_segment(store, &store->list.pieces[i], segment);
		if (++store->taken < store->segments->count &&
			lane_pauses(lane, size / LIST_STEP_BYTES, list_take_segments))
			return;
	}
	store->done(lane, good ? OUTCOME_DONE : OUTCOME_CORRUPT, NULL);
}

static void list_on_segments_read(struct parts *segments)
{
	struct lane *lane = segments->arg;
	struct list_store *store = lane->work;

	store->taken = 0;
	if (segments->failure.happened)
		store->done(lane, OUTCOME_FAILED, &segments->failure.result);
	else if (segments->missing)
		store->done(lane, OUTCOME_MISSING, NULL);
	else
		list_take_segments(lane, NULL);
}

/* Loads the segments that are marked as needed. */
static void store_load(struct list_store *store, lane_after *done)
{
	struct buf refs = BUF_EMPTY;

	take_from_cache(store);
	segmented_list_needed(&store->list, &refs);
	store->done = done;
	if (buf_size(&refs) == 0) {
		done(store->open.lane, OUTCOME_DONE, NULL);
	} else if (segmented_list_repeats(&store->list)) {
		done(store->open.lane, OUTCOME_CORRUPT, NULL);
	} else {
		parts_destroy(store->segments);
		store->segments = parts_create_of_list(
			store->open.lane->lanes, store->open.lane->waiter.key, buf_slice(&refs));
		parts_call(store->segments,
			(struct call){ .verb = CALL_GET,
				.want = WANT_VALUE,
				.account = lane_account(store->open.lane) },
			list_on_segments_read, store->open.lane);
	}
	buf_free(&refs);
}

/* --- writing segments --- */

static void end_writing(struct list_store *store)
{
	const struct failure *failure = &store->writer.failure;

	if (failure->happened)
		part_writer_forget(&store->writer);
	store->done(store->open.lane, failure->happened ? OUTCOME_FAILED : OUTCOME_DONE,
		&failure->result);
}

static void list_on_segment_written(void *arg)
{
	struct lane *lane = arg;
	struct list_store *store = lane->work;

	if (store->writer.pending == 0 && store->at == store->list.piece_count)
		end_writing(store);
}

void list_write_segment(struct part_writer *writer, struct slice *log, struct buf *refs)
{
	size_t n = oplog_cut(*log, writer->lanes->env->options->segment_size);
	struct slice part = slice_of(log->p, n);
	struct oplog_ref ref = { .check = { true, check_of(part) } };
	struct buf id = BUF_EMPTY;
	char group[OPLOG_ID];

	*log = slice_skip(*log, n);
	/* The count in a segment's id is its number of elements. */
	oplog_new_id(OPLOG_LIST, writer->behind, &writer->lanes->env->random, group);
	oplog_add_id(&id, group, oplog_count(part), part.n);
	ref.id = buf_slice(&id);
	oplog_add_ref(refs, &ref);
	writer->wide = writer->wide || !oplog_is_narrow(part);
	part_writer_add(writer, ref.id, part);
	buf_free(&id);
}

static bool is_written(const struct list_piece *piece)
{
	return piece->rewritten && piece->ref.keep;
}

/* Begins the piece store->at if it is one to write. */
static void begin_piece(struct list_store *store)
{
	struct list_piece *piece = &store->list.pieces[store->at];

	piece->refs_from = buf_size(&store->refs);
	buf_consume(&store->log, buf_size(&store->log));
	if (is_written(piece))
		list_piece_log(piece, &store->log);
	store->rest = buf_slice(&store->log);
}

static void list_write_more(struct lane *lane, const struct result *r)
{
	struct list_store *store = lane->work;
	size_t steps = lane_env(lane)->options->segment_size / LIST_STEP_BYTES;

	(void)r;
	while (store->at < store->list.piece_count) {
		if (store->rest.n) {
			list_write_segment(&store->writer, &store->rest, &store->refs);
			if (lane_pauses(lane, steps, list_write_more))
				return;
			continue;
		}
		store->list.pieces[store->at].refs_to = buf_size(&store->refs);
		if (++store->at < store->list.piece_count)
			begin_piece(store);
	}
	if (store->writer.pending == 0)
		end_writing(store);
}

/* Writes the pieces that are marked as rewritten to new segments. */
static void store_write(struct list_store *store, int64_t exptime, lane_after *done)
{
	struct lane *lane = store->open.lane;
	size_t i = 0;

	while (i < store->list.piece_count && !is_written(&store->list.pieces[i]))
		i++;
	if (i == store->list.piece_count) {
		done(lane, OUTCOME_DONE, NULL);
		return;
	}
	store->done = done;
	part_writer_init(&store->writer, lane->lanes, lane->waiter.key, exptime,
		list_on_segment_written, lane);
	store->writes = true;
	store->at = 0;
	begin_piece(store);
	/* Reading a large base has taken much of the slice. */
	if (!lane_pauses(lane, buf_size(&store->list.base) / LIST_STEP_BYTES, list_write_more))
		list_write_more(lane, NULL);
}

/*
 * Called after the base was written with this date: deletes the segments that it dropped. The new
 * ones get the base's time to live.
 */
static void store_committed(struct list_store *store, int64_t date)
{
	struct buf refs = BUF_EMPTY;

	if (store->writes)
		part_writer_follow(&store->writer, keep_ttl(store->open.lane, date));
	segmented_list_dropped(&store->list, &refs);
	parts_forget_all(store->open.lane->lanes, store->open.lane->waiter.key, buf_slice(&refs));
	buf_free(&refs);
}

/* Deletes the new segments. The base must certainly not have been written. */
static void store_undo(struct list_store *store)
{
	if (store->writes)
		part_writer_forget(&store->writer);
}

/* --- the machine --- */

struct list_work {
	struct list_store store;
	bool missing; /* a segment of this base is missing */
	/* For a read: due elements are given back by a rewrite; then the others stay held. */
	bool gives, keeps;
	/* Of a batch that is carried out: the next operation; whether the list was changed. */
	struct op *next;
	bool changed;
	struct buf text; /* the answers to the operations */
};

static lane_step list_on_found, list_on_stored;

static void end_work(struct lane *lane)
{
	struct list_work *w = lane->work;

	lane->work = NULL;
	store_fini(&w->store);
	buf_free(&w->text);
	free(w);
	lane_next(lane);
}

static int64_t server_time(struct lane *lane)
{
	return env_server_time(lane_env(lane), lane->waiter.key);
}

/* Frees the data derived from an earlier reply about the base. */
static void forget(struct list_work *w)
{
	store_fini(&w->store);
	buf_consume(&w->text, buf_size(&w->text));
}

/* Returns whether the base was read ahead, and did not lead to a CAS; then the base is read. */
static bool was_ahead(struct lane *lane)
{
	struct list_work *w = lane->work;

	if (!w->store.open.ahead)
		return false;
	opening_read(&w->store.open);
	return true;
}

/* `result` may be a part of the work, which is freed last. */
static void list_end(struct lane *lane, enum outcome_status status, const struct result *result)
{
	if (status != OUTCOME_FAILED && was_ahead(lane))
		return;
	lane_end_all(lane, &(struct outcome){ .status = status, .result = result });
	end_work(lane);
}

/* --- a rewrite --- */

static void answer(struct lane *lane)
{
	struct list_work *w = lane->work;

	lane_answer_lists(lane, buf_slice(&w->text), &w->store.open.read);
	end_work(lane);
}

/*
 * Continues with a read after due elements were given back, if possible. Elements that have become
 * due since then stay held: the read is answered as of the time of its base.
 */
static void read_on(struct list_work *w)
{
	w->gives = false;
	w->keeps = true;
	w->store.open.rewrites = false;
	opening_read(&w->store.open);
}

static void list_on_stored(struct lane *lane, const struct result *r)
{
	struct list_work *w = lane->work;
	struct env *env = lane_env(lane);

	ahead_ended(lane, r->status, w->store.open.ahead);
	if (r->status == RESULT_DONE) {
		store_committed(&w->store, w->store.open.date);
		if (w->store.list.given && env->pushed)
			env->pushed(env, lane->waiter.key);
		if (w->gives)
			read_on(w);
		else
			answer(lane);
	} else if (result_failed(r)) {
		list_end(lane, OUTCOME_FAILED, r);
	} else {
		lane->lanes->stats.conflicts += r->status == RESULT_EXISTS;
		store_undo(&w->store);
		opening_lost(&w->store.open);
	}
}

static void list_on_segments_written(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_work *w = lane->work;
	struct buf value = BUF_EMPTY;

	if (status != OUTCOME_DONE) {
		list_end(lane, OUTCOME_FAILED, failure);
		return;
	}
	segmented_list_encode(
		&w->store.list, buf_slice(&w->store.refs), w->store.writer.wide, &value);
	keep_send(lane, &value, &w->store.open.read, w->store.open.date,
		(struct call_role){ .change = CHANGE_ALL }, list_on_stored);
	ahead_rewrites(lane);
	buf_free(&value);
}

static void rewrite(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;
	const struct opening *open = &w->store.open;
	enum outcome_status may = keep_check(&open->read, open->date);

	if (may != OUTCOME_DONE) {
		if (w->gives)
			read_on(w);
		else
			list_end(lane, may, NULL);
		return;
	}
	if (list->settled)
		segmented_list_spill(list, lane_env(lane)->options->base_size);
	store_write(&w->store, keep_exptime(lane, open->date), list_on_segments_written);
}

/* --- held elements: the list has some when these are called --- */

/*
 * Gives back the elements whose time is over, also for a read: a later ACK must not find one that
 * was seen in the list. In a tangled list the ends are not known.
 */
static void give_back(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;

	if (!list->tangled && (w->gives || !lane_reads_list(lane)))
		hold_give_back(list, server_time(lane));
}

/* Begins to give back elements for a read. Returns false if none are due, or they stay held. */
static bool gives_for_read(struct lane *lane)
{
	struct list_work *w = lane->work;

	if (!lane_reads_list(lane) || w->gives || w->keeps ||
		!hold_is_due(&w->store.list, server_time(lane)))
		return false;
	w->gives = w->store.open.rewrites = true;
	opening_read(&w->store.open);
	return true;
}

/* Reports when an empty list may have an element again. */
static void report_due(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct env *env = lane_env(lane);
	int64_t left;

	if (!env->due || segmented_list_count(&w->store.list))
		return;
	left = held_next(&w->store.list.held) - server_time(lane);
	env->due(env, lane->waiter.key, left < 1 ? 1 : left);
}

/* --- the operations --- */

static void list_answer_reads(struct lane *lane, const struct result *r)
{
	struct list_work *w = lane->work;

	(void)r;
	if (lane_answer_list_reads(
		    lane, segmented_list_read_slice, &w->store.list, &w->text, &w->store.open.read))
		end_work(lane);
	else
		lane_pause(lane, list_answer_reads);
}

/* Each operation of a batch may compare all held elements. */
static void list_apply_more(struct lane *lane, const struct result *r)
{
	enum { COMPARED = 8 /* in one step */ };
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;

	(void)r;
	while (w->next) {
		struct list_request *request = w->next->list;
		int64_t now = request->verb == LIST_HOLD ? server_time(lane) : 0;
		w->next = STAILQ_NEXT(w->next, link);
		w->changed |= hold_apply(list, request, now, &w->text);
		if (held_any(&list->held) &&
			lane_pauses(lane, 1 + list->held.count / COMPARED, list_apply_more))
			return;
	}
	if (list->held.count)
		report_due(lane);
	if (w->changed)
		rewrite(lane);
	else if (!was_ahead(lane))
		answer(lane);
}

static void carry_out(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;

	settle(&w->store);
	if (list->held.count)
		give_back(lane);
	limit(&w->store);
	if (lane_reads_list(lane)) {
		if (w->gives && list->given) {
			rewrite(lane);
			return;
		}
		if (list->held.count)
			report_due(lane);
		list_answer_reads(lane, NULL);
		return;
	}
	w->changed = list->given;
	w->next = lane_first(lane);
	list_apply_more(lane, NULL);
}

static void list_on_loaded(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_work *w = lane->work;

	if (status == OUTCOME_DONE) {
		carry_out(lane);
	} else if (status == OUTCOME_FAILED) {
		list_end(lane, OUTCOME_FAILED, failure);
	} else if (status == OUTCOME_MISSING) {
		w->missing = true;
		w->store.open.missing_on = w->store.segments->missing_on;
		opening_again(&w->store.open);
	} else {
		lane->lanes->stats.corrupt_values++;
		list_end(lane, OUTCOME_CORRUPT, NULL);
	}
}

/* --- the read --- */

/* Adjacent pops are one rewrite, so the elements of all of them are needed. */
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
		else if (op->list->verb == LIST_HOLD)
			*(op->list->start == 0 ? &front : &back) += 1;
		else
			segmented_list_need(list, op->list);
	}
	segmented_list_need_ends(list, front, back);
}

/* A list with removals must be read as a whole each time, so a compaction is requested at once. */
static void request_compaction(
	struct lane *lane, const struct segmented_list *list, const struct result *r)
{
	size_t base_size = lane_env(lane)->options->base_size;
	bool long_list =
		r->value.n > 2 * base_size && (list->log_bytes > base_size || !list->is_list);

	if (r->ttl != TTL_UNKNOWN && (long_list || (list->is_list && list->tangled)))
		lane_request_compaction(lane);
}

static void list_on_found(struct lane *lane, const struct result *r)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;
	bool broken;

	forget(w);
	if (r->status == RESULT_MISS) {
		list_end(lane, OUTCOME_MISSING, NULL);
	} else if (r->status != RESULT_HIT) {
		if (!was_ahead(lane))
			list_end(lane, OUTCOME_FAILED, r);
	} else if (!segmented_list_read(list, r->value)) {
		list_end(lane, list->is_set ? OUTCOME_IS_SET : lane_unreadable(lane, list->form),
			NULL);
	} else {
		list->is_list |=
			lane_is_list(lane, &(struct oplog_base){ .is_list = list->is_list });
		if (list->held.count && gives_for_read(lane))
			return;
		request_compaction(lane, list, r);
		if (list->held.count)
			give_back(lane);
		limit(&w->store);
		if (!list->tangled && lane_is_measured(lane))
			lane_measured(lane, segmented_list_count(list), segmented_list_bytes(list));
		need(lane, list);
		if (lane_reads_list(lane))
			ahead_saw(lane, r, r->value);
		broken = w->missing && r->cas == w->store.open.read.cas &&
			r->connection == w->store.open.read.connection &&
			(!w->store.open.missing_on || w->store.open.missing_on == r->connection);
		w->missing = false;
		opening_keep(&w->store.open, r, r->value);
		if (broken)
			opening_give_up(&w->store.open, r);
		else
			store_load(&w->store, list_on_loaded);
	}
}

void list_start(struct lane *lane)
{
	struct list_work *w = xcalloc(1, sizeof(*w));
	lane->work = w;
	w->store.open = (struct opening){ .lane = lane,
		.rewrites = !lane_reads_list(lane),
		.found = list_on_found,
		.ended = list_end };
	lane_count_reads(lane);
	opening_start(&w->store.open);
}

/* --- compaction --- */

struct list_compaction {
	struct list_store store;
	struct base_rewrite rewrite;
	lane_after *after;
	struct buf replacement;
	int64_t exptime; /* exptime of new segments */
};

/* The failure may belong to the store, which is freed last. */
static void end_compaction(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;

	lane->work = NULL;
	c->after(lane, status, failure);
	store_fini(&c->store);
	buf_free(&c->replacement);
	free(c);
}

static void list_on_compaction_committed(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;

	if (status == OUTCOME_DONE) {
		lane->lanes->stats.compactions++;
		lane->lanes->stats.spills += c->store.writes;
		store_committed(&c->store, c->rewrite.date);
	} else if (status != OUTCOME_FAILED) {
		store_undo(&c->store);
	}
	end_compaction(lane, status, failure);
}

static void list_on_logs_written(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;
	struct slice base = buf_slice(&c->store.list.base);

	if (status != OUTCOME_DONE) {
		end_compaction(lane, status, failure);
		return;
	}
	segmented_list_encode(
		&c->store.list, buf_slice(&c->store.refs), c->store.writer.wide, &c->replacement);
	/*
	 * The meaning of a removal depends on the elements before it, so no push at the head
	 * may have happened in between.
	 */
	if (c->store.list.removes)
		base_rewrite_head(&c->rewrite, lane, base, buf_slice(&c->replacement), NULL,
			DATE_NONE, list_on_compaction_committed);
	else
		base_rewrite_anywhere(&c->rewrite, lane, base, buf_slice(&c->replacement),
			list_on_compaction_committed);
}

static void list_on_beside_loaded(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;
	const struct collection_options *options = lane_env(lane)->options;
	struct segmented_list *list = &c->store.list;

	if (status == OUTCOME_MISSING && !list->tangled) {
		/*
		 * The segment next to the log is missing. The next read reports that; the
		 * compaction does without the merge.
		 */
		(void)segmented_list_plan(list, options->base_size, options->segment_size, false);
	} else if (status != OUTCOME_DONE) {
		end_compaction(lane, status == OUTCOME_MISSING ? OUTCOME_BUSY : status, failure);
		return;
	}
	settle(&c->store);
	limit(&c->store);
	segmented_list_compact(list, options->base_size);
	store_write(&c->store, c->exptime, list_on_logs_written);
}

void list_compact(struct lane *lane, const struct result *r, lane_after *after)
{
	struct list_compaction *c = xcalloc(1, sizeof(*c));
	const struct collection_options *options = lane_env(lane)->options;
	struct segmented_list *list = &c->store.list;
	int64_t date = keep_date(lane, r, r->value);

	lane->work = c;
	c->after = after;
	c->store.open.lane = lane;
	if (!segmented_list_read(list, r->value)) {
		end_compaction(lane, lane_unreadable(lane, list->form), NULL);
		return;
	}
	list->is_list = true;
	limit(&c->store);
	if (!list->tangled && lane_is_measured(lane))
		lane_measured(lane, segmented_list_count(list), segmented_list_bytes(list));
	c->exptime = keep_exptime(lane, date);
	if (date == KEEP_UNKNOWN ||
		!segmented_list_plan(list, options->base_size, options->segment_size, true))
		end_compaction(lane, OUTCOME_DONE, NULL);
	else
		store_load(&c->store, list_on_beside_loaded);
}
