/*
 * Takes snapshots and carries out plans:
 *
 *     adopted_read -> machine_read_more, until the encoding names no more items
 *         -> one item: next
 *         -> several:  read the CAS tokens of all
 *     machine_on_looked_at -> none has changed: next
 *               -> a pivot has:      start over
 *               -> other items have: reread these
 *                     -> FOR_REWRITE:          read all tokens again
 *                     -> not just appended to: start over
 *                     -> else: read the tokens of the others -> none has changed: next
 *                                                            -> else: start over
 *     adopted_run -> machine_send_step: write the value, call -> step_done, for each step -> next
 *                                                     -> a step lost a race: lost
 */
#include "collection/adopted/machine.h"

#include <stdlib.h>

#include "collection/adopted/encodings/encodings.h"
#include "collection/ttl.h"
#include "util/alloc.h"
#include "util/random.h"

struct adopted *adopted_create(struct lane *lane, enum op_kind kind)
{
	struct adopted *c = xcalloc(1, sizeof(*c));
	struct env *env = lane_env(lane);

	c->lane = lane;
	c->encoding = encoding_get(lane->rule->encoding);
	c->kind = kind;
	c->change.seed = env->seed;
	c->s = c->now = (struct snapshot){
		.encoding = c->encoding,
		.env = env,
		.rule = lane->rule,
		.options = env->options,
		.key = lane->waiter.key,
		.seed = env->seed,
	};
	lane->work = c;
	adopted_count(c);
	return c;
}

void adopted_count(const struct adopted *c)
{
	lane_keep(c->lane, sizeof(*c) + snapshot_memory(&c->s) + snapshot_memory(&c->now));
}

static void release(struct adopted *c)
{
	c->lane->work = NULL;
	if (c->lends)
		set_view_give_back(&c->view);
	snapshot_free(&c->s);
	snapshot_free(&c->now);
	plan_free(&c->plan);
	fold_free(&c->change);
	set_request_free(&c->sample);
	elements_free(&c->elements);
	segmented_list_free(&c->list);
	buf_free(&c->text);
	failure_free(&c->failure);
	free(c);
}

void adopted_end(struct adopted *c, enum outcome_status status)
{
	struct lane *lane = c->lane;
	struct outcome outcome = {
		.status = status, .result = &c->failure.result, .log = buf_slice(&c->text)
	};

	if (status == OUTCOME_CORRUPT)
		lane->lanes->stats.corrupt_values++;
	lane_keep(lane, 0);
	lane_end_all(lane, &outcome);
	release(c);
	lane_next(lane);
}

static void machine_resumed(struct lane *lane, const struct result *r)
{
	struct adopted *c = lane->work;

	(void)r;
	c->resume(c);
}

void adopted_pause(struct adopted *c, adopted_next *resume)
{
	c->resume = resume;
	adopted_count(c);
	lane_pause(c->lane, machine_resumed);
}

bool adopted_retry(struct adopted *c)
{
	enum { ROUNDS_MAX = 64 };
	unsigned attempts = c->kind == OP_COMPACT ? ROUNDS_MAX : LANE_ATTEMPTS;

	plan_free(&c->plan);
	/* A compaction has a step for a few items at a time, and there may be thousands. */
	if (++c->rounds <= ROUNDS_MAX + (c->kind == OP_COMPACT ? c->s.count : 0) &&
		c->s.attempt <= attempts)
		return true;
	adopted_end(c, c->full ? OUTCOME_TOO_LARGE : OUTCOME_BUSY);
	return false;
}

/* --- reading --- */

enum { LOOKS_MAX = 32 };
enum which { NAMED /* not read yet */, ALL, CHANGED, NOT_GROWN };
enum { WANT_ITEM = WANT_VALUE | WANT_CAS | WANT_TTL };

static adopted_next machine_read_more, look_again;

/*
 * Returns whether the item has been appended to. A very short value is no proof of that: a
 * different value may begin with it by chance.
 */
static bool has_grown(const struct snapshot_item *item, const struct result *r)
{
	enum { SHORT = 4 };

	return item->there && buf_size(&item->value) > SHORT && r->status == RESULT_HIT &&
		slice_starts(r->value, snapshot_item_value(item));
}

static void keep(struct snapshot_item *item, const struct result *r)
{
	item->grown = has_grown(item, r);
	item->changed = !item->grown;
	item->there = r->status == RESULT_HIT;
	item->read = true;
	buf_consume(&item->value, buf_size(&item->value));
	if (!item->there)
		return;
	buf_add_slice(&item->value, r->value);
	item->reply = result_bare(r);
}

static void compare(struct snapshot_item *item, const struct result *r)
{
	bool hit = r->status == RESULT_HIT;

	item->grown = false;
	item->changed = hit != item->there ||
		(hit && (r->cas != item->reply.cas || r->connection != item->reply.connection));
}

/* Handles a reply. After the last one calls the next function, unless a call has failed. */
static void machine_on_replied(struct waiter *waiter, const struct result *r)
{
	struct snapshot_item *item = (struct snapshot_item *)waiter;
	struct adopted *c = item->owner;

	if (result_failed(r))
		failure_keep(&c->failure, r);
	else if (c->want & WANT_VALUE)
		keep(item, r);
	else
		compare(item, r);
	if (--c->pending > 0)
		return;
	adopted_count(c);
	if (c->failure.happened)
		adopted_end(c, OUTCOME_FAILED);
	else
		c->replied(c);
}

static void ask(struct adopted *c, struct snapshot_item *item)
{
	item->asked = true;
	item->owner = c;
	item->waiter.done = machine_on_replied;
	env_get(lane_env(c->lane), c->want, &item->waiter);
}

static bool is_which(const struct snapshot_item *item, enum which which)
{
	if (which == NAMED)
		return !item->asked;
	return item->read && (which == ALL || (which == CHANGED ? item->changed : !item->grown));
}

/*
 * Reads these items of the snapshot, or with just WANT_CAS only their tokens, and calls `next`.
 * Returns false if there are none.
 */
static bool ask_for(struct adopted *c, enum which which, unsigned want, adopted_next *next)
{
	const struct snapshot *s = c->taking;

	c->want = want;
	c->replied = next;
	for (size_t i = 0; i < s->count; i++)
		c->pending += is_which(s->items[i], which);
	if (c->pending == 0)
		return false;
	for (size_t i = 0, n = s->count; i < n; i++) {
		if (is_which(s->items[i], which))
			ask(c, s->items[i]);
	}
	return true;
}

static bool any_changed(const struct snapshot *s, bool pivots)
{
	bool changed = false;

	for (size_t i = 0; i < s->count; i++)
		changed |= s->items[i]->changed && (!pivots || s->items[i]->pivot);
	return changed;
}

static void start_over(struct adopted *c)
{
	snapshot_free(c->taking);
	machine_read_more(c);
}

/* The appended bytes are valid if all other items were unchanged when these were read. */
static void machine_on_others_looked_at(struct adopted *c)
{
	if (any_changed(c->taking, false))
		start_over(c);
	else
		c->next(c);
}

static void machine_on_reread(struct adopted *c)
{
	if (c->taking->purpose == FOR_REWRITE) {
		look_again(c);
	} else if (any_changed(c->taking, false)) {
		start_over(c);
	} else if (!ask_for(c, NOT_GROWN, WANT_CAS, machine_on_others_looked_at)) {
		c->next(c);
	}
}

static void machine_on_looked_at(struct adopted *c)
{
	if (any_changed(c->taking, true))
		start_over(c);
	else if (any_changed(c->taking, false))
		ask_for(c, CHANGED, WANT_ITEM, machine_on_reread);
	else
		c->next(c);
}

/*
 * All items have been read. If there are several, they may not have had these values at the
 * same moment, so their tokens are checked.
 */
static void look_again(struct adopted *c)
{
	const struct snapshot *s = c->taking;
	size_t read = 0;

	for (size_t i = 0; i < s->count; i++)
		read += s->items[i]->read;
	if (read < 2 || s->purpose == FOR_CHECK)
		c->next(c);
	else if (++c->looks > LOOKS_MAX)
		adopted_end(c, OUTCOME_BUSY);
	else
		ask_for(c, ALL, WANT_CAS, machine_on_looked_at);
}

/* Reads the items that the encoding has added since: the content of an item may name others. */
static void machine_read_more(struct adopted *c)
{
	c->encoding->name_items(c->taking);
	if (!ask_for(c, NAMED, WANT_ITEM, machine_read_more))
		look_again(c);
}

static void machine_on_backed_off(struct waiter *waiter, const struct result *r)
{
	(void)r;
	machine_read_more((struct adopted *)((char *)waiter - offsetof(struct adopted, waiter)));
}

/*
 * After more than one lost race, pauses for a random time before the retry. The limit
 * doubles with each race.
 */
static void back_off(struct adopted *c)
{
	enum { DOUBLED_MAX = 5 };
	struct env *env = lane_env(c->lane);
	unsigned doubled = c->s.attempt < DOUBLED_MAX ? c->s.attempt : DOUBLED_MAX;

	c->waiter.done = machine_on_backed_off;
	env->later(env, &c->waiter, (unsigned)(random_next(&env->random) % (1u << doubled)));
}

void adopted_read(struct adopted *c, struct snapshot *s, enum purpose purpose, adopted_next *next)
{
	snapshot_free(s);
	s->purpose = purpose;
	s->change = &c->change;
	s->random = &lane_env(c->lane)->random;
	c->taking = s;
	c->looks = 0;
	c->next = next;
	if (s == &c->s && s->attempt > 1 && lane_env(c->lane)->later)
		back_off(c);
	else
		machine_read_more(c);
}

/* --- carrying out a plan --- */

static adopted_next machine_send_step;

/*
 * Sets the flags and exptime of a step. Returns false if it must preserve a time to
 * live that is unknown.
 */
static bool life_of(const struct adopted *c, const struct plan_step *step, struct call *call)
{
	const struct op *op = lane_first(c->lane);

	if (step->expire) {
		call->exptime = -1;
	} else if (step->like) {
		call->flags = step->like->reply.flags;
		return ttl_exptime(lane_env(c->lane), step->like->reply.ttl, &call->exptime);
	} else {
		call->exptime = op ? op->ttl : 0;
		call->flags = op && op->kind == OP_REPLACE ? op->flags : 0;
	}
	return true;
}

/* Returns whether the step must find the item as the plan expects it. */
static bool must_be_done(const struct adopted *c, const struct plan_step *step)
{
	if (c->kind == OP_TOUCH || c->kind == OP_DELETE)
		return c->plan.must;
	return step->verb != CALL_DELETE && !step->optional;
}

static void step_done(struct adopted *c, const struct result *r)
{
	const struct plan_step *step = &c->plan.steps[c->step];

	if (result_failed(r)) {
		failure_keep(&c->failure, r);
		adopted_end(c, OUTCOME_FAILED);
	} else if (r->status != RESULT_DONE && must_be_done(c, step)) {
		c->full = r->status == RESULT_NOT_STORED && step->verb != CALL_ADD &&
			step->item->there;
		c->lane->lanes->stats.conflicts += step->verb == CALL_CAS;
		c->lost(c);
	} else {
		c->step++;
		machine_send_step(c);
	}
}

static void machine_on_reply(struct waiter *waiter, const struct result *r)
{
	step_done((struct adopted *)((char *)waiter - offsetof(struct adopted, waiter)), r);
}

static void machine_on_stored(struct cas *cas, const struct result *r)
{
	step_done((struct adopted *)((char *)cas - offsetof(struct adopted, cas)), r);
}

static void machine_send_step(struct adopted *c)
{
	struct env *env = lane_env(c->lane);
	struct plan_step *step = &c->plan.steps[c->step];
	struct call call;

	if (c->step == c->plan.count) {
		c->next(c);
		return;
	}
	if (!plan_step_write(&c->s, step)) {
		adopted_pause(c, machine_send_step);
		return;
	}
	call = (struct call){
		.verb = step->verb,
		.server = CALL_ANY_SERVER,
		.key = step->item->waiter.key,
		.value = buf_slice(&step->value),
		.number = step->item->reply.cas,
		.connection = step->item->reply.connection,
	};
	if (step->verb == CALL_CAS && step->item->reply.cas == 0) {
		adopted_end(c, c->kind == OP_COMPACT ? OUTCOME_DONE : OUTCOME_NO_CAS);
	} else if (!life_of(c, step, &call)) {
		adopted_end(c, c->kind == OP_COMPACT ? OUTCOME_DONE : OUTCOME_BUSY);
	} else if (step->like && !step->expire) {
		lane_charge(c->lane, call.value.n);
		cas_send(&c->cas, env, call, step->like->waiter.key, step->like->reply.ttl,
			machine_on_stored);
	} else {
		c->waiter = (struct waiter){ machine_on_reply, call.key };
		env->call(env, &call, &c->waiter);
	}
}

void adopted_run(struct adopted *c, adopted_next *next, adopted_next *lost)
{
	c->step = 0;
	c->next = next;
	c->lost = lost;
	machine_send_step(c);
}
