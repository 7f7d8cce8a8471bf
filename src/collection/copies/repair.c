/*
 * Repair: makes both copies of a set equal.
 *
 *     read both -> not whole: make the set gone
 *               -> join -> copy the parts that a server lacks -> write the copies that differ
 *
 * Words that are so old that none can be on its way any more become closed meanwhile: those up to
 * `settled` milliseconds before the copies were read, however long that took. Any proxy may repair
 * any set at any time.
 */
#include "collection/copies/gone.h"
#include "collection/copies/pair.h"
#include "collection/copies/refill.h"
#include "collection/text/date.h"
#include "collection/text/lease.h"
#include "collection/ttl.h"

static pair_step repair_first_written, repair_written;
static pair_after repair_known, repair_got, repair_absent, repair_joined, repair_lost,
	repair_seen_again;
static void repair_on_refilled(struct pair *pair, enum refilled outcome);
static void write_copies(struct pair *pair);
static void remove_copies(struct pair *pair);

void pair_repair(struct pair *pair, pair_after *after)
{
	pair_enter(pair, after);
	pair->horizon = 0;
	/* Absences may take long to be read, and are as of the time when that began. */
	pair->began = pair_now(pair);
	pair_know(pair, repair_known);
}

static void repair_known(struct pair *pair, bool done)
{
	if (!done) {
		pair_leave(pair, false);
		return;
	}
	pair_get(pair, repair_got);
}

static void repair_lost(struct pair *pair, bool done)
{
	(void)done;
	pair_leave(pair, false);
}

static void repair_got(struct pair *pair, bool both)
{
	const struct pair_side *sides = pair->sides;
	unsigned y = pair->failed == PAIR_FIRST;
	bool alone = pair->call.role.settled && sides[y].has && pair->failed != PAIR_BOTH &&
		pair_believed(pair, y);

	if (sides[0].foreign || sides[1].foreign) {
		pair_leave(pair, false);
	} else if (!both && !alone && !pair->asker && pair->failed != PAIR_BOTH) {
		/* It may lack words; its absence must not end before they are repaired. */
		pair_absent(pair, pair->failed >> 1, repair_lost);
	} else if (!both && !alone) {
		pair_leave(pair, false);
	} else if (both && !pair_is_whole(pair)) {
		gone_lose(pair, repair_lost);
	} else if (!sides[0].has && !sides[1].has) {
		pair_leave(pair, true);
	} else if (!both) {
		pair_absent(pair, pair->failed >> 1, repair_absent);
	} else if (!gone_not_yet(pair)) {
		repair_absent(pair, true);
	}
}

/*
 * A copy that is closed is the better one. So the other one must not be believed any more. If only
 * one copy was read, it is closed up to twice as long ago: another proxy may have read both, and
 * have rewritten only the other one so far.
 */
static void repair_absent(struct pair *pair, bool done)
{
	uint64_t margin = pair->failed ? 2 * pair->copies->settled : pair->copies->settled;

	if (done)
		pair_join_sides(pair, stamp_before(pair->began, margin), 0, repair_joined);
	else
		pair_leave(pair, false);
}

static void add_refs_of_copy(struct slice base, struct buf *out)
{
	struct copy copy;

	if (copy_parse(base, &copy))
		lease_add_refs(copy.closed, out);
}

/* Returns whether a copy that is there refers to the same parts. */
static bool has_same_parts(const struct pair *pair, unsigned copy, struct slice refs)
{
	struct buf own = BUF_EMPTY;
	bool same;

	if (pair->sides[copy].has)
		lease_add_refs(pair->sides[copy].copy.closed, &own);
	same = pair->sides[copy].has && slice_equal(buf_slice(&own), refs);
	buf_free(&own);
	return same;
}

static void repair_joined(struct pair *pair, bool done)
{
	struct buf refs = BUF_EMPTY;
	struct slice all;

	if (!done) {
		pair_leave(pair, false);
		return;
	}
	if (pair_has_expired(pair)) {
		remove_copies(pair);
		return;
	}
	buf_consume(&pair->next, buf_size(&pair->next));
	buf_add_slice(&pair->next, buf_slice(&pair->join.out));
	if (pair_outlives_date(pair, !pair->sides[0].has, buf_slice(&pair->next)))
		copy_add_group(&pair->next, pair_stamp(pair), false, SLICE("~t0 "));
	add_refs_of_copy(buf_slice(&pair->next), &refs);
	all = buf_slice(&refs);
	if (all.n && !pair->failed &&
		(pair->checks || pair_may_lack_parts(pair) || !has_same_parts(pair, 0, all) ||
			!has_same_parts(pair, 1, all)))
		refill_start(pair, all, repair_on_refilled);
	else
		write_copies(pair);
	buf_free(&refs);
}

/* A part that both lack: if no base was replaced meanwhile, the set is lost. */
static void repair_on_refilled(struct pair *pair, enum refilled outcome)
{
	if (outcome == REFILL_DONE) {
		write_copies(pair);
	} else if (outcome == REFILL_LOST) {
		pair->began = pair_token(pair) ^ pair_second_token(pair);
		pair_get(pair, repair_seen_again);
	} else {
		pair_leave(pair, false);
	}
}

static void repair_seen_again(struct pair *pair, bool both)
{
	if (both && pair->began == (pair_token(pair) ^ pair_second_token(pair)))
		gone_lose(pair, repair_lost);
	else
		pair_leave(pair, false);
}

/* Returns the base that is joined, with this fill. */
static void add_with_fill(struct buf *out, struct slice base, uint64_t fill)
{
	struct copy copy;

	if (!copy_parse(base, &copy))
		return;
	copy.fill = fill;
	copy_add_closed(out, &copy);
	copy_end_closed(out, &copy);
	buf_add_slice(out, copy.log);
}

/* Stores the exptime of a copy. Returns false if the set is about to expire. */
static bool find_exptime(const struct pair *pair, unsigned copy, int64_t *exptime)
{
	const struct rules *rules = pair->copies->options.env->rules;
	const struct pair_side *side = &pair->sides[pair->sides[copy].has ? copy : 1 - copy];

	/* A copy that is gone does not expire: words may have created the set in it. */
	if (!pair->exists || side->copy.gone) {
		*exptime = pair->exists ? rules_collection(rules, pair->call.key)->ttl : 0;
		return true;
	}
	return ttl_exptime(pair->copies->options.env, side->ttl, exptime) && side->ttl != 1;
}

/*
 * A copy that is missing is added with the time of that. It keeps it until words from before are
 * settled: then each is in the other copy, or its absence is known.
 */
static void write_one_copy(struct pair *pair, unsigned copy)
{
	bool both = pair->sides[0].has && pair->sides[1].has;
	const struct pair_side *side = &pair->sides[copy];
	uint64_t settled = stamp_before(pair->began, pair->copies->settled), fill;
	struct buf next = BUF_EMPTY;
	int64_t exptime;

	if (pair->failed & 1u << copy || (!side->has && pair->failed))
		return;
	fill = side->has ? side->copy.fill : pair_stamp(pair);
	if (both && fill < settled)
		fill = 0;
	add_with_fill(&next, buf_slice(&pair->next), fill);
	if ((!side->has || !slice_equal(buf_slice(&next), buf_slice(&side->value))) &&
		find_exptime(pair, copy, &exptime)) {
		pair->written |= 1u << copy;
		pair_write(pair, copy, buf_slice(&next), exptime);
		/* It cannot be believed alone until its horizon reaches its fill. */
		if (!side->has && pair->exists)
			repairs_add(pair->copies->repairs, pair->call.key, REPAIR_BASE);
	}
	buf_free(&next);
}

/*
 * Returns whether no word from before the deletion can be on its way any more. Both copies were
 * read, and the pair is whole, so no server can have words that create the set.
 */
static bool is_long_gone(const struct pair *pair)
{
	uint64_t old = stamp_before(pair->began, 2 * pair->copies->settled);

	if (pair->exists || pair->failed)
		return false;
	for (unsigned y = 0; y < 2; y++) {
		if (pair->sides[y].has && pair->sides[y].copy.horizon >= old)
			return false;
	}
	return true;
}

static void remove_copy(struct pair *pair, unsigned copy)
{
	pair->written |= 1u << copy;
	pair_store(pair, copy, SLICE(""), 0, -1);
}

/* After one that has expired, nothing is repaired. */
static void repair_removed(struct pair *pair)
{
	if (pair->exists)
		pair_leave(pair, false);
	else
		repair_written(pair);
}

static void repair_first_removed(struct pair *pair)
{
	if (!pair->sides[1].has || pair->written & ~pair->stored) {
		repair_removed(pair);
		return;
	}
	remove_copy(pair, 1);
	pair_wait(pair, repair_removed);
}

/*
 * Deletes the copies of a set that is gone, or has expired. The first one decides: if it has become
 * another set, that needs the second one.
 */
static void remove_copies(struct pair *pair)
{
	pair->written = 0;
	if (!pair->sides[0].has) {
		repair_first_removed(pair);
		return;
	}
	remove_copy(pair, 0);
	pair_wait(pair, repair_first_removed);
}

/* Returns whether the base may refer to parts, and passes an absence that a copy has not. */
static bool covers_parts(const struct pair *pair, const struct copy *next)
{
	return copy_may_have_parts(next) && pair_may_lack_parts(pair) &&
		next->horizon >= absences_latest(pair->copies->absences);
}

/*
 * Returns whether both copies are the join already, except for a horizon that nothing needs. Then
 * they are not rewritten: two proxies that use the set would only make each other repeat that.
 */
static bool is_same(const struct pair *pair, const struct copy *next)
{
	if (covers_parts(pair, next))
		return false;
	for (unsigned y = 0; y < 2; y++) {
		const struct pair_side *side = &pair->sides[y];
		if (!side->has || side->copy.fill || side->copy.gone != next->gone ||
			side->copy.horizon != pair->sides[0].copy.horizon ||
			!slice_equal(side->copy.closed, next->closed) ||
			!slice_equal(side->copy.log, next->log) || !pair_believed(pair, y))
			return false;
	}
	return true;
}

/*
 * Returns whether either copy can be believed without the other: its horizon has reached its fill,
 * and the last absence of its server, or of any server if the set may have parts. Until then, the
 * set is lost with the other server.
 */
static bool is_believed(const struct pair *pair)
{
	struct copy next;

	for (unsigned y = 0; y < 2; y++) {
		/* One that was missing has just got its fill. */
		if (!pair->sides[y].has || pair->sides[y].copy.fill > pair->horizon ||
			pair_absence(pair, y) > pair->horizon)
			return false;
	}
	return !copy_parse(buf_slice(&pair->next), &next) || !copy_may_have_parts(&next) ||
		pair->horizon >= absences_latest(pair->copies->absences);
}

/* In the background, a set that is gone is repaired until its copies are deleted. */
static void repair_end(struct pair *pair, bool done)
{
	pair_leave(pair,
		done && (pair->asker || (pair->exists ? is_believed(pair) : is_long_gone(pair))));
}

static void write_copies(struct pair *pair)
{
	struct copy next;

	if (!copy_parse(buf_slice(&pair->next), &next)) {
		pair_leave(pair, false);
		return;
	}
	pair->horizon = next.horizon;
	pair->written = 0;
	if (is_long_gone(pair)) {
		remove_copies(pair);
		return;
	}
	if (is_same(pair, &next)) {
		pair->horizon = pair->sides[0].copy.horizon;
		repair_end(pair, true);
		return;
	}
	write_one_copy(pair, 0);
	if (pair->pending)
		pair_wait(pair, repair_first_written);
	else
		repair_first_written(pair);
}

/*
 * The first copy decides, as in a rewrite. If another write of it was faster, the second one must
 * not get a larger horizon: that would undo a rewrite.
 */
static void repair_first_written(struct pair *pair)
{
	if (pair->written & ~pair->stored) {
		repair_end(pair, false);
		return;
	}
	write_one_copy(pair, 1);
	if (pair->pending)
		pair_wait(pair, repair_written);
	else
		repair_written(pair);
}

/* A compaction closes equal copies further, which is no repair. */
static bool repairs_difference(const struct pair *pair)
{
	const struct pair_side *a = &pair->sides[0], *b = &pair->sides[1];

	return !pair->call.role.settled || !a->has || !b->has || a->copy.horizon != b->copy.horizon;
}

static void repair_written(struct pair *pair)
{
	bool done = (pair->stored & pair->written) == pair->written;

	pair->copies->stats.repairs +=
		done && pair->written && pair->exists && repairs_difference(pair);
	repair_end(pair, done);
}
