/*
 * The operations on sets in adopted encodings:
 *
 *     change   read the items that it needs -> plan -> run -> check -> done
 *     answer   read all -> fold -> answer
 *     replace  read all -> plan -> run -> check -> done
 *     take     read all -> fold -> choose -> plan -> run -> done
 *     compact  read all -> fold -> plan -> run -> and so on, until the plan is empty
 *
 * A call that loses a race changes nothing, and the operation retries from the read, a bounded number of times. If an item of
 * the collection is missing, what is left is cleared first.
 */
#include <assert.h>

#include "collection/adopted/adopted.h"
#include "collection/lane/batch.h"
#include "collection/set/answer.h"
#include "util/hash.h"
#include "util/random.h"

static adopted_next cleared, not_cleared;
static adopted_next change_all, change_read, change_run, change_checked, finish_change, change_lost, make_room,
	room_made;
static adopted_next answer_all;
static adopted_next replace_read, replace_run, replace_checked, replace_again;
static adopted_next take_read, take_run, take_again;
static adopted_next compact_read, compact_run, compact_lost;

/* --- a collection with a missing item --- */

static void clear(struct adopted *c)
{
	plan_free(&c->plan);
	if (c->encoding->clear)
		c->encoding->clear(&c->s, &c->plan);
	adopted_run(c, cleared, not_cleared);
}

static void cleared(struct adopted *c)
{
	c->lane->lanes->stats.incomplete_sets++;
	if (c->kind == OP_READ || c->kind == OP_POP || c->kind == OP_COMPACT)
		adopted_end(c, OUTCOME_MISSING);
	else if (!adopted_retry(c))
		return;
	else if (c->kind == OP_REPLACE)
		adopted_replace(c);
	else
		adopted_change(c);
}

/* Another proxy may have cleared it. */
static void not_cleared(struct adopted *c)
{
	static adopted_next *const kinds[] = {
		[OP_APPEND] = change_all,
		[OP_READ] = adopted_answer,
		[OP_REPLACE] = adopted_replace,
		[OP_POP] = adopted_take,
		[OP_COMPACT] = adopted_compact,
	};

	c->s.attempt++;
	if (adopted_retry(c))
		kinds[c->kind](c);
}

/*
 * Ends the batch, or clears what is left, if there is no collection to work with; true when it did. Items that were all appended
 * to need not have been so at one moment. If they make no sense together, they are read once more, as for a rewrite.
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

/* --- change --- */

/* Folds the changes of the batch. */
static void gather(struct adopted *c)
{
	struct op *op;

	fold_reset(&c->change);
	STAILQ_FOREACH(op, &c->lane->batch, link) {
		bool good = fold_log(&c->change, op->log);
		assert(good);
		(void)good;
	}
}

void adopted_change(struct adopted *c)
{
	lane_count_appends(c->lane);
	gather(c);
	adopted_read(c, &c->s, FOR_WRITE, change_read);
}

static void change_all(struct adopted *c)
{
	adopted_read(c, &c->s, FOR_ALL, change_read);
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
		change_all(c);
	else if (!ended(c, status))
		adopted_run(c, change_run, change_lost);
}

static void change_run(struct adopted *c)
{
	if (c->plan.check)
		adopted_read(c, &c->now, FOR_CHECK, change_checked);
	else if (!c->plan.again)
		finish_change(c);
	else if (adopted_retry(c))
		change_all(c);
}

static void change_checked(struct adopted *c)
{
	if (c->encoding->check(&c->s, &c->now)) {
		finish_change(c);
		return;
	}
	c->s.attempt++;
	if (adopted_retry(c))
		change_all(c);
}

/* At random, requests a compaction. */
static void finish_change(struct adopted *c)
{
	if (lane_by_chance(c->lane, c->change.all_bytes))
		lane_request_compaction(c->lane);
	adopted_end(c, OUTCOME_DONE);
}

static void change_lost(struct adopted *c)
{
	bool full = c->full && c->s.purpose == FOR_ALL && c->s.attempt > 2;

	c->s.attempt++;
	if (!adopted_retry(c))
		return;
	if (full)
		adopted_read(c, &c->s, FOR_REWRITE, make_room);
	else
		change_all(c);
}

/* The item is full: compacts it. */
static void make_room(struct adopted *c)
{
	fold_reset(&c->all);
	if (c->encoding->fold(&c->s, &c->all) == ADOPTED_OK)
		c->encoding->compact(&c->s, &c->all, &c->plan);
	if (c->plan.count == 0) {
		adopted_end(c, OUTCOME_TOO_LARGE);
		return;
	}
	adopted_run(c, room_made, change_lost);
}

static void room_made(struct adopted *c)
{
	if (adopted_retry(c))
		change_all(c);
}

/* --- answer --- */

const struct snapshot_item *adopted_main_item(const struct adopted *c)
{
	if (c->encoding->main_item)
		return c->encoding->main_item(&c->s);
	for (size_t i = 0; i < c->s.count; i++) {
		if (slice_equal(c->s.items[i]->waiter.key, c->s.key))
			return c->s.items[i];
	}
	return NULL;
}

/* One token for the CAS tokens of all items, in any order. If there is one item, that is its token. */
static uint64_t cas_of(const struct snapshot *s)
{
	uint64_t sum = 0, only = 0;
	size_t there = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct snapshot_item *item = s->items[i];
		if (!item->there)
			continue;
		only = item->cas;
		sum += hash_mix(hash_key(item->waiter.key, 0) | 1, item->cas | 1ull << 63);
		there++;
	}
	return there == 1 ? only : sum;
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

static void answer(const struct adopted *c, struct set_request *request)
{
	set_answer_fold(&c->all, request);
	request->info.base_bytes = bytes_of(&c->s);
	request->info.waste = waste_of(c);
}

static struct result result_of(const struct snapshot_item *item)
{
	assert(item);
	return (struct result){ .status = RESULT_HIT, .ttl = item->ttl, .server = item->server, .flags = item->flags };
}

/* Whether the servers tell times to live and give tokens. */
static bool may_compact(const struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i]->there && (s->items[i]->ttl == TTL_UNKNOWN || s->items[i]->cas == 0))
			return false;
	}
	return true;
}

void adopted_answer(struct adopted *c)
{
	lane_count_reads(c->lane);
	adopted_read(c, &c->s, FOR_ALL, answer_all);
}

static void answer_all(struct adopted *c)
{
	enum { LEAST = 512 };
	struct lane *lane = c->lane;
	struct result main;
	struct op *op;

	if (ended(c, fold_all(c)))
		return;
	main = result_of(adopted_main_item(c));
	main.cas = cas_of(&c->s);
	if (bytes_of(&c->s) >= LEAST && waste_of(c) > c->s.rule->compact_waste && may_compact(&c->s))
		lane_request_compaction(lane);
	STAILQ_FOREACH(op, &lane->batch, link)
		answer(c, op->set);
	lane_end_all(lane, &(struct outcome){ .status = OUTCOME_DONE, .result = &main });
	adopted_end(c, OUTCOME_DONE);
}

/* --- replace --- */

void adopted_replace(struct adopted *c)
{
	gather(c);
	adopted_read(c, &c->s, FOR_REWRITE, replace_read);
}

/* Whether the condition of the operation holds; if not, ends the batch. */
static bool may_replace(struct adopted *c, enum adopted_status status)
{
	bool there = status == ADOPTED_OK;
	enum replace_mode mode = lane_first(c->lane)->mode;

	if (mode == REPLACE_MISSING && there)
		adopted_end(c, OUTCOME_PRESENT);
	else if (mode >= REPLACE_PRESENT && !there)
		adopted_end(c, OUTCOME_MISSING);
	else if (mode == REPLACE_SAME && lane_first(c->lane)->cas != cas_of(&c->s))
		adopted_end(c, OUTCOME_CHANGED);
	else
		return true;
	return false;
}

static void replace_read(struct adopted *c)
{
	enum adopted_status status = fold_all(c);

	if ((status != ADOPTED_MISSING && ended(c, status)) || !may_replace(c, status))
		return;
	status = ADOPTED_OK;
	if (lane_first(c->lane)->push)
		adopted_write_list(c, lane_first(c->lane)->log, &c->plan);
	else
		status = c->encoding->replace(&c->s, &c->change, &c->plan);
	if (!ended(c, status))
		adopted_run(c, replace_run, replace_again);
}

static void replace_run(struct adopted *c)
{
	if (c->plan.again)
		replace_again(c);
	else if (c->plan.check)
		adopted_read(c, &c->now, FOR_CHECK, replace_checked);
	else
		adopted_end(c, OUTCOME_DONE);
}

static void replace_checked(struct adopted *c)
{
	if (c->encoding->check(&c->s, &c->now))
		adopted_end(c, OUTCOME_DONE);
	else
		replace_again(c);
}

static void replace_again(struct adopted *c)
{
	c->s.attempt++;
	if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_REWRITE, replace_read);
}

/* --- take --- */

void adopted_take(struct adopted *c)
{
	adopted_read(c, &c->s, FOR_REWRITE, take_read);
}

static void take_read(struct adopted *c)
{
	struct set_request sample = { .verb = SET_SAMPLE, .count = lane_first(c->lane)->count, .sign = "-" };
	bool good;

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
	good = fold_log(&c->change, buf_slice(&c->text));
	assert(good);
	(void)good;
	c->encoding->take(&c->s, &c->all, &c->change, &c->plan);
	adopted_run(c, take_run, take_again);
}

static void take_run(struct adopted *c)
{
	if (c->plan.again)
		take_again(c);
	else
		adopted_end(c, OUTCOME_DONE);
}

static void take_again(struct adopted *c)
{
	c->s.attempt++;
	if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_REWRITE, take_read);
}

/* --- compact --- */

void adopted_compact(struct adopted *c)
{
	c->lane->compaction_requested = false;
	c->s.forced = lane_first(c->lane)->all;
	adopted_read(c, &c->s, FOR_REWRITE, compact_read);
}

static void compact_read(struct adopted *c)
{
	if (ended(c, fold_all(c)))
		return;
	if (!may_compact(&c->s)) {
		adopted_end(c, OUTCOME_DONE);
		return;
	}
	c->encoding->compact(&c->s, &c->all, &c->plan);
	if (c->plan.count == 0)
		adopted_end(c, OUTCOME_DONE);
	else
		adopted_run(c, compact_run, compact_lost);
}

static void compact_run(struct adopted *c)
{
	c->lane->lanes->stats.compactions++;
	if (!c->plan.again)
		adopted_end(c, OUTCOME_DONE);
	else if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_REWRITE, compact_read);
}

static void compact_lost(struct adopted *c)
{
	c->s.attempt++;
	if (adopted_retry(c))
		adopted_read(c, &c->s, FOR_REWRITE, compact_read);
}
