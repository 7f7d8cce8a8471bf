/*
 * Lists in the csv encoding: a push is a blind APPEND or PREPEND, all else one read and at most one CAS of the whole list.
 */
#include "collection/coded.h"
#include "collection/encodings/words.h"
#include "collection/items.h"

/* The items of a log of additions, each ended by the delimiter. */
static void write_log(const struct coded *c, struct slice log, struct buf *out)
{
	struct slice token;

	while ((token = slice_token(&log)).n)
		delimited_add(out, slice_skip(token, 1), c->s.rule->delimiter, 1);
}

/* --- pushes --- */

static void push_lost(struct coded *c);

static void pushed(struct coded *c)
{
	coded_end(c, OUTCOME_DONE);
}

static void plan_push(struct coded *c, enum call_verb verb)
{
	lane_merge_log(c->lane);
	write_log(c, lane_log(c->lane), plan_add(&c->plan, verb, c->s.pieces[0], NULL));
	coded_run(c, pushed, push_lost);
}

static void push_blind(struct coded *c)
{
	plan_push(c, lane_first(c->lane)->front ? CALL_PREPEND : CALL_APPEND);
}

static void push_read(struct coded *c)
{
	if (c->s.pieces[0]->there)
		push_blind(c);
	else if (lane_end_missing(c->lane))
		plan_push(c, CALL_ADD);
	else
		coded_end(c, OUTCOME_MISSING);
}

/* Not stored is known not to have happened, so it may be sent again. */
static void push_lost(struct coded *c)
{
	c->s.attempt++;
	if (c->full && c->s.attempt > 2)
		coded_end(c, OUTCOME_TOO_LARGE);
	else if (coded_again(c))
		coded_read(c, &c->s, FOR_ALL, push_read);
}

void coded_push(struct coded *c)
{
	lane_count_appends(c->lane);
	coded_read(c, &c->s, FOR_WRITE, push_blind);
}

/* --- reading and rewriting --- */

static bool read_items(const struct coded *c, struct items *items)
{
	struct slice rest = piece_value(c->s.pieces[0]), item;

	while (rest.n) {
		if (!delimited_next(&rest, c->s.rule->delimiter, &item))
			return false;
		items_add(items, item);
	}
	return true;
}

static void answer(struct coded *c)
{
	const struct piece *piece = c->s.pieces[0];
	struct result base = { .status = RESULT_HIT, .flags = piece->flags, .cas = piece->cas, .ttl = piece->ttl };

	lane_answer_lists(c->lane, buf_slice(&c->text), &base);
	coded_end(c, OUTCOME_DONE);
}

static void list_read(struct coded *c);

static void list_lost(struct coded *c)
{
	c->s.attempt++;
	buf_consume(&c->text, buf_size(&c->text));
	if (coded_again(c))
		coded_read(c, &c->s, FOR_REWRITE, list_read);
}

static void write_items(const struct coded *c, const struct items *items, struct buf *out)
{
	for (size_t i = 0; i < items->count; i++)
		delimited_add(out, items->list[i], c->s.rule->delimiter, 1);
}

static void carry_out(struct coded *c, struct items *items)
{
	struct piece *piece = c->s.pieces[0];
	bool changed = false;
	struct op *op;

	STAILQ_FOREACH(op, &c->lane->batch, link)
		changed |= items_apply(items, op->list, &c->text);
	if (changed) {
		write_items(c, items, plan_rewrite(&c->plan, piece));
		coded_run(c, answer, list_lost);
	} else {
		answer(c);
	}
}

static void list_read(struct coded *c)
{
	struct items items = { 0 };

	if (!c->s.pieces[0]->there)
		coded_end(c, OUTCOME_MISSING);
	else if (!read_items(c, &items))
		coded_end(c, OUTCOME_CORRUPT);
	else
		carry_out(c, &items);
	items_free(&items);
}

void coded_list(struct coded *c)
{
	coded_read(c, &c->s, FOR_REWRITE, list_read);
}

void coded_write_list(const struct coded *c, struct slice log, struct plan *plan)
{
	struct piece *piece = c->s.pieces[0];

	write_log(c, log, plan_store(plan, piece));
}
