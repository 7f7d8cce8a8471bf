/*
 * A CAS of the base, an ADD that replaces a missing set, and a deletion.
 *
 *     read both -> the token is not theirs: EXISTS
 *     -> CAS of the first copy, which decides -> lost: EXISTS
 *     -> second copy: words are appended
 *                     all else: CAS of its join with the new base -> lost: read it again
 *
 * A base that is rewritten gets a slightly larger horizon, so that a join prefers it. No word has a
 * stamp up to that: those that are not in a copy yet are older than `settled`, and void.
 *
 * While one server is unreachable, the other copy decides if it may be believed. Words that
 * must not be stored twice (call.role.claims) need the first one.
 *
 * Such a base is also closed up to S/2 before the copies were read, where S is `settled`. No other
 * proxy closes a copy that it read before this write so far. Words up to then that are not in the
 * copies are void: they would be acknowledged only within S/4 of their stamps. The rest of S/2 is
 * for clocks that differ.
 */
#include "collection/copies/gone.h"
#include "collection/copies/pair.h"
#include "collection/copies/refill.h"
#include "collection/text/date.h"
#include "collection/text/expiry.h"
#include "collection/text/lease.h"
#include "collection/text/oplog.h"

static pair_step rewrite_written, rewrite_words_appended, rewrite_other_read, rewrite_other_written,
	rewrite_deleted;
static void join_other(struct pair *pair);
static pair_after rewrite_read, rewrite_absent, rewrite_known_again, rewrite_lost, rewrite_joined,
	rewrite_here_joined, rewrite_other_joined, rewrite_compared, rewrite_words_repaired,
	rewrite_delete_read, rewrite_delete_first, rewrite_delete_second, rewrite_delete_absent;

static bool is_cas(const struct pair *pair)
{
	return pair->call.verb == CALL_CAS;
}

static void lost_race(struct pair *pair)
{
	pair_end_as(pair, is_cas(pair) ? RESULT_EXISTS : RESULT_NOT_STORED);
}

void rewrite_start(struct pair *pair)
{
	pair_look(pair, rewrite_read);
}

/* Whether the copies are still as they were read for this CAS. */
static bool is_as_read(const struct pair *pair)
{
	return pair->call.number == pair_token(pair) &&
		(!pair->call.connection || pair->call.connection == pair_second_token(pair));
}

static void decide_rewrite(struct pair *pair)
{
	const struct pair_side *sides = pair->sides;

	pair->here =
		pair->failed == PAIR_FIRST || (pair->failed == 0 && !sides[0].has && sides[1].has);
	if (sides[0].foreign || sides[1].foreign)
		lost_race(pair);
	else if (pair->failed && (!pair_suffices(pair) || (pair->call.role.claims && pair->here)))
		pair_fail(pair);
	else if (!pair->failed && !pair_is_whole(pair))
		gone_lose(pair, rewrite_lost);
	else if (!pair->failed && sides[0].has != sides[1].has)
		pair_repair(pair, rewrite_lost);
	else if (is_cas(pair) && !sides[pair->here].has)
		pair_end_as(pair, RESULT_MISS);
	else if (is_cas(pair) && !is_as_read(pair))
		pair_end_as(pair, RESULT_EXISTS);
	else if (sides[pair->here].has)
		pair_join_sides(pair, 0, 0, rewrite_joined);
	else
		rewrite_joined(pair, true);
}

static void rewrite_read(struct pair *pair, bool both)
{
	pair->written = PAIR_BOTH & ~pair->failed;
	if (pair->failed == PAIR_BOTH)
		pair_fail(pair);
	else if (!both)
		pair_absent(pair, pair->failed >> 1, rewrite_absent);
	else
		decide_rewrite(pair);
}

/* Of two proxies that each see one server, at most one finds no absence of it. */
static void rewrite_absent(struct pair *pair, bool done)
{
	if (done)
		pair_know(pair, rewrite_known_again);
	else
		pair_fail(pair);
}

static void rewrite_known_again(struct pair *pair, bool done)
{
	if (done)
		decide_rewrite(pair);
	else
		pair_fail(pair);
}

static void rewrite_lost(struct pair *pair, bool done)
{
	(void)done;
	lost_race(pair);
}

/* --- the new base --- */

static void add_base(struct pair *pair, struct copy copy, uint64_t horizon)
{
	copy.horizon = horizon;
	copy.fill = 0;
	copy.gone = false;
	buf_consume(&pair->next, buf_size(&pair->next));
	copy_add_closed(&pair->next, &copy);
	copy_end_closed(&pair->next, &copy);
}

/* Whether a word adds a member that has expired. */
static bool is_expired(const struct pair *pair, struct slice token)
{
	struct slice member = copy_member(token);

	return member.n + 1 < token.n &&
		expiry_is_past(expiry_read(member.p + member.n),
			env_server_time(pair->copies->options.env, pair->call.key));
}

/*
 * Appends removals of the members that words of the log have added. Members that have expired were
 * not taken: another proxy may just be adding one of them again.
 */
static void remove_words(struct pair *pair, struct slice log)
{
	struct copy_reader reader = { .rest = log };
	struct copy_word word;

	copy_start_group(&pair->next, pair->stamp, false);
	while (copy_next(&reader, &word) == COPY_WORD) {
		if (!word.token.n || word.token.p[0] != '+' || is_expired(pair, word.token))
			continue;
		BUF_ADD(&pair->next, "-");
		buf_add_slice(&pair->next, copy_member(word.token));
		BUF_ADD(&pair->next, " ");
	}
	copy_end_group(&pair->next);
}

/* The references of the new value, and the words of the base that was read. */
static void add_new_refs(struct buf *out, struct slice value, struct slice closed)
{
	struct oplog_base base;

	if (oplog_split(value, &base))
		buf_add_slice(out, base.block);
	if (oplog_split(closed, &base)) {
		buf_add_slice(out, base.head);
		buf_add_slice(out, base.log);
	}
}

/*
 * The horizon of a base that is rewritten. If another proxy rewrites only the second copy at the
 * same time, because it does not reach the first one, that has a larger horizon.
 */
static uint64_t next_horizon(const struct pair *pair, const struct copy *joined)
{
	return joined->horizon + 1 + pair->here;
}

/*
 * The horizon of a new set. Either copy can be believed without the other, also if a server was
 * just absent. One that a client begins to load keeps the words that are as old as clocks may
 * differ: the client reads its source later than they were written.
 */
static uint64_t whole_horizon(struct pair *pair, const struct copy *joined)
{
	uint64_t margin = stamp_before(pair->stamp, pair->copies->settled / 4);
	struct lease_base lease;

	if (!lease_split(pair->call.value, &lease)) {
		uint64_t absence = absences_latest(pair->copies->absences);
		margin = gone_horizon(pair);
		if (absence > margin)
			margin = absence < pair->stamp ? absence : pair->stamp;
	}
	return margin > joined->horizon ? margin : next_horizon(pair, joined);
}

/* Returns whether a word in the log would be void at such a horizon. */
static bool is_crowded(struct pair *pair, const struct copy *joined)
{
	struct copy_reader reader = { .rest = joined->log, .largest = joined->horizon };
	struct copy_word word;

	return pair->call.role.change != CHANGE_ALL && copy_next(&reader, &word) == COPY_WORD &&
		word.stamp <= joined->horizon + 2;
}

/*
 * Writes the new base to pair->next, of which only the closed part and new words count: it will be
 * joined with each copy. pair->join has the join of both copies.
 */
static void make_base(struct pair *pair, const struct copy *joined)
{
	struct copy copy = { .closed = pair->call.value };
	struct buf closed = BUF_EMPTY;

	switch (pair->call.role.change) {
	case CHANGE_SETTLED:
		add_base(pair, copy, next_horizon(pair, joined));
		break;
	case CHANGE_REFS:
		add_new_refs(&closed, pair->call.value, joined->closed);
		copy.closed = buf_slice(&closed);
		add_base(pair, copy, next_horizon(pair, joined));
		break;
	case CHANGE_EMPTY:
		add_base(pair, copy, next_horizon(pair, joined));
		remove_words(pair, joined->log);
		break;
	default:
		if (pair->call.exptime < 0)
			(void)gone_write(pair, gone_horizon(pair));
		else
			add_base(pair, copy, whole_horizon(pair, joined));
		break;
	}
	buf_free(&closed);
}

static int64_t exptime_of(const struct pair *pair)
{
	return pair->call.exptime < 0 ? 0 : pair->call.exptime;
}

/* Returns a value without the date at its end, where a CAS puts it. */
static struct slice before_date(struct slice value)
{
	struct buf date = BUF_EMPTY;

	if (date_last(value) != DATE_NONE)
		date_add(&date, date_last(value));
	value.n -= buf_size(&date);
	buf_free(&date);
	return value;
}

/* Appends the group of new words, with the date that the value has, if that is new. */
static void add_words(struct pair *pair, struct slice base)
{
	struct slice value = pair->call.value, rest = before_date(value);
	struct slice words = slice_skip(rest, rest.n - pair->call.role.words);

	copy_start_group(&pair->next, pair->stamp, pair->call.role.creates);
	buf_add_slice(&pair->next, words);
	if (date_last(words) == DATE_NONE && date_last(value) != DATE_NONE &&
		date_last(value) != date_last(base))
		date_add(&pair->next, date_last(value));
	copy_end_group(&pair->next);
}

/* `next` is the group of words; they follow the base that was read. */
static void write_new_words(struct pair *pair)
{
	const struct pair_side *side = &pair->sides[pair->here];
	struct buf base = BUF_EMPTY;

	buf_consume(&pair->next, buf_size(&pair->next));
	add_words(pair, buf_slice(&side->value));
	buf_add_slice(&base, buf_slice(&side->value));
	buf_add_slice(&base, buf_slice(&pair->next));
	pair_write(pair, pair->here, buf_slice(&base), pair->call.exptime);
	pair_wait(pair, rewrite_written);
	buf_free(&base);
}

void rewrite_gone(struct pair *pair)
{
	pair->here = !pair->sides[0].has;
	pair->call.role.change = CHANGE_WORDS;
	pair->call.role.words = (uint32_t)pair->call.value.n;
	pair->call.role.creates = true;
	pair->stamp = pair_stamp(pair);
	write_new_words(pair);
}

/* Returns up to when the new base is closed; 0 for one whose horizon is that of its stamp. */
static uint64_t close_horizon(const struct pair *pair)
{
	return pair->call.role.change == CHANGE_ALL
		? 0
		: stamp_before(pair->began, pair->copies->settled / 2);
}

/* Whether a copy that gets this base lacks no word any more: it covers all words of both copies. */
static bool covers_all(const struct pair *pair, const struct copy *next)
{
	return pair->call.role.change == CHANGE_ALL && !pair->failed &&
		next->horizon >= pair->largest;
}

/*
 * Writes the join of the new base and this copy, or that base if the copy is missing. It is closed
 * up to this horizon.
 */
static void join_new(struct pair *pair, unsigned copy, uint64_t horizon, pair_after *after)
{
	const struct pair_side *side = &pair->sides[copy];
	struct copy next;

	if (!copy_parse(buf_slice(&pair->next), &next))
		pair_fail(pair);
	else if (!side->has)
		pair_join(pair, &next, NULL, horizon, 0, after);
	else
		pair_join(pair, &next, &side->copy, horizon,
			covers_all(pair, &next) ? 0 : side->copy.fill, after);
}

/*
 * Replaces the copy that decides with the join of both, so that words that only the other copy has
 * are closed as well.
 */
static void take_join(struct pair *pair)
{
	struct pair_side *here = &pair->sides[pair->here];
	uint64_t fill = here->copy.fill;

	if (!here->has)
		return;
	buf_consume(&here->value, buf_size(&here->value));
	buf_add_slice(&here->value, buf_slice(&pair->join.out));
	here->has = copy_parse(buf_slice(&here->value), &here->copy);
	here->copy.fill = fill;
}

/*
 * Whether the only reachable copy was read too long ago. A repair that reads it now as well, and
 * both copies, would close more than this rewrite, and so undo it.
 */
static bool is_overtaken(const struct pair *pair)
{
	return pair->failed && pair->call.role.change != CHANGE_ALL &&
		pair_now(pair) > pair->began + stamp_at(pair->copies->settled / 4);
}

static void rewrite_joined(struct pair *pair, bool done)
{
	struct copy joined = { .horizon = 0 };

	if (!done ||
		(pair->sides[pair->here].has && !copy_parse(buf_slice(&pair->join.out), &joined))) {
		lost_race(pair);
		return;
	}
	if (!is_cas(pair) && pair->sides[pair->here].has && pair->exists) {
		pair_end_as(pair, RESULT_NOT_STORED);
		return;
	}
	pair->stamp = pair_stamp(pair);
	if (pair->call.role.change == CHANGE_WORDS) {
		write_new_words(pair);
		return;
	}
	if (is_overtaken(pair)) {
		lost_race(pair);
		return;
	}
	if (is_crowded(pair, &joined)) {
		pair_repair(pair, rewrite_lost);
		return;
	}
	pair->checks = !pair->failed && pair_may_lack_parts(pair);
	make_base(pair, &joined);
	take_join(pair);
	join_new(pair, pair->here, close_horizon(pair), rewrite_here_joined);
}

/*
 * The other copy has a larger horizon. If the copy that decides has it, too, this rewrite is in
 * both: another proxy has closed them, or has deleted the set. It may have done that between the
 * two reads, so they are read again. Else another proxy has rewritten or closed only the other
 * copy. Then that counts, and this rewrite has lost the race.
 */
static void rewrite_compared(struct pair *pair, bool both)
{
	const struct pair_side *here = &pair->sides[pair->here];
	const struct pair_side *other = &pair->sides[1 - pair->here];

	/* Here, it may have been lost, and filled from the other copy. */
	if (!both || !here->has || here->copy.fill > pair->stamp || pair_is_late(pair)) {
		pair_fail_unknown(pair);
	} else if (!other->has || here->copy.horizon >= other->copy.horizon) {
		pair_end_as(pair, RESULT_DONE);
	} else if (++pair->tries < PAIR_TRIES) {
		pair_get(pair, rewrite_compared);
	} else {
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_BASE);
		lost_race(pair);
	}
}

static void join_other(struct pair *pair)
{
	unsigned other = 1 - pair->here;
	const struct pair_side *side = &pair->sides[other];
	struct copy next;

	/* It has expired, or was lost. */
	if (!side->has && pair->sides[pair->here].has) {
		pair_repair(pair, pair_end_write);
		return;
	}

	if (copy_parse(buf_slice(&pair->next), &next) && side->has &&
		side->copy.horizon >= next.horizon)
		pair_get(pair, rewrite_compared);
	else
		join_new(pair, other, 0, rewrite_other_joined);
}

static void write_here(struct pair *pair)
{
	pair_write(pair, pair->here, buf_slice(&pair->next), exptime_of(pair));
	pair_wait(pair, rewrite_written);
}

static void rewrite_on_refilled(struct pair *pair, enum refilled outcome)
{
	if (outcome == REFILL_DONE) {
		write_here(pair);
	} else {
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_PARTS);
		lost_race(pair);
	}
}

/* Parts may have been written while a server was absent, and the new base says that it has all. */
static void rewrite_here_joined(struct pair *pair, bool done)
{
	struct buf refs = BUF_EMPTY;
	struct copy next;

	if (!done || !copy_parse(buf_slice(&pair->join.out), &next)) {
		lost_race(pair);
		return;
	}
	if (pair->checks)
		lease_add_refs(next.closed, &refs);
	/* The other copy gets the same, with its own words. */
	buf_consume(&pair->next, buf_size(&pair->next));
	buf_add_slice(&pair->next, buf_slice(&pair->join.out));
	if (buf_size(&refs))
		refill_start(pair, buf_slice(&refs), rewrite_on_refilled);
	else
		write_here(pair);
	buf_free(&refs);
}

static void end_in_time(struct pair *pair)
{
	if (pair->call.role.change == CHANGE_WORDS)
		pair_count(pair, pair_end_write);
	else
		pair_end_write(pair, !pair_is_late(pair));
}

static void rewrite_written(struct pair *pair)
{
	unsigned other = 1 - pair->here;

	if (pair->failed & 1u << pair->here) {
		pair_fail_unknown(pair);
	} else if (!(pair->stored & 1u << pair->here)) {
		lost_race(pair);
	} else if (!(pair->written & 1u << other)) {
		end_in_time(pair);
	} else if (pair->call.role.change == CHANGE_WORDS) {
		pair_send(pair, other,
			(struct call){ .verb = CALL_APPEND, .value = buf_slice(&pair->next) });
		pair_wait(pair, rewrite_words_appended);
	} else {
		pair->tries = 0;
		join_other(pair);
	}
}

/* --- the other copy --- */

static void rewrite_other_joined(struct pair *pair, bool done)
{
	unsigned other = 1 - pair->here;

	if (!done) {
		pair_fail_unknown(pair);
		return;
	}
	pair_write(pair, other, buf_slice(&pair->join.out), exptime_of(pair));
	pair_wait(pair, rewrite_other_written);
}

static void rewrite_other_written(struct pair *pair)
{
	enum { MOST = 8 };
	unsigned other = 1 - pair->here;

	if (pair->failed & 1u << other) {
		pair_absent(pair, other, pair_end_write);
	} else if (pair->stored & 1u << other) {
		pair_end_as(pair, RESULT_DONE);
	} else if (++pair->tries < MOST) {
		pair_take(pair, other, &(struct result){ .status = RESULT_MISS });
		pair_send(pair, other,
			(struct call){
				.verb = CALL_GET, .want = WANT_VALUE | WANT_CAS | WANT_TTL });
		pair_wait(pair, rewrite_other_read);
	} else {
		repairs_add(pair->copies->repairs, pair->call.key, REPAIR_BASE);
		pair_fail_unknown(pair);
	}
}

static void rewrite_other_read(struct pair *pair)
{
	unsigned other = 1 - pair->here;

	if (pair->failed & 1u << other)
		pair_absent(pair, other, pair_end_write);
	else
		join_other(pair);
}

static void rewrite_end_words(struct pair *pair, bool done)
{
	if (done)
		end_in_time(pair);
	else
		pair_fail_unknown(pair);
}

static void rewrite_words_appended(struct pair *pair)
{
	unsigned other = 1 - pair->here;

	if (pair->failed & 1u << other)
		pair_absent(pair, other, rewrite_end_words);
	else if (pair->stored & 1u << other)
		rewrite_end_words(pair, true);
	else
		pair_repair(pair, rewrite_words_repaired);
}

/* Another proxy may have created the set meanwhile, and so made the words void. */
static void rewrite_words_repaired(struct pair *pair, bool done)
{
	rewrite_end_words(pair, done && pair->horizon < pair->stamp);
}

/* --- deletion --- */

void rewrite_delete(struct pair *pair)
{
	pair_get(pair, rewrite_delete_read);
}

static void again_deleted(struct pair *pair)
{
	if (++pair->tries < 2 * PAIR_TRIES)
		rewrite_delete(pair);
	else
		pair_fail_unknown(pair);
}

/* `began` is whether it was a set the first time. */
static void rewrite_was_missing(struct pair *pair, bool done)
{
	if (!done)
		pair_fail_unknown(pair);
	else
		pair_end_as(pair, pair->tries && pair->began ? RESULT_DONE : RESULT_MISS);
}

static void rewrite_delete_read(struct pair *pair, bool both)
{
	const struct pair_side *sides = pair->sides;

	(void)both;
	if (pair->failed == PAIR_BOTH)
		pair_fail(pair);
	else if (sides[0].has || sides[1].has)
		pair_join_sides(pair, 0, 0, rewrite_delete_first);
	else if (pair->failed)
		pair_absent(pair, pair->failed >> 1, rewrite_was_missing);
	else
		rewrite_was_missing(pair, true);
}

/*
 * Each try has the stamp of the first one, so that it deletes no later words, unless the set was
 * closed beyond it. A later try leaves a copy missing, because that stamp is then older than words
 * that found it missing.
 */
static void rewrite_delete_first(struct pair *pair, bool done)
{
	const struct pair_side *sides = pair->sides;

	if (pair->tries == 0)
		pair->began = !done || pair->exists;
	for (unsigned y = 0; y < 2; y++) {
		if (sides[y].has && !sides[y].copy.gone && sides[y].copy.horizon > pair->stamp)
			pair->stamp = 0;
	}
	if (!pair->stamp)
		pair->stamp = gone_horizon(pair);
	(void)gone_write(pair, pair->stamp);
	pair->written = 0;
	if (pair->failed & PAIR_FIRST || (pair->tries && !sides[0].has))
		rewrite_delete_second(pair, false);
	else
		join_new(pair, 0, 0, rewrite_delete_second);
}

static void send_deletion(struct pair *pair, unsigned copy)
{
	pair->written |= 1u << copy;
	pair_write(pair, copy, buf_slice(&pair->join.out), 0);
}

static void rewrite_delete_second(struct pair *pair, bool joined)
{
	if (joined)
		send_deletion(pair, 0);
	if (pair->failed & PAIR_SECOND || (pair->tries && !pair->sides[1].has))
		rewrite_delete_absent(pair, false);
	else
		join_new(pair, 1, 0, rewrite_delete_absent);
}

static void rewrite_delete_absent(struct pair *pair, bool joined)
{
	if (joined)
		send_deletion(pair, 1);
	if (pair->pending)
		pair_wait(pair, rewrite_deleted);
	else
		rewrite_deleted(pair);
}

static void rewrite_end_deletion(struct pair *pair, bool done)
{
	repairs_add(pair->copies->repairs, pair->call.key, REPAIR_BASE);
	if (!done)
		pair_fail_unknown(pair);
	else
		pair_end_as(pair, pair->began ? RESULT_DONE : RESULT_MISS);
}

static void rewrite_deleted(struct pair *pair)
{
	unsigned stored = pair->stored & pair->written;

	if (pair->failed == PAIR_BOTH)
		pair_fail_unknown(pair);
	else if (pair->written & ~stored & ~pair->failed)
		again_deleted(pair);
	else if (pair->failed)
		pair_absent(pair, pair->failed >> 1, rewrite_end_deletion);
	else
		rewrite_end_deletion(pair, true);
}
