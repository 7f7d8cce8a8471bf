#include "collection/copies/gone.h"

#include "collection/text/date.h"
#include "collection/text/lease.h"

struct slice gone_write(struct pair *pair, uint64_t horizon)
{
	struct copy copy = { .horizon = horizon, .gone = true };

	buf_consume(&pair->next, buf_size(&pair->next));
	copy_add_closed(&pair->next, &copy);
	copy_end_closed(&pair->next, &copy);
	return buf_slice(&pair->next);
}

uint64_t gone_horizon(struct pair *pair)
{
	uint64_t now = pair_stamp(pair), horizon = stamp_before(now, 2 * ABSENCE_SKEW_MS);

	if (pair->failed)
		return now;
	for (unsigned y = 0; y < 2; y++) {
		const struct pair_side *side = &pair->sides[y];
		uint64_t last = side->has ? copy_last_stamp(&side->copy) : 0;
		horizon = last > horizon ? last : horizon;
	}
	return horizon;
}

static void gone_leave_failed(struct pair *pair)
{
	pair_leave(pair, false);
}

/*
 * Returns the latest time at which a base can have been created, by words, a lease or as a whole,
 * that has not been closed since: see add_created in word.c and whole_horizon in rewrite.c. One
 * that was created as a whole may get its second copy from anybody if the pair is whole: then 0.
 */
static uint64_t created_at(const struct pair *pair, const struct copy *copy)
{
	uint64_t settled = stamp_at(pair->copies->settled);
	struct lease_base lease;

	if (copy->gone)
		return copy->horizon + settled;
	if (lease_split(copy->closed, &lease))
		return copy->horizon + settled / 4;
	return pair_is_whole(pair) ? 0 : copy->horizon + stamp_at(2 * ABSENCE_SKEW_MS);
}

/*
 * Returns whether the second copy is missing because the set is just being created. If the first
 * one is missing, it is not: that is created first. A copy that is gone since a shorter time than
 * `settled` was deleted.
 */
static bool is_being_created(const struct pair *pair)
{
	const struct copies *copies = pair->copies;
	const struct pair_side *first = &pair->sides[0];
	uint64_t began = created_at(pair, &first->copy), now = pair_now(pair);

	if (!first->has || pair->sides[1].has ||
		(first->copy.gone && began > now + stamp_at(ABSENCE_SKEW_MS)))
		return false;
	return began + stamp_at(2 * copies->options.timeout) > now;
}

bool gone_not_yet(struct pair *pair)
{
	if (!is_being_created(pair))
		return false;
	pair_sleep(pair, (unsigned)(pair->copies->options.timeout / 2), gone_leave_failed);
	return true;
}

/* Whether a copy is one of a set, and not of one that was deleted. */
static bool is_of_set(const struct copy *copy)
{
	struct copy_reader reader = { .rest = copy->log, .largest = copy->horizon };
	struct copy_word word;
	bool is = !copy->gone;

	while (!is && copy_next(&reader, &word) == COPY_WORD)
		is = word.creates && word.stamp > copy->horizon;
	return is;
}

/*
 * Whether a set is lost with the copies that were read. One that is about to expire by its date, or
 * has just expired, is not: the other copy may have. A date that passed earlier is that of a former
 * set.
 */
static bool is_loss(const struct pair *pair)
{
	enum { MARGIN = 2 /* seconds, of clocks that differ */ };
	int64_t now = env_server_time(pair->copies->options.env, pair->call.key), date;
	bool loses = !pair->sides[0].has && !pair->sides[1].has;

	for (unsigned y = 0; y < 2; y++) {
		if (!pair->sides[y].has)
			continue;
		date = date_last(buf_slice(&pair->sides[y].value));
		if (date > 0 && date <= now + MARGIN && date + DATE_LATE > now)
			return false;
		loses |= is_of_set(&pair->sides[y].copy);
	}
	return loses;
}

/* If other writes of both copies were faster, it is another set, or a whole one, since then. */
static void gone_all_made(struct pair *pair)
{
	bool both = pair->sides[0].has && pair->sides[1].has, lost = !both || pair->stored;

	pair->copies->stats.incomplete += lost && is_loss(pair);
	repairs_add(pair->copies->repairs, pair->call.key, REPAIR_BASE);
	pair_leave(pair, lost);
}

static void make_gone(struct pair *pair)
{
	for (unsigned y = 0; y < 2; y++) {
		if (pair->sides[y].has)
			pair_write(pair, y, buf_slice(&pair->next), 0);
	}
	pair_wait(pair, gone_all_made);
}

static void gone_first_made(struct pair *pair)
{
	if (pair->stored & pair->written)
		make_gone(pair);
	else
		pair_leave(pair, false);
}

/*
 * A copy that is missing is made gone first: the two were read one after the other, and the set may
 * have been created between.
 */
void gone_lose(struct pair *pair, pair_after *after)
{
	unsigned missing = pair->sides[0].has;
	struct slice gone;

	pair_enter(pair, after);
	if (gone_not_yet(pair))
		return;
	gone = gone_write(pair, gone_horizon(pair));
	if (pair->sides[missing].has) {
		make_gone(pair);
		return;
	}
	pair->written = 1u << missing;
	pair_write(pair, missing, gone, 0);
	pair_wait(pair, gone_first_made);
}
