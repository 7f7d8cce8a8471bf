/*
 * Appends, and the creation of a set by its first words.
 *
 *     append to both -> both have failed: the outcome of the first
 *                    -> one has failed: raise the absence of its server
 *                    -> neither has the set: NOT_STORED
 *                    -> one lacks it: repair; the word was closed away meanwhile: append again
 *
 *     create -> look for both -> one may have it: NOT_STORED
 *            -> ADD of the first copy -> ADD of the second one
 *
 * The first copy decides who creates the set. A word that is acknowledged so late that it may be
 * void is appended again with a new stamp.
 */
#include "collection/copies/gone.h"
#include "collection/copies/pair.h"
#include "collection/text/date.h"

static pair_step word_answered, word_first_added, word_second_added;
static pair_after word_absent, word_repaired, word_seen, word_joined, word_lost, word_away,
	word_second_absent, word_ended;

/* The date of a touch that has passed meanwhile would be one of a set that was created since. */
static bool has_passed(const struct pair *pair)
{
	int64_t date = date_last(pair->call.value);

	return date > 0 && date <= env_server_time(pair->copies->options.env, pair->call.key);
}

static void append_again(struct pair *pair)
{
	if (has_passed(pair))
		pair_end_as(pair, RESULT_DONE);
	else if (++pair->tries < 2 * PAIR_TRIES)
		word_start(pair);
	else
		pair_fail_unknown(pair);
}

static void acknowledge_words(struct pair *pair)
{
	if (pair_is_late(pair))
		append_again(pair);
	else
		pair_end_as(pair, RESULT_DONE);
}

void word_start(struct pair *pair)
{
	struct call call = { .verb = CALL_APPEND };

	pair->stamp = pair_stamp(pair);
	buf_consume(&pair->next, buf_size(&pair->next));
	copy_add_group(&pair->next, pair->stamp, pair->call.role.creates, pair->call.value);
	call.value = buf_slice(&pair->next);
	pair_send_both(pair, call, word_answered);
}

static void end_append(struct pair *pair)
{
	if (!pair->stored)
		pair_end_as(pair, RESULT_NOT_STORED);
	else if (pair->stored != PAIR_BOTH && !pair->failed)
		pair_repair(pair, word_repaired);
	else
		acknowledge_words(pair);
}

static void word_answered(struct pair *pair)
{
	if (pair->failed == PAIR_BOTH) {
		pair_fail(pair);
	} else if (pair->failed) {
		pair_absent(pair, pair->failed >> 1, word_absent);
	} else {
		end_append(pair);
	}
}

static void word_absent(struct pair *pair, bool done)
{
	if (done)
		end_append(pair);
	else
		pair_fail_unknown(pair);
}

static void word_repaired(struct pair *pair, bool done)
{
	if (!done || pair->horizon >= pair->stamp)
		append_again(pair);
	else
		acknowledge_words(pair);
}

/* --- creating --- */

void word_create(struct pair *pair)
{
	pair_look(pair, word_seen);
}

/*
 * The base of a set that is created. Words that are not late are kept, since they may arrive after
 * it. If both servers said that it is missing, all words are kept that are not settled, because
 * another proxy may create it at the same time on the other server. If that is unreachable, it may
 * have former words of this set, and as few of them as possible are kept. All this counts from the
 * time at which the set was looked for.
 */
static void add_created(struct pair *pair)
{
	uint64_t settled = pair->copies->settled;

	pair->stamp = pair_stamp(pair);
	(void)gone_write(pair,
		stamp_before(pair->began, pair->written == PAIR_BOTH ? settled : settled / 2));
	copy_add_group(&pair->next, pair->stamp, true, pair->call.value);
}

static void add_first_copy(struct pair *pair)
{
	add_created(pair);
	pair->here = pair->written == PAIR_SECOND;
	pair_write(pair, pair->here, buf_slice(&pair->next), pair->call.exptime);
	pair_wait(pair, word_first_added);
}

/* A set of which one copy is there and gone is created by words in that. */
static void word_joined(struct pair *pair, bool done)
{
	if (done && pair_has_expired(pair))
		pair_repair(pair, word_lost);
	else if (!done || pair->exists)
		pair_end_as(pair, RESULT_NOT_STORED);
	else
		rewrite_gone(pair);
}

static void word_lost(struct pair *pair, bool done)
{
	(void)done;
	pair_end_as(pair, RESULT_NOT_STORED);
}

static void word_away(struct pair *pair, bool done)
{
	if (done)
		add_first_copy(pair);
	else
		pair_fail(pair);
}

static void word_seen(struct pair *pair, bool both)
{
	const struct pair_side *sides = pair->sides;

	pair->written = PAIR_BOTH & ~pair->failed;
	if (!both &&
		(pair->failed == PAIR_BOTH || !pair_suffices(pair) ||
			(pair->call.role.claims && pair->failed == PAIR_FIRST)))
		pair_fail(pair);
	else if (both && !pair_is_whole(pair))
		gone_lose(pair, word_lost);
	else if (sides[0].foreign || sides[1].foreign)
		pair_end_as(pair, RESULT_NOT_STORED);
	else if (sides[0].has || sides[1].has)
		pair_join_sides(pair, STAMP_MAX, 0, word_joined);
	else if (both)
		add_first_copy(pair);
	else
		pair_absent(pair, pair->failed >> 1, word_away);
}

/*
 * The words may be void, and are stored again: not those of a claim, which would then find their
 * own member.
 */
static void word_ended(struct pair *pair, bool counts)
{
	if (counts)
		pair_end_as(pair, RESULT_DONE);
	else if (pair->call.role.claims)
		pair_fail_unknown(pair);
	else
		pair_end_as(pair, RESULT_NOT_STORED);
}

static void end_created(struct pair *pair, bool stored)
{
	if (stored)
		pair_count(pair, word_ended);
	else
		word_ended(pair, false);
}

static void word_first_added(struct pair *pair)
{
	if (pair->failed & 1u << pair->here) {
		pair_fail_unknown(pair);
	} else if (!pair->stored) {
		pair_end_as(pair, RESULT_NOT_STORED);
	} else if (pair->written != PAIR_BOTH) {
		end_created(pair, true);
	} else {
		pair_write(pair, 1, buf_slice(&pair->next), pair->call.exptime);
		pair_wait(pair, word_second_added);
	}
}

/*
 * A word that finds the second copy missing is not acknowledged before both have it. If another
 * proxy has created that, the words are appended.
 */
static void word_second_added(struct pair *pair)
{
	if (pair->failed & PAIR_SECOND)
		pair_absent(pair, 1, word_second_absent);
	else
		end_created(pair, pair->stored & PAIR_SECOND);
}

static void word_second_absent(struct pair *pair, bool done)
{
	if (done)
		end_created(pair, true);
	else
		pair_fail_unknown(pair);
}
