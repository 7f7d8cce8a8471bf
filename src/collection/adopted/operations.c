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
#include "util/random.h"

/* The start of an operation. */
struct flow {
	machine *count;        /* counts the batch for statistics; or NULL */
	adopted_next *prepare; /* called instead of the first read, which it calls; or NULL */
	enum purpose purpose;  /* of the first read */
	adopted_next *read;    /* called after each read: makes the plan */
};

static adopted_next operation_make_room;

static void operation_read_first(struct adopted *c)
{
	adopted_read(c, &c->s, c->flow->purpose, c->flow->read);
}

static void start(struct adopted *c)
{
	if (c->flow->count)
		c->flow->count(c->lane);
	if (c->flow->prepare)
		c->flow->prepare(c);
	else
		operation_read_first(c);
}

/*
 * Plans again from a new snapshot, unless there were too many attempts. A write that was
 * planned without reading its items now reads all of them.
 */
static void operation_read_again(struct adopted *c)
{
	enum purpose purpose = c->flow->purpose == FOR_WRITE ? FOR_ALL : c->flow->purpose;

	if (adopted_retry(c))
		adopted_read(c, &c->s, purpose, c->flow->read);
}

/* Called after a lost race: plans again. */
static void operation_on_lost(struct adopted *c)
{
	c->s.attempt++;
	operation_read_again(c);
}

/* --- a collection with a missing item --- */

/* Returns whether the operation does nothing if there is no collection. */
static bool needs_one(const struct adopted *c)
{
	return c->kind == OP_READ || c->kind == OP_POP || c->kind == OP_TAKE ||
		c->kind == OP_COMPACT;
}

static void operation_on_cleared(struct adopted *c)
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
	adopted_run(c, operation_on_cleared, operation_on_lost);
}

/*
 * If there is no collection to work with, ends the batch or clears the remaining items, and
 * returns true. After ADOPTED_PAUSED calls c->next in the next slice. Items that grew while
 * they were read may be from different moments. If they are inconsistent, they are read once
 * more, as for a rewrite.
 */
static bool ended(struct adopted *c, enum adopted_status status)
{
	if (status == ADOPTED_OK)
		return false;
	if (status == ADOPTED_PAUSED)
		adopted_pause(c, c->next);
	else if (status == ADOPTED_LOST)
		clear(c);
	else if (status == ADOPTED_CORRUPT && c->s.purpose != FOR_REWRITE)
		adopted_read(c, &c->s, FOR_REWRITE, c->next);
	else
		adopted_end(c, status == ADOPTED_MISSING ? OUTCOME_MISSING : OUTCOME_CORRUPT);
	return true;
}

/* --- after a plan was carried out --- */

static void operation_on_done(struct adopted *c)
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

static void operation_on_checked(struct adopted *c)
{
	enum adopted_status status = c->encoding->check(&c->s, &c->now);

	if (status == ADOPTED_PAUSED)
		adopted_pause(c, operation_on_checked);
	else if (status == ADOPTED_OK)
		finish(c);
	else
		operation_on_lost(c);
}

static void operation_on_planned_run(struct adopted *c)
{
	if (c->plan.check)
		adopted_read(c, &c->now, FOR_CHECK, operation_on_checked);
	else if (!c->plan.again)
		finish(c);
	else if (c->kind == OP_APPEND)
		operation_read_again(c);
	else
		operation_on_lost(c);
}

/* --- change --- */

/* Folds c->unread and the logs of the operations after c->gathered, then calls c->then. */
static void operation_gather(struct adopted *c)
{
	enum { BYTES = 8 /* read in one step */ };
	struct slice *rest = &c->unread.text;

	while (rest->n || (c->gathered && (c->gathered = STAILQ_NEXT(c->gathered, link)))) {
		size_t before;
		bool good;
		if (rest->n == 0)
			*rest = c->gathered->log;
		before = rest->n;
		good = fold_portion(&c->change, rest);
		assert(good);
		(void)good;
		if (lane_is_over(c->lane, (before - rest->n) / BYTES + 1)) {
			adopted_pause(c, operation_gather);
			return;
		}
	}
	c->then(c);
}

/* Folds a log and, unless `op` is NULL, the logs of the later operations of the batch. */
static void begin_gathering(
	struct adopted *c, struct slice log, const struct op *op, adopted_next *then)
{
	fold_reset(&c->change);
	c->unread.text = log;
	c->gathered = op;
	c->then = then;
	operation_gather(c);
}

/* Folds the changes of the batch. */
static void gather_all(struct adopted *c, adopted_next *then)
{
	const struct op *first = lane_first(c->lane);

	begin_gathering(c, first->log, first, then);
}

static void operation_prepare_change(struct adopted *c)
{
	gather_all(c, operation_read_first);
}

static void operation_on_change_lost(struct adopted *c)
{
	bool full = c->full && c->s.purpose == FOR_ALL && c->s.attempt > 2;

	c->s.attempt++;
	if (!full)
		operation_read_again(c);
	else if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_REWRITE, operation_make_room);
}

/* Compacts an item that is full. */
static void operation_make_room(struct adopted *c)
{
	if (!snapshot_fold(&c->s) ||
		(c->s.status == ADOPTED_OK &&
			c->encoding->compact(&c->s, &c->plan) == ADOPTED_PAUSED))
		adopted_pause(c, operation_make_room);
	else if (c->plan.count == 0)
		adopted_end(c, OUTCOME_TOO_LARGE);
	else
		adopted_run(c, operation_read_again, operation_on_change_lost);
}

static void operation_on_change_read(struct adopted *c)
{
	enum adopted_status status =
		c->encoding->change(&c->s, lane_first(c->lane)->create, &c->plan);

	if (status == ADOPTED_MISSING) {
		if (!lane_end_missing(c->lane)) {
			adopted_end(c, OUTCOME_MISSING);
			return;
		}
		gather_all(c, operation_on_change_read);
		return;
	}
	if (status == ADOPTED_NEEDS_ALL)
		adopted_read(c, &c->s, FOR_ALL, operation_on_change_read);
	else if (!ended(c, status))
		adopted_run(c, operation_on_planned_run, operation_on_change_lost);
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

static enum adopted_status fold_all(struct adopted *c)
{
	if (!snapshot_fold(&c->s))
		return ADOPTED_PAUSED;
	if (c->s.status == ADOPTED_OK && lane_is_measured(c->lane))
		lane_measured(c->lane, c->s.all.fold.live, snapshot_bytes(&c->s));
	return c->s.status;
}

/* Answers from the fold. */
static void lend(struct adopted *c)
{
	if (!c->lends)
		set_view_lend(&c->view, &c->s.all.fold, lane_env(c->lane));
	c->lends = true;
}

static double waste_of(const struct adopted *c)
{
	size_t bytes = snapshot_bytes(&c->s),
	       needed = c->s.all.fold.live_bytes + c->s.all.fold.live;

	return bytes > needed ? 1.0 - (double)needed / (double)bytes : 0.0;
}

static bool answer(struct adopted *c, struct set_request *request)
{
	if (!set_answer(&c->view, request))
		return false;
	request->info.base_bytes = snapshot_bytes(&c->s);
	request->info.waste = waste_of(c);
	return true;
}

/* Each operation is finished before the next one takes memory for its answer. */
static void operation_answer_batch(struct lane *lane, const struct result *r)
{
	struct adopted *c = lane->work;
	struct result main = main_item(c)->reply;

	(void)r;
	main.cas = snapshot_cas(&c->s);
	for (lane_drop_abandoned(lane); lane_first(lane); lane_drop_abandoned(lane)) {
		bool operation_on_done = answer(c, lane_first(lane)->set);
		const struct set_request *asked = lane_first(lane)->set;
		size_t steps = set_answer_steps(asked);
		if (operation_on_done)
			lane_end_first(lane,
				&(struct outcome){ .status = asked->too_large ? OUTCOME_OVERFLOW
									      : OUTCOME_DONE,
					.result = &main });
		else
			lane_use(lane, set_answer_memory(&c->view, asked));
		if ((!operation_on_done || lane_is_over(lane, steps)) && lane_first(lane)) {
			lane_pause(lane, operation_answer_batch);
			return;
		}
	}
	adopted_end(c, OUTCOME_DONE);
}

static void operation_answer_all(struct adopted *c)
{
	enum { LEAST = 512 };

	lane_drop_abandoned(c->lane);
	if (!lane_first(c->lane)) {
		adopted_end(c, OUTCOME_DONE);
		return;
	}
	if (ended(c, fold_all(c)))
		return;
	assert(main_item(c));
	if (snapshot_bytes(&c->s) >= LEAST && waste_of(c) > c->s.rule->compact_waste &&
		snapshot_can_be_rewritten(&c->s))
		lane_request_compaction(c->lane);
	lend(c);
	adopted_count(c);
	operation_answer_batch(c->lane, NULL);
}

/* --- replace --- */

static void operation_write_element(
	struct snapshot *s, const struct fold_member *m, const struct fold *other, struct buf *out)
{
	(void)other;
	delimited_add(out, member_of(m), s->rule->delimiter, 1);
}

/* Writes the elements of a log of additions, each followed by the delimiter. */
static void plan_log(struct adopted *c, struct slice log)
{
	plan_write(&c->plan,
		(struct members_text){ .write = operation_write_element,
			.text = { .text = log, .kind = WORDS_LOG } });
}

static void operation_on_replace_read(struct adopted *c)
{
	enum adopted_status status = fold_all(c);
	enum outcome_status condition;

	if (status != ADOPTED_MISSING && ended(c, status))
		return;
	condition = lane_condition(c->lane, status == ADOPTED_OK, snapshot_cas(&c->s));
	if (condition != OUTCOME_DONE) {
		adopted_end(c, condition);
		return;
	}
	status = ADOPTED_OK;
	if (op_is_list(lane_first(c->lane))) {
		plan_store(&c->plan, c->s.items[0]);
		plan_log(c, lane_first(c->lane)->log);
	} else {
		status = c->encoding->replace(&c->s, &c->change, &c->plan);
	}
	if (!ended(c, status))
		adopted_run(c, operation_on_planned_run, operation_on_lost);
}

/* --- take --- */

static void operation_take(struct adopted *c)
{
	c->next = operation_take;
	if (!ended(c, c->encoding->take(&c->s, &c->change, &c->plan)))
		adopted_run(c, operation_on_planned_run, operation_on_lost);
}

/* Chooses the members to take. */
static void operation_choose(struct adopted *c)
{
	if (!c->lends)
		c->sample = (struct set_request){
			.verb = SET_SAMPLE,
			.count = c->kind == OP_TAKE ? UINT64_MAX : lane_first(c->lane)->count,
			.sign = "-",
			.random = random_next(&lane_env(c->lane)->random),
		};
	lend(c);
	if (!set_answer(&c->view, &c->sample)) {
		adopted_pause(c, operation_choose);
		return;
	}
	set_view_give_back(&c->view);
	c->lends = false;
	buf_free(&c->text);
	c->text = c->sample.text;
	c->sample.text = BUF_EMPTY;
	if (buf_size(&c->text) == 0) {
		adopted_end(c, c->sample.too_large ? OUTCOME_OVERFLOW : OUTCOME_DONE);
		return;
	}
	set_request_free(&c->sample);
	begin_gathering(c, buf_slice(&c->text), NULL, operation_take);
}

static void operation_on_take_read(struct adopted *c)
{
	if (!ended(c, fold_all(c)))
		operation_choose(c);
}

/* --- compact --- */

static void operation_prepare_compact(struct adopted *c)
{
	c->lane->compaction_requested = false;
	c->s.forced = lane_first(c->lane)->all;
	operation_read_first(c);
}

static void operation_on_compact_run(struct adopted *c)
{
	c->lane->lanes->stats.compactions++;
	if (c->plan.again)
		operation_read_again(c);
	else
		adopted_end(c, OUTCOME_DONE);
}

static void operation_on_compact_read(struct adopted *c)
{
	if (ended(c, fold_all(c)) ||
		(snapshot_can_be_rewritten(&c->s) &&
			ended(c, c->encoding->compact(&c->s, &c->plan))))
		return;
	if (c->plan.count == 0)
		adopted_end(c, OUTCOME_DONE);
	else
		adopted_run(c, operation_on_compact_run, operation_on_lost);
}

/* --- pushes to a list --- */

/* A push that was not stored did not take effect, so it may be retried. */
static void operation_on_push_lost(struct adopted *c)
{
	if (c->full && c->s.attempt > 1)
		adopted_end(c, OUTCOME_TOO_LARGE);
	else
		operation_on_lost(c);
}

static void plan_push(struct adopted *c, enum call_verb verb)
{
	lane_merge_log(c->lane);
	plan_add(&c->plan, verb, c->s.items[0], NULL);
	plan_log(c, lane_log(c->lane));
	adopted_run(c, operation_on_done, operation_on_push_lost);
}

/* The first snapshot, FOR_WRITE, names the item without reading it. */
static void operation_on_push_read(struct adopted *c)
{
	if (c->s.purpose == FOR_WRITE || c->s.items[0]->there)
		plan_push(c, lane_first(c->lane)->front ? CALL_PREPEND : CALL_APPEND);
	else if (lane_end_missing(c->lane))
		plan_push(c, CALL_ADD);
	else
		adopted_end(c, OUTCOME_MISSING);
}

/* --- lists --- */

static void operation_answer_list(struct adopted *c)
{
	lane_answer_lists(c->lane, buf_slice(&c->text), &c->s.items[0]->reply);
	adopted_end(c, OUTCOME_DONE);
}

static void operation_answer_reads(struct lane *lane, const struct result *r)
{
	struct adopted *c = lane->work;

	(void)r;
	if (lane_answer_list_reads(
		    lane, segmented_list_read_slice, &c->list, &c->text, &c->s.items[0]->reply))
		adopted_end(c, OUTCOME_DONE);
	else
		lane_pause(lane, operation_answer_reads);
}

static void operation_rewrite_list(struct adopted *c)
{
	const struct list_piece *piece = c->list.pieces;
	struct buf *value = &c->plan.steps[0].value;

	while (c->reached < piece->ref.keep) {
		struct slice element = piece->elements.list[piece->ref.skip + c->reached++];
		delimited_add(value, element, c->s.rule->delimiter, 1);
		if (lane_is_over(c->lane, 1)) {
			adopted_pause(c, operation_rewrite_list);
			return;
		}
	}
	adopted_run(c, operation_answer_list, operation_on_lost);
}

/* Carries out the requests after c->gathered, one by one. */
static void operation_change_list(struct adopted *c)
{
	enum { ELEMENTS = 16 /* looked at in one step */ };

	for (struct op *op;
		(op = c->gathered ? STAILQ_NEXT(c->gathered, link) : lane_first(c->lane));) {
		size_t steps = segmented_list_count(&c->list) / ELEMENTS + 1;
		c->gathered = op;
		c->changed |= segmented_list_apply(&c->list, op->list, &c->text);
		if (lane_is_over(c->lane, steps)) {
			adopted_pause(c, operation_change_list);
			return;
		}
	}
	if (!c->changed) {
		operation_answer_list(c);
		return;
	}
	c->reached = 0;
	plan_rewrite(&c->plan, c->s.items[0]);
	operation_rewrite_list(c);
}

static void carry_out_list(struct adopted *c)
{
	segmented_list_free(&c->list);
	segmented_list_of(&c->list, &c->elements);
	buf_consume(&c->text, buf_size(&c->text));
	c->gathered = NULL;
	c->changed = false;
	if (lane_reads_list(c->lane))
		operation_answer_reads(c->lane, NULL);
	else
		operation_change_list(c);
}

static void operation_read_elements(struct adopted *c)
{
	struct slice element;

	if (lane_reads_list(c->lane))
		lane_drop_abandoned(c->lane);
	if (!lane_first(c->lane)) {
		adopted_end(c, OUTCOME_DONE);
		return;
	}
	while (words_next(&c->unread, &element)) {
		elements_add(&c->elements, element);
		if (lane_is_over(c->lane, 1)) {
			adopted_pause(c, operation_read_elements);
			return;
		}
	}
	if (c->unread.text.n)
		adopted_end(c, OUTCOME_CORRUPT);
	else
		carry_out_list(c);
}

static void operation_on_list_read(struct adopted *c)
{
	const struct snapshot_item *item = c->s.items[0];

	elements_free(&c->elements);
	c->unread = (struct words){ snapshot_item_value(item), WORDS_ADDED, c->s.rule->delimiter };
	if (item->there)
		operation_read_elements(c);
	else
		adopted_end(c, OUTCOME_MISSING);
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
			ttl_prolongs(
				lane_env(c->lane), lane_first(c->lane)->ttl, vital->reply.ttl)))
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
static void operation_on_touch_checked(struct adopted *c)
{
	const struct snapshot_item *main = main_item(c);

	for (size_t i = 0; i < c->now.count; i++) {
		const struct snapshot_item *item = c->now.items[i],
					   *before = snapshot_find(&c->s, item->role);
		if (item->there &&
			(!before->there ||
				(item->reply.cas != before->reply.cas && before != main))) {
			operation_on_lost(c);
			return;
		}
	}
	operation_on_done(c);
}

static void operation_on_round_run(struct adopted *c)
{
	if (c->kind == OP_TOUCH && c->encoding->vital_item && !c->missing)
		adopted_read(c, &c->now, FOR_ALL, operation_on_touch_checked);
	else
		operation_on_done(c);
}

static void operation_run_round(struct adopted *c)
{
	size_t end = 3 * c->s.count;

	plan_free(&c->plan);
	/* There may be more items than a plan has steps. */
	while (c->reached < end && c->plan.count < PLAN_STEPS_MAX) {
		struct snapshot_item *item = next_item(c, c->reached++);
		if (item)
			plan_step_for(c, item);
	}
	adopted_run(c, c->reached < end ? operation_run_round : operation_on_round_run,
		operation_on_done);
}

/*
 * Another delete was first. Its proxy may have been killed, so the remaining items
 * are removed anyway.
 */
static void operation_deleted_before(struct adopted *c)
{
	c->missing = true;
	operation_run_round(c);
}

/* Of several concurrent deletes, the one that removes this item has deleted the collection. */
static void delete_first(struct adopted *c, struct snapshot_item *item)
{
	plan_free(&c->plan);
	plan_step_for(c, item);
	c->plan.must = true;
	item->there = false;
	adopted_run(c, operation_run_round,
		c->plan.steps[0].expire ? operation_on_lost : operation_deleted_before);
}

static void operation_on_delete_read(struct adopted *c)
{
	struct snapshot_item *first =
		c->encoding->vital_item ? c->encoding->vital_item(&c->s) : item_under_key(c);
	enum adopted_status status;

	if (!snapshot_fold(&c->s)) {
		adopted_pause(c, operation_on_delete_read);
		return;
	}
	status = c->s.status;
	/*
	 * With a vital item, a collection that another delete has not completely removed looks
	 * like one that has lost an item. Reads report that as missing, too.
	 */
	c->missing =
		status == ADOPTED_MISSING || (status == ADOPTED_LOST && c->encoding->vital_item);
	c->reached = 0;
	if (status == ADOPTED_MISSING && c->encoding->vital_item)
		operation_on_done(c);
	else if (first->there)
		delete_first(c, first);
	else
		operation_run_round(c);
}

static void operation_on_touch_read(struct adopted *c)
{
	if (!snapshot_fold(&c->s)) {
		adopted_pause(c, operation_on_touch_read);
		return;
	}
	c->missing = c->s.status == ADOPTED_MISSING;
	c->reached = 0;
	operation_run_round(c);
}

/* --- all --- */

void adopted_start(struct lane *lane, enum op_kind kind)
{
	static const struct flow push = { lane_count_appends, NULL, FOR_WRITE,
		operation_on_push_read };
	static const struct flow flows[] = {
		[OP_APPEND] = { lane_count_appends, operation_prepare_change, FOR_WRITE,
			operation_on_change_read },
		[OP_READ] = { lane_count_reads, NULL, FOR_ALL, operation_answer_all },
		[OP_REPLACE] = { NULL, operation_prepare_change, FOR_REWRITE,
			operation_on_replace_read },
		[OP_POP] = { NULL, NULL, FOR_REWRITE, operation_on_take_read },
		[OP_TAKE] = { NULL, NULL, FOR_REWRITE, operation_on_take_read },
		[OP_COMPACT] = { NULL, operation_prepare_compact, FOR_REWRITE,
			operation_on_compact_read },
		[OP_LIST] = { NULL, NULL, FOR_REWRITE, operation_on_list_read },
		[OP_TOUCH] = { NULL, NULL, FOR_ALL, operation_on_touch_read },
		[OP_DELETE] = { NULL, NULL, FOR_ALL, operation_on_delete_read },
	};
	struct adopted *c = adopted_create(lane, kind);

	c->flow = kind == OP_APPEND && op_is_list(lane_first(lane)) ? &push : &flows[kind];
	start(c);
}
