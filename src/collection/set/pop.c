/*
 * A pop removes members from a set, and a claim adds one, so that no other client gets the same
 * members. Each is a read by fetch.c, then a CAS.
 *
 *     claim: read -> not a member: CAS of the base with the addition after its log, or ADD
 *                -> lost the race: read again
 *     pop:   read -> choose -> CAS of the base with the removals after its log
 *                -> lost the race: read again, choose others
 *
 * Both omit the read if the base was read ahead, see rewrite/ahead.h. If that does not lead to
 * a CAS, the base is read.
 */
#include "collection/set/fetch.h"

#include "collection/lane/batch.h"
#include "collection/machines.h"
#include "collection/rewrite/ahead.h"
#include "collection/set_request.h"
#include "collection/text/expiry.h"
#include "util/random.h"

/* --- popping --- */

struct pop {
	struct fetch fetch;
	struct set_request chosen; /* the answer: chosen members, as removals */
};

static void end_pop(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct pop *pop = lane->work;
	const struct outcome outcome = {
		.status = status, .result = failure, .log = buf_slice(&pop->chosen.text)
	};

	fetch_end(&pop->fetch, lane, &outcome);
	set_request_free(&pop->chosen);
	pool_put(lane_env(lane)->pool, pop, sizeof(*pop));
	lane_next(lane);
}

static lane_after pop_on_chosen;
static lane_step pop_on_popped;

static struct set_request choice(struct lane *lane)
{
	return (struct set_request){
		.verb = SET_SAMPLE,
		.count = lane_first(lane)->count,
		.sign = "-",
		.random = random_next(&lane_env(lane)->random),
	};
}

void pop_start(struct lane *lane)
{
	struct pop *pop = pool_get(lane_env(lane)->pool, sizeof(*pop));

	pop->chosen = choice(lane);
	fetch_begin(&pop->fetch, lane, &pop->chosen, true, pop_on_chosen);
}

/* Pops make the base of a list longer, which no read of its elements notices. */
static void request_compaction_of_list(struct lane *lane, const struct pop *pop)
{
	struct oplog_base base;

	if (oplog_split(fetch_base(&pop->fetch), &base) && base.is_list &&
		base.log.n + buf_size(&pop->chosen.text) > lane_env(lane)->options->base_size)
		lane_request_compaction(lane);
}

static void choose_others(struct pop *pop)
{
	set_request_free(&pop->chosen);
	pop->chosen = choice(pop->fetch.open.lane);
}

static void pop_on_chosen(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct pop *pop = lane->work;
	const struct opening *open = &pop->fetch.open;
	enum outcome_status may = keep_check(&open->read, open->date);

	if (open->ahead && (buf_size(&pop->chosen.text) == 0 || may != OUTCOME_DONE)) {
		choose_others(pop);
		opening_read(&pop->fetch.open);
	} else if (status != OUTCOME_DONE || buf_size(&pop->chosen.text) == 0) {
		end_pop(lane, status, failure);
	} else if (may != OUTCOME_DONE) {
		end_pop(lane, may, NULL);
	} else {
		request_compaction_of_list(lane, pop);
		keep_append(lane, &open->read, fetch_base(&pop->fetch), open->date,
			buf_slice(&pop->chosen.text), pop_on_popped);
		ahead_rewrites(lane);
	}
}

static void pop_on_popped(struct lane *lane, const struct result *r)
{
	struct pop *pop = lane->work;

	ahead_ended(lane, r->status, pop->fetch.open.ahead);
	if (r->status == RESULT_DONE) {
		end_pop(lane, OUTCOME_DONE, NULL);
	} else if (result_failed(r)) {
		end_pop(lane, OUTCOME_FAILED, r);
	} else {
		choose_others(pop);
		opening_lost(&pop->fetch.open);
	}
}

/* --- claiming --- */

struct claim {
	struct fetch fetch;
	struct set_request asked; /* tests whether it is a member */
};

static void end_claim(struct lane *lane, enum outcome_status status, uint64_t number,
	const struct result *failure)
{
	struct claim *claim = lane->work;

	fetch_end(&claim->fetch, lane,
		&(struct outcome){ .status = status, .number = number, .result = failure });
	set_request_free(&claim->asked);
	pool_put(lane_env(lane)->pool, claim, sizeof(*claim));
	lane_next(lane);
}

static lane_after pop_on_lookup;
static lane_step pop_on_claimed;

static struct set_request question(const struct lane *lane)
{
	struct slice token = lane_first(lane)->log;

	return (struct set_request){ .verb = SET_TEST,
		.members = expiry_member(slice_of(token.p + 1, token.n - 2)) };
}

void claim_start(struct lane *lane)
{
	struct claim *claim = pool_get(lane_env(lane)->pool, sizeof(*claim));

	claim->asked = question(lane);
	fetch_begin(&claim->fetch, lane, &claim->asked, true, pop_on_lookup);
}

/* Restarts the request, even if the base is the same as before. */
static void ask_again(struct claim *claim)
{
	set_request_free(&claim->asked);
	claim->asked = question(claim->fetch.open.lane);
}

static void pop_on_claim_end(struct lane *lane, const struct result *r)
{
	struct claim *claim = lane->work;

	if (r->status == RESULT_DONE) {
		end_claim(lane, OUTCOME_DONE, 1, NULL);
	} else if (result_failed(r)) {
		end_claim(lane, OUTCOME_FAILED, 0, r);
	} else {
		ask_again(claim);
		opening_lost(&claim->fetch.open);
	}
}

static void pop_on_lookup(
	struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct claim *claim = lane->work;
	const struct opening *open = &claim->fetch.open;
	const struct op *op = lane_first(lane);
	bool member = slice_starts(buf_slice(&claim->asked.text), SLICE("1"));
	enum outcome_status may = keep_check(&open->read, open->date);

	if (open->ahead && (member || may != OUTCOME_DONE)) {
		ask_again(claim);
		opening_read(&claim->fetch.open);
	} else if (status == OUTCOME_MISSING && !claim->fetch.loading) {
		lane_call(lane,
			&(struct call){ .verb = CALL_ADD,
				.value = op->log,
				.role.change = CHANGE_WORDS,
				.role.claims = true,
				.exptime = op->ttl },
			pop_on_claim_end);
	} else if (status != OUTCOME_DONE || member) {
		end_claim(lane, status, 0, failure);
	} else if (may != OUTCOME_DONE) {
		end_claim(lane, may, 0, NULL);
	} else {
		struct slice base = fetch_base(&claim->fetch);
		lane_grew(lane, base.n + op->log.n);
		keep_append(lane, &open->read, base, open->date, op->log, pop_on_claimed);
		ahead_rewrites(lane);
	}
}

static void pop_on_claimed(struct lane *lane, const struct result *r)
{
	const struct claim *claim = lane->work;

	ahead_ended(lane, r->status, claim->fetch.open.ahead);
	pop_on_claim_end(lane, r);
}
