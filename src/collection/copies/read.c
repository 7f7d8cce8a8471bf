/*
 * Reads of the base.
 *
 *     first copy -> may be believed: answer
 *                -> second copy -> both: the join, unless the pair is not whole
 *                               -> one:  that one, if it may be believed
 *
 * A read before a CAS always reads both, since its token stands for both. One for a compaction
 * makes them equal before, and returns only the closed part: later words stay in the log.
 */
#include "collection/copies/gone.h"
#include "collection/copies/pair.h"
#include "collection/copies/recall.h"
#include "collection/copies/stamp.h"
#include "collection/text/date.h"
#include "util/random.h"

static pair_step read_first, read_second, read_settled_later;
static pair_after read_known, read_settled, read_settled_again, read_settled_created,
	read_first_joined, read_joined, read_lost, read_absent;

/* Ends with a base, of which the slice is borrowed. */
static void answer_base(struct pair *pair, struct slice base)
{
	const struct pair_side *side = &pair->sides[pair->sides[0].has ? 0 : 1];

	pair_end(pair,
		&(struct result){
			.status = RESULT_HIT,
			.value = base,
			.flags = side->flags,
			.ttl = side->ttl,
			.size = side->size,
			.cas = pair_token(pair),
			.connection = pair_second_token(pair),
			.server = side->server,
		});
}

void read_start(struct pair *pair)
{
	pair_know(pair, read_known);
}

static void send_get(struct pair *pair, unsigned copy)
{
	pair_send(pair, copy,
		(struct call){ .verb = CALL_GET,
			.want = WANT_VALUE | WANT_CAS | pair->call.want,
			.only_reads = pair->call.only_reads });
}

static void read_known(struct pair *pair, bool done)
{
	pair->tries++;
	if (!done) {
		pair_fail(pair);
	} else if (pair->call.role.settled) {
		pair_repair(pair, read_settled);
	} else {
		send_get(pair, 0);
		if (pair->call.only_reads) {
			pair_wait(pair, read_first);
		} else {
			send_get(pair, 1);
			pair_wait(pair, read_second);
		}
	}
}

/*
 * After an absence of its server, the second copy may not be believed until it is repaired; and
 * parts may be on any server. Until then, each read looks at this again.
 */
static void note_absence(struct pair *pair)
{
	const struct copy *first = &pair->sides[0].copy;
	bool parts = copy_may_have_parts(first);
	uint64_t absence = parts ? absences_latest(pair->copies->absences) : pair_absence(pair, 1);

	if (absence <= first->horizon)
		recall_keep(pair);
	else if (absence < stamp_before(pair_now(pair), pair->copies->settled))
		repairs_add(
			pair->copies->repairs, pair->call.key, parts ? REPAIR_PARTS : REPAIR_BASE);
}

static void read_first(struct pair *pair)
{
	const struct pair_side *first = &pair->sides[0];

	if (first->has && !first->copy.gone && pair_believed(pair, 0)) {
		note_absence(pair);
		if (first->copy.log.n)
			pair_join(pair, &first->copy, NULL, STAMP_MAX, 0, read_first_joined);
		else
			answer_base(pair, first->copy.closed);
		return;
	}
	/* An item that is no base of a copy, which the machines report. */
	if (first->foreign) {
		pair_answer(pair, 0);
		return;
	}
	pair->copies->stats.joins++;
	send_get(pair, 1);
	pair_wait(pair, read_second);
}

static void missing(struct pair *pair)
{
	if (pair->failed)
		pair_absent(pair, pair->failed >> 1, read_absent);
	else
		pair_end_as(pair, RESULT_MISS);
}

static void read_absent(struct pair *pair, bool done)
{
	if (done)
		pair_end_as(pair, RESULT_MISS);
	else
		pair_fail(pair);
}

/* Repairs what a read has found, unless it is just being written. */
static void note_difference(struct pair *pair)
{
	const struct pair_side *a = &pair->sides[0], *b = &pair->sides[1];
	uint64_t old = stamp_before(pair_now(pair), pair->copies->settled);
	uint64_t horizon = a->has ? a->copy.horizon : b->copy.horizon;
	bool differ = !a->has || !b->has || a->copy.horizon != b->copy.horizon,
	     believed = pair_believed(pair, 0) && pair_believed(pair, 1);

	if (!pair->call.only_reads || pair->failed)
		return;
	if ((differ && !(a->has && a->copy.gone)) || (!believed && horizon < old))
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_BASE);
}

static void read_second(struct pair *pair)
{
	const struct pair_side *sides = pair->sides;

	if (sides[0].foreign || sides[1].foreign) {
		pair_answer(pair, !sides[0].foreign);
	} else if (!pair_suffices(pair)) {
		pair_fail(pair);
	} else if (!pair->failed && !pair_is_whole(pair)) {
		gone_lose(pair, read_lost);
	} else if (!sides[0].has && !sides[1].has) {
		missing(pair);
	} else {
		note_difference(pair);
		pair_join_sides(pair, STAMP_MAX, 0, read_joined);
	}
}

static void read_lost(struct pair *pair, bool done)
{
	if (done)
		pair_end_as(pair, RESULT_MISS);
	else if (pair->tries < PAIR_TRIES)
		read_start(pair);
	else
		pair_fail(pair);
}

static void read_joined(struct pair *pair, bool done)
{
	if (done && pair_has_expired(pair)) {
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_BASE);
		pair_end_as(pair, RESULT_MISS);
	} else {
		read_first_joined(pair, done);
	}
}

/* All words are closed in it, in the order in which they count. */
static void read_first_joined(struct pair *pair, bool done)
{
	struct copy joined;

	if (!done || !copy_parse(buf_slice(&pair->join.out), &joined))
		pair_answer(pair, !pair->sides[0].has);
	else if (!pair->exists)
		missing(pair);
	else
		answer_base(pair, joined.closed);
}

/* --- the settled part --- */

static void read_settled_later(struct pair *pair)
{
	read_start(pair);
}

/* Of several proxies that repair the set at once, one is the first. */
static void read_settled(struct pair *pair, bool done)
{
	enum { TRIES = 8, PAUSE = 32 /* milliseconds */ };
	unsigned ms = (unsigned)(random_next(&pair->copies->options.env->random) % PAUSE);

	if (done)
		pair_get(pair, read_settled_again);
	else if (pair->failed)
		pair_fail(pair);
	else if (pair->tries < TRIES)
		pair_sleep(pair, (ms + 1) * pair->tries, read_settled_later);
	else
		pair_end_as(pair, RESULT_BUSY);
}

/*
 * A word of the log may have changed the date: that of the closed part would be too early for parts
 * that are written.
 */
static void answer_settled(struct pair *pair, const struct pair_side *side)
{
	int64_t date = date_last(buf_slice(&side->value));

	buf_consume(&pair->next, buf_size(&pair->next));
	buf_add_slice(&pair->next, side->copy.closed);
	if (date != date_last(side->copy.closed))
		date_add(&pair->next, date);
	answer_base(pair, buf_slice(&pair->next));
}

/* A copy that changes meanwhile is noticed by its token. */
static void read_settled_again(struct pair *pair, bool both)
{
	const struct pair_side *sides = pair->sides;
	unsigned y = sides[0].has && sides[1].has ? sides[1].copy.horizon > sides[0].copy.horizon
						  : !sides[0].has;

	(void)both;
	if (!pair_suffices(pair))
		pair_fail(pair);
	else if (!sides[y].has)
		pair_end_as(pair, RESULT_MISS);
	else if (sides[y].copy.gone)
		pair_join_sides(pair, 0, 0, read_settled_created);
	else
		answer_settled(pair, &sides[y]);
}

/* Of a set that was created a short time ago, nothing is settled. */
static void read_settled_created(struct pair *pair, bool done)
{
	if (!done)
		pair_answer(pair, !pair->sides[0].has);
	else if (pair->exists)
		answer_base(pair, SLICE(""));
	else
		pair_end_as(pair, RESULT_MISS);
}
