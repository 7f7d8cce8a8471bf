/*
 * Lists in the csv encoding. A push is an APPEND or PREPEND without a read:
 *
 *     append or prepend -> not stored: read -> the list is there: append or prepend
 *                                           -> it is missing:     add
 *
 * All other requests of a batch are one read and at most one CAS of the whole list:
 *
 *     read -> carry out -> only reads: answer
 *                       -> else:       CAS -> answer
 */
#include "collection/adopted/adopted.h"
#include "collection/adopted/encodings/words.h"
#include "collection/lane/batch.h"
#include "collection/list/segmented_list.h"

static adopted_next push_blind, push_read, push_lost, pushed;
static adopted_next list_read, list_lost, answer;

/* Writes the items of a log of additions, each followed by the delimiter. */
static void write_log(const struct adopted *c, struct slice log, struct buf *out)
{
	struct slice token;

	while ((token = slice_token(&log)).n)
		delimited_add(out, slice_skip(token, 1), c->s.rule->delimiter, 1);
}

/* --- pushes --- */

static void plan_push(struct adopted *c, enum call_verb verb)
{
	lane_merge_log(c->lane);
	write_log(c, lane_log(c->lane), plan_add(&c->plan, verb, c->s.items[0], NULL));
	adopted_run(c, pushed, push_lost);
}

void adopted_push(struct adopted *c)
{
	lane_count_appends(c->lane);
	adopted_read(c, &c->s, FOR_WRITE, push_blind);
}

static void push_blind(struct adopted *c)
{
	plan_push(c, lane_first(c->lane)->front ? CALL_PREPEND : CALL_APPEND);
}

static void pushed(struct adopted *c)
{
	adopted_end(c, OUTCOME_DONE);
}

/* A push that was not stored did not take effect, so it may be sent again. */
static void push_lost(struct adopted *c)
{
	c->s.attempt++;
	if (c->full && c->s.attempt > 2)
		adopted_end(c, OUTCOME_TOO_LARGE);
	else if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_ALL, push_read);
}

static void push_read(struct adopted *c)
{
	if (c->s.items[0]->there)
		push_blind(c);
	else if (lane_end_missing(c->lane))
		plan_push(c, CALL_ADD);
	else
		adopted_end(c, OUTCOME_MISSING);
}

/* --- reading and rewriting --- */

void adopted_list(struct adopted *c)
{
	adopted_read(c, &c->s, FOR_REWRITE, list_read);
}

static bool read_elements(const struct adopted *c, struct elements *elements)
{
	struct slice text = snapshot_item_value(c->s.items[0]), item;

	while (text.n) {
		if (!delimited_next(&text, c->s.rule->delimiter, &item))
			return false;
		elements_add(elements, item);
	}
	return true;
}

static void rewrite(struct adopted *c, const struct segmented_list *list)
{
	struct buf log = BUF_EMPTY;

	list_piece_log(list->pieces, &log);
	write_log(c, buf_slice(&log), plan_rewrite(&c->plan, c->s.items[0]));
	buf_free(&log);
	adopted_run(c, answer, list_lost);
}

static void carry_out(struct adopted *c, struct segmented_list *list)
{
	bool changed = false;
	struct op *op;

	STAILQ_FOREACH(op, &c->lane->batch, link)
		changed |= segmented_list_apply(list, op->list, &c->text);
	if (changed)
		rewrite(c, list);
	else
		answer(c);
}

static void list_read(struct adopted *c)
{
	struct elements elements = { 0 };
	struct segmented_list list;
	bool good = c->s.items[0]->there && read_elements(c, &elements);

	segmented_list_of(&list, &elements);
	if (good)
		carry_out(c, &list);
	else
		adopted_end(c, c->s.items[0]->there ? OUTCOME_CORRUPT : OUTCOME_MISSING);
	segmented_list_free(&list);
}

static void answer(struct adopted *c)
{
	const struct snapshot_item *item = c->s.items[0];
	struct result base = { .status = RESULT_HIT, .flags = item->flags, .cas = item->cas, .ttl = item->ttl };

	lane_answer_lists(c->lane, buf_slice(&c->text), &base);
	adopted_end(c, OUTCOME_DONE);
}

static void list_lost(struct adopted *c)
{
	c->s.attempt++;
	buf_consume(&c->text, buf_size(&c->text));
	if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_REWRITE, list_read);
}

void adopted_write_list(const struct adopted *c, struct slice log, struct plan *plan)
{
	struct snapshot_item *item = c->s.items[0];

	write_log(c, log, plan_store(plan, item));
}
