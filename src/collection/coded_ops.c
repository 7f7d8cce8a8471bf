/*
 * What the operations are in encodings beside oplog:
 *
 *     change   read what it takes -> plan -> run -> check -> done
 *     view     read all -> fold -> answer
 *     replace  read all -> plan -> run -> check -> done
 *     take     read all -> fold -> choose -> plan -> run -> done
 *     compact  read all -> fold -> plan -> run -> and again, until there is nothing to gain
 *
 * Where a call of a plan loses a race nothing was done by it, and the operation begins anew, at most so many times.
 */
#include <assert.h>

#include "collection/coded.h"
#include "collection/set/view.h"
#include "util/hash.h"
#include "util/random.h"

/* --- a collection of which a part is gone --- */

static void cleared(struct coded *c)
{
	c->lane->lanes->stats.incomplete_sets++;
	if (c->kind == OP_READ || c->kind == OP_POP || c->kind == OP_COMPACT)
		coded_end(c, OUTCOME_MISSING);
	else if (!coded_again(c))
		return;
	else if (c->kind == OP_REPLACE)
		coded_replace(c);
	else
		coded_change(c);
}

static void not_cleared(struct coded *c)
{
	coded_end(c, OUTCOME_BUSY);
}

static void clear(struct coded *c)
{
	plan_free(&c->plan);
	if (c->encoding->clear)
		c->encoding->clear(&c->s, &c->plan);
	coded_run(c, cleared, not_cleared);
}

/* Ends or clears where there is nothing to work with; true when it did. */
static bool ended(struct coded *c, enum coded_status status)
{
	if (status == CODED_OK)
		return false;
	if (status == CODED_LOST)
		clear(c);
	else
		coded_end(c, status == CODED_MISSING ? OUTCOME_MISSING : OUTCOME_CORRUPT);
	return true;
}

/* --- change --- */

static void change_read(struct coded *c);

static void change_all(struct coded *c)
{
	coded_read(c, &c->s, FOR_ALL, change_read);
}

static void change_lost(struct coded *c);

static void compacted_to_change(struct coded *c)
{
	if (coded_again(c))
		change_all(c);
}

/* No room: what is there may shrink. */
static void make_room(struct coded *c)
{
	fold_reset(&c->all);
	if (c->encoding->fold(&c->s, &c->all) == CODED_OK)
		c->encoding->compact(&c->s, &c->all, &c->plan);
	if (c->plan.count == 0) {
		coded_end(c, OUTCOME_TOO_LARGE);
		return;
	}
	coded_run(c, compacted_to_change, change_lost);
}

static void change_lost(struct coded *c)
{
	bool full = c->full && c->s.purpose == FOR_ALL && c->s.attempt > 2;

	c->s.attempt++;
	if (!coded_again(c))
		return;
	if (full)
		coded_read(c, &c->s, FOR_REWRITE, make_room);
	else
		change_all(c);
}

/* Looks by chance at whether there is something to compact. */
static void finish_change(struct coded *c)
{
	if (lane_by_chance(c->lane, c->change.all_bytes))
		lane_tend(c->lane);
	coded_end(c, OUTCOME_DONE);
}

static void change_checked(struct coded *c)
{
	if (c->encoding->check(&c->s, &c->now)) {
		finish_change(c);
		return;
	}
	c->s.attempt++;
	if (coded_again(c))
		change_all(c);
}

static void change_run(struct coded *c)
{
	if (c->plan.check)
		coded_read(c, &c->now, FOR_CHECK, change_checked);
	else if (!c->plan.again)
		finish_change(c);
	else if (coded_again(c))
		change_all(c);
}

/* The last word of the batch on each member. */
static void gather(struct coded *c)
{
	struct op *op;

	fold_reset(&c->change);
	STAILQ_FOREACH(op, &c->lane->batch, link) {
		bool good = fold_log(&c->change, op->log);
		assert(good);
		(void)good;
	}
}

static void change_read(struct coded *c)
{
	enum coded_status status = c->encoding->change(&c->s, lane_first(c->lane)->create, &c->plan);

	if (status == CODED_MISSING) {
		if (!lane_end_missing(c->lane)) {
			coded_end(c, OUTCOME_MISSING);
			return;
		}
		gather(c);
		status = c->encoding->change(&c->s, true, &c->plan);
	}
	if (status == CODED_NEEDS_ALL)
		change_all(c);
	else if (!ended(c, status))
		coded_run(c, change_run, change_lost);
}

void coded_change(struct coded *c)
{
	lane_count_appends(c->lane);
	gather(c);
	coded_read(c, &c->s, FOR_WRITE, change_read);
}

/* --- view --- */

/* One number for all cas ids, in whatever order the items were read: that of the item where there is but one. */
static uint64_t cas_of(const struct snapshot *s)
{
	uint64_t sum = 0, only = 0;
	size_t there = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct piece *piece = s->pieces[i];
		if (!piece->there)
			continue;
		only = piece->cas;
		sum += hash_mix(hash_slice(piece->waiter.key, 0) | 1, piece->cas | 1ull << 63);
		there++;
	}
	return there == 1 ? only : sum;
}

static size_t bytes_of(const struct snapshot *s)
{
	size_t bytes = 0;

	for (size_t i = 0; i < s->count; i++)
		bytes += piece_value(s->pieces[i]).n;
	return bytes;
}

static enum coded_status fold_all(struct coded *c)
{
	fold_reset(&c->all);
	return c->encoding->fold(&c->s, &c->all);
}

static double waste_of(const struct coded *c)
{
	size_t bytes = bytes_of(&c->s), needed = c->all.live_bytes + c->all.live;

	return bytes > needed ? 1.0 - (double)needed / (double)bytes : 0.0;
}

static void answer(const struct coded *c, struct set_request *request)
{
	set_answer_fold(&c->all, request);
	request->info.base_bytes = bytes_of(&c->s);
	request->info.waste = waste_of(c);
}

const struct piece *coded_main_piece(const struct coded *c)
{
	if (c->encoding->main_piece)
		return c->encoding->main_piece(&c->s);
	for (size_t i = 0; i < c->s.count; i++) {
		if (slice_equal(c->s.pieces[i]->waiter.key, c->s.key))
			return c->s.pieces[i];
	}
	return NULL;
}

static struct result result_of(const struct piece *piece)
{
	assert(piece);
	return (struct result){
		.status = RESULT_HIT, .ttl = piece->ttl, .server = piece->server, .flags = piece->flags
	};
}

static void viewed(struct coded *c)
{
	enum { LEAST = 512 };
	struct lane *lane = c->lane;
	struct result main;
	struct op *op;

	if (ended(c, fold_all(c)))
		return;
	main = result_of(coded_main_piece(c));
	main.cas = cas_of(&c->s);
	if (bytes_of(&c->s) >= LEAST && waste_of(c) > c->s.rule->compact_waste && main.ttl != TTL_UNKNOWN)
		lane_tend(lane);
	STAILQ_FOREACH(op, &lane->batch, link)
		answer(c, op->set);
	lane_end_all(lane, &(struct outcome){ .status = OUTCOME_DONE, .result = &main });
	coded_end(c, OUTCOME_DONE);
}

void coded_view(struct coded *c)
{
	lane_count_reads(c->lane);
	coded_read(c, &c->s, FOR_ALL, viewed);
}

/* --- replace --- */

static void replace_read(struct coded *c);

static void replace_again(struct coded *c)
{
	c->s.attempt++;
	if (coded_again(c))
		coded_read(c, &c->s, FOR_REWRITE, replace_read);
}

static void replace_checked(struct coded *c)
{
	if (c->encoding->check(&c->s, &c->now))
		coded_end(c, OUTCOME_DONE);
	else
		replace_again(c);
}

static void replace_run(struct coded *c)
{
	if (c->plan.again)
		replace_again(c);
	else if (c->plan.check)
		coded_read(c, &c->now, FOR_CHECK, replace_checked);
	else
		coded_end(c, OUTCOME_DONE);
}

/* Whether the condition of the operation holds; else it has ended. */
static bool may_replace(struct coded *c, enum coded_status status)
{
	bool there = status == CODED_OK;
	enum replace_mode mode = lane_first(c->lane)->mode;

	if (mode == REPLACE_MISSING && there)
		coded_end(c, OUTCOME_PRESENT);
	else if (mode >= REPLACE_PRESENT && !there)
		coded_end(c, OUTCOME_MISSING);
	else if (mode == REPLACE_SAME && lane_first(c->lane)->cas != cas_of(&c->s))
		coded_end(c, OUTCOME_CHANGED);
	else
		return true;
	return false;
}

static void replace_read(struct coded *c)
{
	enum coded_status status = fold_all(c);

	if ((status != CODED_MISSING && ended(c, status)) || !may_replace(c, status))
		return;
	status = CODED_OK;
	if (lane_first(c->lane)->push)
		coded_write_list(c, lane_first(c->lane)->log, &c->plan);
	else
		status = c->encoding->replace(&c->s, &c->change, &c->plan);
	if (!ended(c, status))
		coded_run(c, replace_run, replace_again);
}

void coded_replace(struct coded *c)
{
	gather(c);
	coded_read(c, &c->s, FOR_REWRITE, replace_read);
}

/* --- take --- */

static void take_read(struct coded *c);

static void take_again(struct coded *c)
{
	c->s.attempt++;
	if (coded_again(c))
		coded_read(c, &c->s, FOR_REWRITE, take_read);
}

static void take_run(struct coded *c)
{
	if (c->plan.again)
		take_again(c);
	else
		coded_end(c, OUTCOME_DONE);
}

static void take_read(struct coded *c)
{
	struct set_request sample = { .verb = SET_SAMPLE, .count = lane_first(c->lane)->delta, .sign = "-" };
	bool good;

	if (ended(c, fold_all(c)))
		return;
	sample.random = random_next(&lane_host(c->lane)->random);
	set_answer_fold(&c->all, &sample);
	buf_free(&c->text);
	c->text = sample.text;
	if (buf_size(&c->text) == 0) {
		coded_end(c, OUTCOME_DONE);
		return;
	}
	fold_reset(&c->change);
	good = fold_log(&c->change, buf_slice(&c->text));
	assert(good);
	(void)good;
	c->encoding->take(&c->s, &c->all, &c->change, &c->plan);
	coded_run(c, take_run, take_again);
}

void coded_take(struct coded *c)
{
	coded_read(c, &c->s, FOR_REWRITE, take_read);
}

/* --- compact --- */

static void compact_read(struct coded *c);

static void compact_next(struct coded *c)
{
	c->lane->lanes->stats.compactions++;
	if (!c->plan.again)
		coded_end(c, OUTCOME_DONE);
	else if (coded_again(c))
		coded_read(c, &c->s, FOR_REWRITE, compact_read);
}

static void compact_lost(struct coded *c)
{
	c->s.attempt++;
	if (coded_again(c))
		coded_read(c, &c->s, FOR_REWRITE, compact_read);
}

static void compact_read(struct coded *c)
{
	if (ended(c, fold_all(c)))
		return;
	for (size_t i = 0; i < c->s.count; i++) {
		if (c->s.pieces[i]->there && c->s.pieces[i]->ttl == TTL_UNKNOWN) {
			coded_end(c, OUTCOME_DONE);
			return;
		}
	}
	c->encoding->compact(&c->s, &c->all, &c->plan);
	if (c->plan.count == 0)
		coded_end(c, OUTCOME_DONE);
	else
		coded_run(c, compact_next, compact_lost);
}

void coded_compact(struct coded *c)
{
	c->lane->tending = false;
	coded_read(c, &c->s, FOR_REWRITE, compact_read);
}
