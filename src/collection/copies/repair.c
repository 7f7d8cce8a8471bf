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
#include <stdlib.h>
#include <string.h>

#include "collection/copies/pair.h"
#include "collection/copies/refill.h"
#include "collection/text/date.h"
#include "collection/text/lease.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "util/alloc.h"
#include "util/hash.h"

static pair_step repair_make_gone, repair_made_gone, repair_leave_failed, repair_first_written,
	repair_written;

/* --- losing a set --- */

struct slice pair_gone(struct pair *pair, uint64_t horizon)
{
	struct copy copy = { .horizon = horizon, .gone = true };

	buf_consume(&pair->next, buf_size(&pair->next));
	copy_add_closed(&pair->next, &copy);
	copy_end_closed(&pair->next, &copy);
	return buf_slice(&pair->next);
}

uint64_t pair_gone_horizon(struct pair *pair)
{
	uint64_t now = pair_stamp(pair), before = stamp_before(now, 2 * ABSENCE_SKEW_MS);

	if (pair->failed)
		return now;
	return before > pair->largest ? before : pair->largest;
}

static void repair_leave_failed(struct pair *pair)
{
	pair_leave(pair, false);
}

/*
 * Returns the time at which a base was created, by words or a lease, that has not been closed yet:
 * see add_created in word.c and whole_horizon in rewrite.c. Of any other one, an earlier time.
 */
static uint64_t created_at(const struct pair *pair, const struct copy *copy)
{
	uint64_t settled = stamp_at(pair->copies->settled);
	struct lease_base lease;

	if (copy->gone)
		return copy->horizon + settled;
	return lease_split(copy->closed, &lease) ? copy->horizon + settled / 4 : 0;
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

	return first->has && !pair->sides[1].has && began <= now + stamp_at(ABSENCE_SKEW_MS) &&
		began + stamp_at(2 * copies->options.timeout) > now;
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
	enum { MARGIN = 2 /* seconds, of clocks that differ */, LATE = 10 /* seconds */ };
	int64_t now = env_server_time(pair->copies->options.env, pair->call.key), date;
	bool loses = !pair->sides[0].has && !pair->sides[1].has;

	for (unsigned y = 0; y < 2; y++) {
		if (!pair->sides[y].has)
			continue;
		date = date_last(buf_slice(&pair->sides[y].value));
		if (date > 0 && date <= now + MARGIN && date + LATE > now)
			return false;
		loses |= is_of_set(&pair->sides[y].copy);
	}
	return loses;
}

/*
 * A copy that is missing is made gone first: the two were read one after the other, and the set may
 * have been created between.
 */
void pair_lose(struct pair *pair, pair_after *after)
{
	unsigned missing = pair->sides[0].has;
	struct slice gone;

	pair_enter(pair, after);
	if (is_being_created(pair)) {
		pair_sleep(
			pair, (unsigned)(pair->copies->options.timeout / 2), repair_leave_failed);
		return;
	}
	gone = pair_gone(pair, pair_gone_horizon(pair));
	if (pair->sides[missing].has) {
		repair_make_gone(pair);
		return;
	}
	pair->written = 1u << missing;
	pair_write(pair, missing, gone, 0);
	pair_wait(pair, repair_made_gone);
}

static void repair_made_gone(struct pair *pair)
{
	if (pair->stored & pair->written)
		repair_make_gone(pair);
	else
		pair_leave(pair, false);
}

/* If other writes of both copies were faster, it is another set, or a whole one, since then. */
static void repair_all_gone(struct pair *pair)
{
	bool both = pair->sides[0].has && pair->sides[1].has, lost = !both || pair->stored;

	pair->copies->stats.incomplete += lost && is_loss(pair);
	repairs_add(pair->copies, pair->call.key, REPAIR_BASE);
	pair_leave(pair, lost);
}

static void repair_make_gone(struct pair *pair)
{
	for (unsigned y = 0; y < 2; y++) {
		if (pair->sides[y].has)
			pair_write(pair, y, buf_slice(&pair->next), 0);
	}
	pair_wait(pair, repair_all_gone);
}

/* --- repair --- */

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
		pair_lose(pair, repair_lost);
	} else if (!sides[0].has && !sides[1].has) {
		pair_leave(pair, true);
	} else if (both && is_being_created(pair)) {
		pair_sleep(
			pair, (unsigned)(pair->copies->options.timeout / 2), repair_leave_failed);
	} else if (!both) {
		pair_absent(pair, pair->failed >> 1, repair_absent);
	} else {
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
		pair_lose(pair, repair_lost);
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
			repairs_add(pair->copies, pair->call.key, REPAIR_BASE);
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
	pair_send(pair, copy,
		(struct call){ .verb = CALL_CAS,
			.exptime = -1,
			.number = pair->sides[copy].cas,
			.connection = pair->sides[copy].connection });
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

/* --- in the background --- */

enum {
	REPAIRS_MAX = 16384, /* sets that are to be repaired */
	REPAIRS_AT_ONCE = 4,
	REPAIR_BUCKETS = 1024,
	REPAIR_PAUSE_MAX = 15000 /* milliseconds between two attempts: less than `repaired` */
};

struct repair {
	TAILQ_ENTRY(repair) link;
	LIST_ENTRY(repair) same; /* in the same bucket */
	struct repairs *repairs;
	struct pair *pair; /* in progress; NULL while it waits */
	uint64_t due;      /* milliseconds of env.now */
	unsigned pause;
	enum repair_kind kind;
	bool again;
	size_t n;
	char key[];
};

struct repairs {
	struct copies *copies;
	TAILQ_HEAD(, repair) queue; /* in the order in which they were added or have failed */
	LIST_HEAD(, repair) buckets[REPAIR_BUCKETS];
	struct waiter timer;
	size_t count, running;
	bool timed;
};

static void run_repairs(struct repairs *repairs);

struct repairs *repairs_create(struct copies *copies)
{
	struct repairs *repairs = xcalloc(1, sizeof(*repairs));

	repairs->copies = copies;
	TAILQ_INIT(&repairs->queue);
	return repairs;
}

static void remove_repair(struct repair *repair)
{
	TAILQ_REMOVE(&repair->repairs->queue, repair, link);
	LIST_REMOVE(repair, same);
	repair->repairs->count--;
	free(repair);
}

void repairs_destroy(struct repairs *repairs)
{
	struct repair *repair;

	while ((repair = TAILQ_FIRST(&repairs->queue)))
		remove_repair(repair);
	free(repairs);
}

bool repairs_idle(const struct repairs *repairs)
{
	return repairs->running == 0 && !repairs->timed;
}

size_t repairs_count(const struct repairs *repairs)
{
	return repairs->count;
}

static void repair_on_timer(struct waiter *waiter, const struct result *r)
{
	struct repairs *repairs =
		(struct repairs *)((char *)waiter - offsetof(struct repairs, timer));

	(void)r;
	repairs->timed = false;
	run_repairs(repairs);
}

static void wait_for_next(struct repairs *repairs)
{
	enum { PAUSE = 200 };
	struct env *env = repairs->copies->options.env;

	if (repairs->timed || repairs->copies->stopped || !env->later ||
		TAILQ_EMPTY(&repairs->queue))
		return;
	repairs->timed = true;
	repairs->timer.done = repair_on_timer;
	env->later(env, &repairs->timer, PAUSE);
}

/* A set that could not be repaired is tried again, less and less often. */
static void repair_ended(struct pair *pair, bool done)
{
	struct repairs *repairs = pair->copies->repairs;
	struct repair *repair = TAILQ_FIRST(&repairs->queue);

	while (repair->pair != pair)
		repair = TAILQ_NEXT(repair, link);
	repairs->running--;
	repair->pair = NULL;
	if (done && !repair->again) {
		remove_repair(repair);
	} else {
		unsigned least = (unsigned)repairs->copies->settled / 2;
		repair->pause = done ? 0 : repair->pause * 2;
		if (repair->pause < least)
			repair->pause = least;
		if (repair->pause > REPAIR_PAUSE_MAX)
			repair->pause = REPAIR_PAUSE_MAX;
		repair->again = false;
		repair->due = repairs->copies->options.env->now + repair->pause;
		TAILQ_REMOVE(&repairs->queue, repair, link);
		TAILQ_INSERT_TAIL(&repairs->queue, repair, link);
	}
	pair_end_as(pair, RESULT_DONE);
	run_repairs(repairs);
}

static void start_repair(struct repair *repair)
{
	struct repairs *repairs = repair->repairs;
	const struct call call = { .verb = CALL_GET, .key = slice_of(repair->key, repair->n) };

	repairs->running++;
	repair->pair = pair_create(repairs->copies, &call, NULL);
	repair->pair->checks = repair->kind == REPAIR_PARTS;
	repair->pair->call.role.copied = repair->kind == REPAIR_COUNTER;
	if (repair->kind == REPAIR_COUNTER)
		counter_repair(repair->pair, repair_ended);
	else
		pair_repair(repair->pair, repair_ended);
}

static void run_repairs(struct repairs *repairs)
{
	uint64_t now = repairs->copies->options.env->now;
	struct repair *repair, *next;

	for (repair = TAILQ_FIRST(&repairs->queue);
		repair && repairs->running < REPAIRS_AT_ONCE && !repairs->copies->stopped;
		repair = next) {
		next = TAILQ_NEXT(repair, link);
		if (!repair->pair && repair->due <= now)
			start_repair(repair);
	}
	wait_for_next(repairs);
}

bool repairs_add(struct copies *copies, struct slice key, enum repair_kind kind)
{
	struct repairs *repairs = copies->repairs;
	struct repair *repair;
	uint64_t hash;

	key = part_key_first_base(key);
	hash = hash_key(key, copies->options.env->seed);
	LIST_FOREACH(repair, &repairs->buckets[hash % REPAIR_BUCKETS], same) {
		if (slice_equal(slice_of(repair->key, repair->n), key)) {
			if (kind > repair->kind)
				repair->kind = kind;
			repair->again = repair->pair != NULL;
			return true;
		}
	}
	if (repairs->count >= REPAIRS_MAX || copies->stopped)
		return false;
	repair = xcalloc(1, sizeof(*repair) + key.n);
	repair->repairs = repairs;
	repair->kind = kind;
	repair->n = key.n;
	memcpy(repair->key, key.p, key.n);
	repair->due = copies->options.env->now + copies->options.timeout;
	TAILQ_INSERT_TAIL(&repairs->queue, repair, link);
	LIST_INSERT_HEAD(&repairs->buckets[hash % REPAIR_BUCKETS], repair, same);
	repairs->count++;
	wait_for_next(repairs);
	return true;
}
