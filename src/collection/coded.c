#include "collection/coded.h"

#include <stdlib.h>

#include "collection/segments.h"
#include "util/alloc.h"
#include "util/random.h"

static struct host *host_of(const struct coded *c)
{
	return lane_host(c->lane);
}

static void release(struct coded *c)
{
	c->lane->work = NULL;
	snapshot_free(&c->s);
	snapshot_free(&c->now);
	plan_free(&c->plan);
	fold_free(&c->change);
	fold_free(&c->all);
	buf_free(&c->text);
	buf_free(&c->failure_line);
	free(c);
}

void coded_end(struct coded *c, enum outcome_status status)
{
	struct lane *lane = c->lane;
	struct outcome outcome = { .status = status, .result = &c->failure, .log = buf_slice(&c->text) };

	if (status == OUTCOME_CORRUPT)
		lane->lanes->stats.corrupt_values++;
	lane_end_all(lane, &outcome);
	release(c);
	lane_next(lane);
}

bool coded_again(struct coded *c)
{
	enum { ROUNDS_MAX = 64 };

	plan_free(&c->plan);
	if (++c->rounds <= ROUNDS_MAX && c->s.attempt <= LANE_ATTEMPTS)
		return true;
	coded_end(c, c->full ? OUTCOME_TOO_LARGE : OUTCOME_BUSY);
	return false;
}

/* --- reading --- */

enum { LOOKS_MAX = 32 };

static void read_more(struct coded *c);

/* Whether a piece is what it was with something appended. Where it was next to nothing that cannot be told. */
static bool has_grown(const struct piece *piece, const struct result *r)
{
	enum { NOTHING = 4 };

	return piece->there && buf_size(&piece->value) > NOTHING && r->status == RESULT_HIT &&
		slice_starts(r->value, piece_value(piece));
}

static void keep(struct piece *piece, const struct result *r)
{
	piece->grown = has_grown(piece, r);
	piece->changed = !piece->grown;
	piece->there = r->status == RESULT_HIT;
	piece->read = true;
	buf_consume(&piece->value, buf_size(&piece->value));
	piece->server = r->server;
	if (!piece->there)
		return;
	buf_add_slice(&piece->value, r->value);
	piece->flags = r->flags;
	piece->cas = r->cas;
	piece->connection = r->connection;
	piece->ttl = r->ttl;
}

/* Counts an answer; true when it is the last, and none has failed. */
static bool all_answered(struct coded *c, const struct result *r)
{
	if (result_failed(r))
		segments_keep_failure(r, &c->failed, &c->failure, &c->failure_line);
	if (--c->pending > 0)
		return false;
	if (!c->failed)
		return true;
	coded_end(c, OUTCOME_FAILED);
	return false;
}

static void ask(struct coded *c, struct piece *piece, unsigned want,
	void (*done)(struct waiter *waiter, const struct result *r))
{
	struct host *host = host_of(c);

	piece->asked = true;
	piece->owner = c;
	piece->waiter.done = done;
	host->call(host,
		&(struct call){ .verb = CALL_GET, .want = want, .server = CALL_ANY_SERVER, .key = piece->waiter.key },
		&piece->waiter);
}

static void looked_at(struct waiter *waiter, const struct result *r);
static void reread(struct waiter *waiter, const struct result *r);

enum which { ALL, CHANGED, NOT_GROWN };

static bool is_which(const struct piece *piece, enum which which)
{
	return piece->read && (which == ALL || (which == CHANGED ? piece->changed : !piece->grown));
}

/* Calls on some pieces of a snapshot that were read; false when there are none. */
static bool ask_again(
	struct coded *c, enum which which, unsigned want, void (*done)(struct waiter *waiter, const struct result *r))
{
	const struct snapshot *s = c->taking;

	for (size_t i = 0; i < s->count; i++)
		c->pending += is_which(s->pieces[i], which);
	if (c->pending == 0)
		return false;
	for (size_t i = 0, n = s->count; i < n; i++) {
		if (is_which(s->pieces[i], which))
			ask(c, s->pieces[i], want, done);
	}
	return true;
}

/* All is read. Where that took several items they are looked at again. */
static void look_again(struct coded *c)
{
	const struct snapshot *s = c->taking;
	size_t read = 0;

	for (size_t i = 0; i < s->count; i++)
		read += s->pieces[i]->read;
	if (read < 2 || s->purpose == FOR_CHECK)
		c->next(c);
	else if (++c->looks > LOOKS_MAX)
		coded_end(c, OUTCOME_BUSY);
	else
		ask_again(c, ALL, WANT_CAS, looked_at);
}

static void start_over(struct coded *c)
{
	snapshot_free(c->taking);
	read_more(c);
}

static bool any_changed(const struct snapshot *s, bool pivots)
{
	bool changed = false;

	for (size_t i = 0; i < s->count; i++)
		changed |= s->pieces[i]->changed && (!pivots || s->pieces[i]->pivot);
	return changed;
}

static void compare(struct piece *piece, const struct result *r)
{
	bool hit = r->status == RESULT_HIT;

	piece->grown = false;
	piece->changed = hit != piece->there || (hit && (r->cas != piece->cas || r->connection != piece->connection));
}

static void looked_at(struct waiter *waiter, const struct result *r)
{
	struct piece *piece = (struct piece *)waiter;
	struct coded *c = piece->owner;

	compare(piece, r);
	if (!all_answered(c, r))
		return;
	if (any_changed(c->taking, true))
		start_over(c);
	else if (any_changed(c->taking, false))
		ask_again(c, CHANGED, WANT_VALUE | WANT_CAS | WANT_TTL, reread);
	else
		c->next(c);
}

/* What was appended counts if all else was still the same then. */
static void others_looked_at(struct waiter *waiter, const struct result *r)
{
	struct piece *piece = (struct piece *)waiter;
	struct coded *c = piece->owner;

	compare(piece, r);
	if (!all_answered(c, r))
		return;
	if (any_changed(c->taking, false))
		start_over(c);
	else
		c->next(c);
}

static void reread(struct waiter *waiter, const struct result *r)
{
	struct piece *piece = (struct piece *)waiter;
	struct coded *c = piece->owner;

	if (!result_failed(r))
		keep(piece, r);
	if (!all_answered(c, r))
		return;
	if (c->taking->purpose == FOR_REWRITE) {
		look_again(c);
	} else if (any_changed(c->taking, false)) {
		start_over(c);
	} else if (!ask_again(c, NOT_GROWN, WANT_CAS, others_looked_at)) {
		c->next(c);
	}
}

static void piece_read(struct waiter *waiter, const struct result *r)
{
	struct piece *piece = (struct piece *)waiter;
	struct coded *c = piece->owner;

	if (!result_failed(r))
		keep(piece, r);
	if (all_answered(c, r))
		read_more(c);
}

/* In stages, since what one item holds may name others. */
static void read_more(struct coded *c)
{
	struct snapshot *s = c->taking;

	c->encoding->name_pieces(s);
	for (size_t i = 0; i < s->count; i++)
		c->pending += !s->pieces[i]->asked;
	if (c->pending == 0) {
		look_again(c);
		return;
	}
	for (size_t i = 0, n = s->count; i < n; i++) {
		if (!s->pieces[i]->asked)
			ask(c, s->pieces[i], WANT_VALUE | WANT_CAS | WANT_TTL, piece_read);
	}
}

static void rested(struct waiter *waiter, const struct result *r)
{
	(void)r;
	read_more((struct coded *)((char *)waiter - offsetof(struct coded, rest)));
}

/* Who lost a race more than once lets others pass, some longer than others: up to twice as long each time. */
static void rest(struct coded *c)
{
	enum { DOUBLED_MAX = 5 };
	struct host *host = host_of(c);
	unsigned doubled = c->s.attempt < DOUBLED_MAX ? c->s.attempt : DOUBLED_MAX;

	c->rest.done = rested;
	host->later(host, &c->rest, (unsigned)(random_next(&host->random) % (1u << doubled)));
}

void coded_read(struct coded *c, struct snapshot *s, enum purpose purpose, coded_next *next)
{
	snapshot_free(s);
	s->purpose = purpose;
	s->change = &c->change;
	c->taking = s;
	c->looks = 0;
	c->next = next;
	if (s == &c->s && s->attempt > 1 && host_of(c)->later)
		rest(c);
	else
		read_more(c);
}

/* --- carrying out a plan --- */

static void send_step(struct coded *c);

static void next_step(struct coded *c)
{
	c->step++;
	send_step(c);
}

static void touched(struct waiter *waiter, const struct result *r)
{
	(void)r;
	next_step((struct coded *)((char *)waiter - offsetof(struct coded, waiter)));
}

static void ask_item(struct coded *c, struct call call, void (*done)(struct waiter *, const struct result *))
{
	struct host *host = host_of(c);

	call.server = CALL_ANY_SERVER;
	call.key = c->waiter.key;
	c->waiter.done = done;
	host->call(host, &call, &c->waiter);
}

static void date_checked(struct waiter *waiter, const struct result *r)
{
	struct coded *c = (struct coded *)((char *)waiter - offsetof(struct coded, waiter));

	if (lane_date_is_off(c->plan.steps[c->step].like->ttl, r, &c->exptime))
		ask_item(c, (struct call){ .verb = CALL_TOUCH, .exptime = c->exptime }, touched);
	else
		next_step(c);
}

/* See commit_mend_ttl. */
static void mend_ttl(struct coded *c)
{
	int64_t exptime;

	if (lane_touch_is_due(host_of(c), c->plan.steps[c->step].like->ttl, &c->looked, &exptime))
		ask_item(c, (struct call){ .verb = CALL_TOUCH, .exptime = exptime }, touched);
	else if (lane_is_date(c->exptime))
		ask_item(c, (struct call){ .verb = CALL_GET, .want = WANT_TTL }, date_checked);
	else
		next_step(c);
}

static void looked(struct waiter *waiter, const struct result *r)
{
	struct coded *c = (struct coded *)((char *)waiter - offsetof(struct coded, look));

	c->looked = *r;
}

/* Whether it matters that a step did not find what the plan was made for. */
static bool must_be_done(const struct coded *c, const struct plan_step *step)
{
	return step->verb != CALL_DELETE && step->verb != CALL_TOUCH && c->kind != OP_SWEEP;
}

static void step_done(struct waiter *waiter, const struct result *r)
{
	struct coded *c = (struct coded *)((char *)waiter - offsetof(struct coded, waiter));
	const struct plan_step *step = &c->plan.steps[c->step];

	if (result_failed(r)) {
		segments_keep_failure(r, &c->failed, &c->failure, &c->failure_line);
		coded_end(c, OUTCOME_FAILED);
	} else if (r->status != RESULT_DONE && must_be_done(c, step)) {
		c->full = r->status == RESULT_NOT_STORED && step->verb != CALL_ADD && step->piece->there;
		c->lane->lanes->stats.conflicts += step->verb == CALL_CAS;
		c->lost(c);
	} else if (step->like) {
		mend_ttl(c);
	} else {
		next_step(c);
	}
}

/* What a step gives to what it stores; false when the time to live that must be kept is not known. */
static bool life_of(const struct coded *c, const struct plan_step *step, struct call *call)
{
	const struct op *op = lane_first(c->lane);

	if (step->expire) {
		call->exptime = -1;
	} else if (step->like) {
		call->flags = step->like->flags;
		return lane_exptime(host_of(c), step->like->ttl, &call->exptime);
	} else {
		call->exptime = op ? op->ttl : 0;
		call->flags = op ? op->flags : 0;
	}
	return true;
}

static void send_step(struct coded *c)
{
	struct host *host = host_of(c);
	const struct plan_step *step = &c->plan.steps[c->step];
	struct call call = { .server = CALL_ANY_SERVER };

	if (c->step == c->plan.count) {
		c->next(c);
		return;
	}
	c->waiter = (struct waiter){ step_done, step->piece->waiter.key };
	call.verb = step->verb;
	call.key = c->waiter.key;
	call.value = buf_slice(&step->value);
	call.number = step->piece->cas;
	call.connection = step->piece->connection;
	if (!life_of(c, step, &call)) {
		coded_end(c, c->kind == OP_COMPACT ? OUTCOME_DONE : OUTCOME_BUSY);
		return;
	}
	c->looked.status = RESULT_MISS;
	if (step->verb == CALL_CAS && step->like == step->piece) {
		c->look = (struct waiter){ looked, c->waiter.key };
		host->call(host,
			&(struct call){
				.verb = CALL_GET, .want = WANT_TTL, .server = CALL_ANY_SERVER, .key = call.key },
			&c->look);
	}
	c->exptime = call.exptime;
	host->call(host, &call, &c->waiter);
}

void coded_run(struct coded *c, coded_next *next, coded_next *lost)
{
	c->step = 0;
	c->next = next;
	c->lost = lost;
	send_step(c);
}

void coded_start(struct lane *lane, const struct encoding *encoding, enum op_kind kind)
{
	static coded_next *const kinds[] = {
		[OP_APPEND] = coded_change,
		[OP_READ] = coded_view,
		[OP_REPLACE] = coded_replace,
		[OP_POP] = coded_take,
		[OP_COMPACT] = coded_compact,
		[OP_LIST] = coded_list,
		[OP_SWEEP] = coded_sweep,
	};
	struct coded *c = xcalloc(1, sizeof(*c));
	const struct host *host = lane_host(lane);

	c->lane = lane;
	c->encoding = encoding;
	c->kind = kind;
	c->change.seed = c->all.seed = host->seed;
	c->s = c->now = (struct snapshot){
		.rule = rules_collection(host->rules, lane->waiter.key),
		.options = host->options,
		.key = lane->waiter.key,
		.seed = host->seed,
	};
	lane->work = c;
	if (kind == OP_APPEND && lane_first(lane)->push)
		coded_push(c);
	else
		kinds[kind](c);
}
