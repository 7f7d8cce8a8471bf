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
#include "collection/list/segment_cache.h"
#include "collection/list/segmented_list.h"
#include "collection/machines.h"
#include "collection/rewrite/ahead.h"
#include "collection/rewrite/base.h"
#include "collection/rewrite/opening.h"
#include "collection/rewrite/parts.h"
#include "collection/ttl.h"
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
	bool writes;     /* the writer is in use */
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
	enum { BYTES = 64 /* of a segment that are processed in one step */ };
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
			lane_pauses(lane, size / BYTES, list_take_segments))
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

static void list_on_segment_written(void *arg)
{
	struct lane *lane = arg;
	struct list_store *store = lane->work;
	const struct failure *failure = &store->writer.failure;

	if (store->writer.pending)
		return;
	if (failure->happened)
		part_writer_forget(&store->writer);
	store->done(lane, failure->happened ? OUTCOME_FAILED : OUTCOME_DONE, &failure->result);
}

/* The count in a segment's id is its number of elements. */
static void write_segment(struct part_writer *writer, struct slice log, struct buf *refs)
{
	struct oplog_ref ref = { .check = { true, check_of(log) } };
	struct buf id = BUF_EMPTY;
	char group[OPLOG_ID];

	oplog_new_id(OPLOG_LIST, writer->behind, &writer->lanes->env->random, group);
	oplog_add_id(&id, group, oplog_count(log), log.n);
	ref.id = buf_slice(&id);
	oplog_add_ref(refs, &ref);
	part_writer_add(writer, ref.id, log);
	buf_free(&id);
}

void list_write_segments(struct part_writer *writer, struct slice log, struct buf *refs)
{
	while (log.n) {
		size_t n = oplog_cut(log, writer->lanes->env->options->segment_size);
		write_segment(writer, slice_of(log.p, n), refs);
		log = slice_skip(log, n);
	}
}

static void write_piece(struct list_store *store, struct list_piece *piece)
{
	struct buf log = BUF_EMPTY;

	list_piece_log(piece, &log);
	piece->refs_from = buf_size(&store->refs);
	list_write_segments(&store->writer, buf_slice(&log), &store->refs);
	piece->refs_to = buf_size(&store->refs);
	buf_free(&log);
}

/* Writes the pieces that are marked as rewritten to new segments. */
static void store_write(struct list_store *store, int64_t exptime, lane_after *done)
{
	struct lane *lane = store->open.lane;

	store->done = done;
	for (size_t i = 0; i < store->list.piece_count; i++) {
		struct list_piece *piece = &store->list.pieces[i];
		if (!piece->rewritten || piece->ref.keep == 0)
			continue;
		if (!store->writes)
			part_writer_init(&store->writer, lane->lanes, lane->waiter.key, exptime,
				list_on_segment_written, lane);
		store->writes = true;
		write_piece(store, piece);
	}
	if (!store->writes)
		done(lane, OUTCOME_DONE, NULL);
}

/*
 * Called after the base was written: deletes the segments that it dropped. The new ones get the
 * base's time to live `ttl`.
 */
static void store_committed(struct list_store *store, int64_t ttl)
{
	struct buf refs = BUF_EMPTY;

	if (store->writes)
		part_writer_follow(&store->writer, ttl);
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
	struct cas cas;
	int64_t exptime; /* preserves the time to live of the base */
	bool missing;    /* a segment of this base is missing */
	struct buf text; /* the answers to the operations */
};

static lane_step list_on_found;

static void end_work(struct lane *lane)
{
	struct list_work *w = lane->work;

	lane->work = NULL;
	store_fini(&w->store);
	buf_free(&w->text);
	free(w);
	lane_next(lane);
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

static void list_on_stored(struct cas *cas, const struct result *r)
{
	struct list_work *w = (struct list_work *)((char *)cas - offsetof(struct list_work, cas));
	struct lane *lane = w->store.open.lane;

	ahead_ended(lane, cas, r->status, w->store.open.ahead);
	if (r->status == RESULT_DONE) {
		store_committed(&w->store, cas->ttl);
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
	segmented_list_encode(&w->store.list, buf_slice(&w->store.refs), &value);
	lane_charge(lane, buf_size(&value));
	cas_replace(&w->cas, lane_env(lane), lane->waiter.key, buf_slice(&value),
		&w->store.open.read, w->exptime, list_on_stored);
	ahead_rewrites(lane, w->exptime);
	buf_free(&value);
}

static void rewrite(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;

	if (w->store.open.read.cas == 0 ||
		!ttl_exptime(lane_env(lane), w->store.open.read.ttl, &w->exptime)) {
		list_end(lane, w->store.open.read.cas ? OUTCOME_BUSY : OUTCOME_NO_CAS, NULL);
		return;
	}
	if (list->settled)
		segmented_list_spill(list, lane_env(lane)->options->base_size);
	store_write(&w->store, w->exptime, list_on_segments_written);
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

static void carry_out(struct lane *lane)
{
	struct list_work *w = lane->work;
	struct segmented_list *list = &w->store.list;
	bool changed = false;
	struct op *op;

	settle(&w->store);
	limit(&w->store);
	if (lane_reads_list(lane)) {
		list_answer_reads(lane, NULL);
		return;
	}
	STAILQ_FOREACH(op, &lane->batch, link)
		changed |= segmented_list_apply(list, op->list, &w->text);
	if (changed)
		rewrite(lane);
	else if (!was_ahead(lane))
		answer(lane);
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
		request_compaction(lane, list, r);
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
		w->store.open.read = result_bare(r);
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
		store_committed(&c->store, c->rewrite.cas.ttl);
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
	segmented_list_encode(&c->store.list, buf_slice(&c->store.refs), &c->replacement);
	/*
	 * The meaning of a removal depends on the elements before it, so no push at the head
	 * may have happened in between.
	 */
	if (c->store.list.removes)
		base_rewrite_head(&c->rewrite, lane, base, buf_slice(&c->replacement), NULL,
			list_on_compaction_committed);
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
	if (!ttl_exptime(lane_env(lane), r->ttl, &c->exptime) ||
		!segmented_list_plan(list, options->base_size, options->segment_size, true))
		end_compaction(lane, OUTCOME_DONE, NULL);
	else
		store_load(&c->store, list_on_beside_loaded);
}
