/*
 * The operations on collections in adopted encodings. For sets:
 *
 *     change   read the needed items -> plan -> run -> check -> done
 *     answer   read all -> fold -> answer
 *     replace  read all -> plan -> run -> check -> done
 *     take     read all -> fold -> choose -> plan -> run -> done
 *     compact  read all -> fold -> plan -> run -> and so on, until the plan is empty
 *
 * A call that loses a race changes nothing, and the operation retries from the read, a bounded
 * number of times. If an item of the collection is missing, the remaining items are cleared
 * first.
 *
 * Lists are in the csv encoding. A push is an APPEND or PREPEND without a read:
 *
 *     append or prepend -> not stored: read -> the list exists:  append or prepend
 *                                           -> it is missing:    add
 *
 * All other requests of a batch are one read and at most one CAS of the whole list:
 *
 *     read -> carry out -> only reads: answer
 *                       -> else:       CAS -> answer
 *
 * Touch: read all items -> touch each. Delete:
 *
 *     read all -> delete the item that decides -> delete the others
 *
 * A compaction of flip makes the other list the active one. So a delete first removes the item
 * that names the active list, if it is unchanged. If there is no collection, the delete leaves
 * that item: another client may be about to use it for a new collection. A touch finally checks
 * whether there are items that it did not touch, and if so touches all of them once more.
 */
#include <assert.h>

#include "collection/adopted/encodings/words.h"
#include "collection/adopted/machine.h"
#include "collection/lane/batch.h"
#include "collection/list/segmented_list.h"
#include "collection/machines.h"
#include "collection/set/answer.h"
#include "collection/ttl.h"
#include "util/hash.h"
#include "util/random.h"

/* The start of an operation. */
struct flow {
	machine *count;        /* counts the batch for statistics; or NULL */
	adopted_next *prepare; /* called before the first read; or NULL */
	enum purpose purpose;  /* of the first read */
	adopted_next *read;    /* called after each read: makes the plan */
};

static adopted_next make_room;

static void start(struct adopted *c)
{
	if (c->flow->count)
		c->flow->count(c->lane);
	if (c->flow->prepare)
		c->flow->prepare(c);
	adopted_read(c, &c->s, c->flow->purpose, c->flow->read);
}

/*
 * Plans again from a new snapshot, unless there were too many attempts. A write that was
 * planned without reading its items now reads all of them.
 */
static void read_again(struct adopted *c)
{
	enum purpose purpose = c->flow->purpose == FOR_WRITE ? FOR_ALL : c->flow->purpose;

	if (adopted_retry(c))
		adopted_read(c, &c->s, purpose, c->flow->read);
}

/* Called after a lost race: plans again. */
static void lost(struct adopted *c)
{
	c->s.attempt++;
	read_again(c);
}

/* --- a collection with a missing item --- */

/* Returns whether the operation does nothing if there is no collection. */
static bool needs_one(const struct adopted *c)
{
	return c->kind == OP_READ || c->kind == OP_POP || c->kind == OP_COMPACT;
}

static void cleared(struct adopted *c)
{
	c->lane->lanes->stats.incomplete_sets++;
	if (adopted_retry(c))
		start(c);
}

/*
 * The missing item may exist for a setlistd with another list of servers, so a read clears
 * nothing. If another proxy has cleared the collection, that is a lost race.
 */
static void clear(struct adopted *c)
{
	plan_free(&c->plan);
	if (needs_one(c)) {
		c->lane->lanes->stats.incomplete_sets++;
		adopted_end(c, OUTCOME_MISSING);
		return;
	}
	if (c->encoding->clear)
		c->encoding->clear(&c->s, &c->plan);
	adopted_run(c, cleared, lost);
}

/*
 * If there is no collection to work with, ends the batch or clears the remaining items, and
 * returns true. Items that grew while they were read may be from different moments. If they are
 * inconsistent, they are read once more, as for a rewrite.
 */
static bool ended(struct adopted *c, enum adopted_status status)
{
	if (status == ADOPTED_OK)
		return false;
	if (status == ADOPTED_LOST)
		clear(c);
	else if (status == ADOPTED_CORRUPT && c->s.purpose != FOR_REWRITE)
		adopted_read(c, &c->s, FOR_REWRITE, c->next);
	else
		adopted_end(c, status == ADOPTED_MISSING ? OUTCOME_MISSING : OUTCOME_CORRUPT);
	return true;
}

/* --- after a plan was carried out --- */

static void done(struct adopted *c)
{
	adopted_end(c, c->missing ? OUTCOME_MISSING : OUTCOME_DONE);
}

/* Randomly, an addition or removal requests a compaction. */
static void finish(struct adopted *c)
{
	if (c->kind == OP_APPEND && lane_by_chance(c->lane, c->change.all_bytes))
		lane_request_compaction(c->lane);
	adopted_end(c, OUTCOME_DONE);
}

static void checked(struct adopted *c)
{
	if (c->encoding->check(&c->s, &c->now))
		finish(c);
	else
		lost(c);
}

static void planned_run(struct adopted *c)
{
	if (c->plan.check)
		adopted_read(c, &c->now, FOR_CHECK, checked);
	else if (!c->plan.again)
		finish(c);
	else if (c->kind == OP_APPEND)
		read_again(c);
	else
		lost(c);
}

/* --- change --- */

static void fold_more(struct fold *f, struct slice log)
{
	bool good = fold_log(f, log);

	assert(good);
	(void)good;
}

/* Folds the changes of the batch. */
static void gather(struct adopted *c)
{
	struct op *op;

	fold_reset(&c->change);
	STAILQ_FOREACH(op, &c->lane->batch, link)
		fold_more(&c->change, op->log);
}

static void change_lost(struct adopted *c)
{
	bool full = c->full && c->s.purpose == FOR_ALL && c->s.attempt > 2;

	c->s.attempt++;
	if (!full)
		read_again(c);
	else if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_REWRITE, make_room);
}

/* Compacts an item that is full. */
static void make_room(struct adopted *c)
{
	fold_reset(&c->all);
	if (c->encoding->fold(&c->s, &c->all) == ADOPTED_OK)
		c->encoding->compact(&c->s, &c->all, &c->plan);
	if (c->plan.count == 0)
		adopted_end(c, OUTCOME_TOO_LARGE);
	else
		adopted_run(c, read_again, change_lost);
}

static void change_read(struct adopted *c)
{
	enum adopted_status status = c->encoding->change(&c->s, lane_first(c->lane)->create, &c->plan);

	if (status == ADOPTED_MISSING) {
		if (!lane_end_missing(c->lane)) {
			adopted_end(c, OUTCOME_MISSING);
			return;
		}
		gather(c);
		status = c->encoding->change(&c->s, true, &c->plan);
	}
	if (status == ADOPTED_NEEDS_ALL)
		adopted_read(c, &c->s, FOR_ALL, change_read);
	else if (!ended(c, status))
		adopted_run(c, planned_run, change_lost);
}

/* --- answer --- */

/* Returns the item under the key itself, or NULL if it was not read. */
static struct snapshot_item *item_under_key(const struct adopted *c)
{
	for (size_t i = 0; i < c->s.count; i++) {
		if (slice_equal(c->s.items[i]->waiter.key, c->s.key))
			return c->s.items[i];
	}
	return NULL;
}

/*
 * Returns the item with the flags and time to live of the collection, or NULL if it was not read.
 */
static const struct snapshot_item *main_item(const struct adopted *c)
{
	return c->encoding->main_item ? c->encoding->main_item(&c->s) : item_under_key(c);
}

/*
 * Combines the CAS tokens of all items, in any order, into one. The token of a single item is
 * unchanged. Clients may keep a token in a double, which is exact up to 53 bits. A combined
 * token is never 0, which means no token.
 */
static uint64_t cas_of(const struct snapshot *s)
{
	uint64_t sum = 0, only = 0;
	size_t there = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct snapshot_item *item = s->items[i];
		if (!item->there)
			continue;
		only = item->reply.cas;
		sum += hash_mix(hash_key(item->waiter.key, 0) | 1, item->reply.cas | 1ull << 63);
		there++;
	}
	sum >>= 64 - 53;
	return there == 1 ? only : sum ? sum : 1;
}

static size_t bytes_of(const struct snapshot *s)
{
	size_t bytes = 0;

	for (size_t i = 0; i < s->count; i++)
		bytes += snapshot_item_value(s->items[i]).n;
	return bytes;
}

static enum adopted_status fold_all(struct adopted *c)
{
	enum adopted_status status;

	fold_reset(&c->all);
	status = c->encoding->fold(&c->s, &c->all);
	if (status == ADOPTED_OK && lane_is_measured(c->lane))
		lane_measured(c->lane, c->all.live, bytes_of(&c->s));
	return status;
}

static double waste_of(const struct adopted *c)
{
	size_t bytes = bytes_of(&c->s), needed = c->all.live_bytes + c->all.live;

	return bytes > needed ? 1.0 - (double)needed / (double)bytes : 0.0;
}

static bool answer(struct adopted *c, struct set_request *request)
{
	if (!set_answer(&c->view, request))
		return false;
	request->info.base_bytes = bytes_of(&c->s);
	request->info.waste = waste_of(c);
	return true;
}

/* Returns whether the servers report times to live and CAS tokens. */
static bool may_compact(const struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i]->there && (s->items[i]->reply.ttl == TTL_UNKNOWN || s->items[i]->reply.cas == 0))
			return false;
	}
	return true;
}

/* Each operation is finished before the next one takes memory for its answer. */
static void answer_batch(struct lane *lane, const struct result *r)
{
	struct adopted *c = lane->work;
	struct result main = main_item(c)->reply;

	(void)r;
	main.cas = cas_of(&c->s);
	for (lane_drop_abandoned(lane); lane_first(lane); lane_drop_abandoned(lane)) {
		bool done = answer(c, lane_first(lane)->set);
		const struct set_request *asked = lane_first(lane)->set;
		size_t steps = set_answer_steps(asked);
		if (done)
			lane_end_first(lane,
				&(struct outcome){ .status = asked->too_large ? OUTCOME_OVERFLOW : OUTCOME_DONE,
					.result = &main });
		else
			lane_use(lane, set_answer_memory(&c->view, asked));
		if ((!done || lane_is_over(lane, steps)) && lane_first(lane)) {
			lane_pause(lane, answer_batch);
			return;
		}
	}
	adopted_end(c, OUTCOME_DONE);
}

static void answer_all(struct adopted *c)
{
	enum { LEAST = 512 };

	if (ended(c, fold_all(c)))
		return;
	assert(main_item(c));
	if (bytes_of(&c->s) >= LEAST && waste_of(c) > c->s.rule->compact_waste && may_compact(&c->s))
		lane_request_compaction(c->lane);
	set_view_lend(&c->view, &c->all, lane_env(c->lane));
	c->lends = true;
	answer_batch(c->lane, NULL);
}

/* --- replace --- */

/* Writes the elements of a log of additions, each followed by the delimiter. */
static void write_log(const struct adopted *c, struct slice log, struct buf *out)
{
	struct slice token;

	while ((token = slice_token(&log)).n)
		delimited_add(out, slice_skip(token, 1), c->s.rule->delimiter, 1);
}

static void replace_read(struct adopted *c)
{
	enum adopted_status status = fold_all(c);
	enum outcome_status condition;

	if (status != ADOPTED_MISSING && ended(c, status))
		return;
	condition = lane_condition(c->lane, status == ADOPTED_OK, cas_of(&c->s));
	if (condition != OUTCOME_DONE) {
		adopted_end(c, condition);
		return;
	}
	status = ADOPTED_OK;
	if (op_is_list(lane_first(c->lane)))
		write_log(c, lane_first(c->lane)->log, plan_store(&c->plan, c->s.items[0]));
	else
		status = c->encoding->replace(&c->s, &c->change, &c->plan);
	if (!ended(c, status))
		adopted_run(c, planned_run, lost);
}

/* --- take --- */

static void take_read(struct adopted *c)
{
	struct set_request sample = { .verb = SET_SAMPLE, .count = lane_first(c->lane)->count, .sign = "-" };

	if (ended(c, fold_all(c)))
		return;
	sample.random = random_next(&lane_env(c->lane)->random);
	set_answer_fold(&c->all, &sample);
	buf_free(&c->text);
	c->text = sample.text;
	if (buf_size(&c->text) == 0) {
		adopted_end(c, OUTCOME_DONE);
		return;
	}
	fold_reset(&c->change);
	fold_more(&c->change, buf_slice(&c->text));
	c->encoding->take(&c->s, &c->all, &c->change, &c->plan);
	adopted_run(c, planned_run, lost);
}

/* --- compact --- */

static void prepare_compact(struct adopted *c)
{
	c->lane->compaction_requested = false;
	c->s.forced = lane_first(c->lane)->all;
}

static void compact_run(struct adopted *c)
{
	c->lane->lanes->stats.compactions++;
	if (c->plan.again)
		read_again(c);
	else
		adopted_end(c, OUTCOME_DONE);
}

static void compact_read(struct adopted *c)
{
	if (ended(c, fold_all(c)))
		return;
	if (may_compact(&c->s))
		c->encoding->compact(&c->s, &c->all, &c->plan);
	if (c->plan.count == 0)
		adopted_end(c, OUTCOME_DONE);
	else
		adopted_run(c, compact_run, lost);
}

/* --- pushes to a list --- */

/* A push that was not stored did not take effect, so it may be retried. */
static void push_lost(struct adopted *c)
{
	if (c->full && c->s.attempt > 1)
		adopted_end(c, OUTCOME_TOO_LARGE);
	else
		lost(c);
}

static void plan_push(struct adopted *c, enum call_verb verb)
{
	lane_merge_log(c->lane);
	write_log(c, lane_log(c->lane), plan_add(&c->plan, verb, c->s.items[0], NULL));
	adopted_run(c, done, push_lost);
}

/* The first snapshot, FOR_WRITE, names the item without reading it. */
static void push_read(struct adopted *c)
{
	if (c->s.purpose == FOR_WRITE || c->s.items[0]->there)
		plan_push(c, lane_first(c->lane)->front ? CALL_PREPEND : CALL_APPEND);
	else if (lane_end_missing(c->lane))
		plan_push(c, CALL_ADD);
	else
		adopted_end(c, OUTCOME_MISSING);
}

/* --- lists --- */

static bool read_elements(const struct adopted *c, struct elements *elements)
{
	struct slice text = snapshot_item_value(c->s.items[0]), element;

	while (text.n) {
		if (!delimited_next(&text, c->s.rule->delimiter, &element))
			return false;
		elements_add(elements, element);
	}
	return true;
}

static void answer_list(struct adopted *c)
{
	lane_answer_lists(c->lane, buf_slice(&c->text), &c->s.items[0]->reply);
	adopted_end(c, OUTCOME_DONE);
}

static void answer_reads(struct lane *lane, const struct result *r)
{
	struct adopted *c = lane->work;

	(void)r;
	if (lane_answer_list_reads(lane, segmented_list_read_slice, &c->list, &c->text, &c->s.items[0]->reply))
		adopted_end(c, OUTCOME_DONE);
	else
		lane_pause(lane, answer_reads);
}

static void rewrite_list(struct adopted *c)
{
	struct buf log = BUF_EMPTY;

	list_piece_log(c->list.pieces, &log);
	write_log(c, buf_slice(&log), plan_rewrite(&c->plan, c->s.items[0]));
	buf_free(&log);
	adopted_run(c, answer_list, lost);
}

static void carry_out_list(struct adopted *c)
{
	bool changed = false;
	struct op *op;

	buf_consume(&c->text, buf_size(&c->text));
	if (lane_reads_list(c->lane)) {
		answer_reads(c->lane, NULL);
		return;
	}
	STAILQ_FOREACH(op, &c->lane->batch, link)
		changed |= segmented_list_apply(&c->list, op->list, &c->text);
	if (changed)
		rewrite_list(c);
	else
		answer_list(c);
}

static void list_read(struct adopted *c)
{
	struct elements elements = { 0 };
	bool good = c->s.items[0]->there && read_elements(c, &elements);

	segmented_list_free(&c->list);
	segmented_list_of(&c->list, &elements);
	if (good)
		carry_out_list(c);
	else
		adopted_end(c, c->s.items[0]->there ? OUTCOME_CORRUPT : OUTCOME_MISSING);
}

/* --- touch and delete --- */

/*
 * Returns the item at position `i` in the order of a touch or delete, or NULL for none. The
 * main item is first, since without it the collection does not exist and its other items do not
 * count. A touch that extends its life touches the others before it as well.
 */
static struct snapshot_item *next_item(const struct adopted *c, size_t i)
{
	const struct snapshot_item *vital = main_item(c);
	size_t n = c->s.count;
	struct snapshot_item *item = i < n ? c->s.items[i] : c->s.items[n - 1 - (i - n) % n];

	if (i < n &&
		!(c->kind == OP_TOUCH && vital && vital->there &&
			ttl_prolongs(lane_env(c->lane), lane_first(c->lane)->ttl, vital->reply.ttl)))
		return NULL;
	if (i < 2 * n ? i >= n && item != vital : item == vital)
		return NULL;
	return item->there && (i >= n || item != vital) ? item : NULL;
}

/*
 * Once the main item is deleted, other clients may create the collection again. So the other
 * items are removed by CAS, if the server supports it.
 */
static void plan_step_for(struct adopted *c, struct snapshot_item *item)
{
	if (c->kind == OP_TOUCH)
		plan_add(&c->plan, CALL_TOUCH, item, NULL);
	else if ((item == main_item(c) && !c->encoding->vital_item) || item->reply.cas == 0)
		plan_add(&c->plan, CALL_DELETE, item, NULL);
	else
		plan_expire(&c->plan, item);
}

/* Additions and removals change the main item only. */
static void touch_checked(struct adopted *c)
{
	const struct snapshot_item *main = main_item(c);

	for (size_t i = 0; i < c->now.count; i++) {
		const struct snapshot_item *item = c->now.items[i], *before = snapshot_find(&c->s, item->role);
		if (item->there && (!before->there || (item->reply.cas != before->reply.cas && before != main))) {
			lost(c);
			return;
		}
	}
	done(c);
}

static void round_run(struct adopted *c)
{
	if (c->kind == OP_TOUCH && c->encoding->vital_item && !c->missing)
		adopted_read(c, &c->now, FOR_ALL, touch_checked);
	else
		done(c);
}

static void run_round(struct adopted *c)
{
	size_t end = 3 * c->s.count;

	plan_free(&c->plan);
	/* There may be more items than a plan has steps. */
	while (c->reached < end && c->plan.count < PLAN_STEPS_MAX) {
		struct snapshot_item *item = next_item(c, c->reached++);
		if (item)
			plan_step_for(c, item);
	}
	adopted_run(c, c->reached < end ? run_round : round_run, done);
}

/*
 * Another delete was first. Its proxy may have been killed, so the remaining items
 * are removed anyway.
 */
static void deleted_before(struct adopted *c)
{
	c->missing = true;
	run_round(c);
}

/* Of several concurrent deletes, the one that removes this item has deleted the collection. */
static void delete_first(struct adopted *c, struct snapshot_item *item)
{
	plan_free(&c->plan);
	plan_step_for(c, item);
	c->plan.must = true;
	item->there = false;
	adopted_run(c, run_round, c->plan.steps[0].expire ? lost : deleted_before);
}

static void delete_read(struct adopted *c)
{
	struct snapshot_item *first = c->encoding->vital_item ? c->encoding->vital_item(&c->s) : item_under_key(c);
	enum adopted_status status;

	fold_reset(&c->all);
	status = c->encoding->fold(&c->s, &c->all);
	/*
	 * With a vital item, a collection that another delete has not completely removed looks
	 * like one that has lost an item. Reads report that as missing, too.
	 */
	c->missing = status == ADOPTED_MISSING || (status == ADOPTED_LOST && c->encoding->vital_item);
	c->reached = 0;
	if (status == ADOPTED_MISSING && c->encoding->vital_item)
		done(c);
	else if (first->there)
		delete_first(c, first);
	else
		run_round(c);
}

static void touch_read(struct adopted *c)
{
	fold_reset(&c->all);
	c->missing = c->encoding->fold(&c->s, &c->all) == ADOPTED_MISSING;
	c->reached = 0;
	run_round(c);
}

/* --- all --- */

void adopted_start(struct lane *lane, enum op_kind kind)
{
	static const struct flow push = { lane_count_appends, NULL, FOR_WRITE, push_read };
	static const struct flow flows[] = {
		[OP_APPEND] = { lane_count_appends, gather, FOR_WRITE, change_read },
		[OP_READ] = { lane_count_reads, NULL, FOR_ALL, answer_all },
		[OP_REPLACE] = { NULL, gather, FOR_REWRITE, replace_read },
		[OP_POP] = { NULL, NULL, FOR_REWRITE, take_read },
		[OP_COMPACT] = { NULL, prepare_compact, FOR_REWRITE, compact_read },
		[OP_LIST] = { NULL, NULL, FOR_REWRITE, list_read },
		[OP_TOUCH] = { NULL, NULL, FOR_ALL, touch_read },
		[OP_DELETE] = { NULL, NULL, FOR_ALL, delete_read },
	};
	struct adopted *c = adopted_create(lane, kind);

	c->flow = kind == OP_APPEND && op_is_list(lane_first(lane)) ? &push : &flows[kind];
	start(c);
}
