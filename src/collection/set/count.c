#include "collection/set/count.h"

#include "collection/set/moment.h"
#include "collection/set/walk.h"
#include "util/alloc.h"

/* Members that are compared in one step of work. */
enum { COMPARED = 8 };

static const struct set_range everything;

/* Returns whether a member is below a range (-1), in it (0) or above it (1). */
static int side_of(const struct set_range *range, struct slice member)
{
	int order = member_compare(member, range->from);

	if (order < 0 || (order == 0 && range->after))
		return -1;
	return is_above(range, member);
}

/* --- the runs --- */

/*
 * A table is not in memory. The count continues after it, only to note all other missing
 * tables. Once they are loaded, the count restarts at this place.
 */
static void note_want(struct set_counting *c)
{
	if (!c->wanted)
		c->redo = c->at;
	c->wanted = true;
}

/* Restarts the count at the first missing table. */
static bool redo(struct set_counting *c)
{
	c->at = c->redo;
	c->wanted = false;
	return false;
}

static void next_run(struct set_counting *c)
{
	c->at = (struct set_place){ .run = c->at.run + 1, .sum = c->at.sum };
}

/*
 * Stores the number of entries of a run below a bound or, if `through`, at most equal to it.
 * False if a part is wanted.
 */
static bool rank_in_run(
	struct set_view *v, size_t run, struct slice bound, bool through, uint64_t *out)
{
	size_t number = set_view_table_of(v, run, bound);
	const struct table *table = number == SIZE_MAX ? NULL : set_view_table(v, run, number);
	struct table_cursor cursor;

	if (!table)
		return false;
	*out = v->runs[run].ref.indexed ? set_view_index(v, run)->list[number].before : 0;
	if (table_seek(&cursor, table, bound) && through &&
		slice_equal(table_member(&cursor), bound))
		++*out;
	*out += cursor.at;
	return true;
}

static void count_oldest(struct set_view *v, const struct set_range *range, struct set_counting *c)
{
	uint64_t from = 0, to = v->runs[0].ref.entries;
	bool there = true;

	if (range->from.n)
		there = rank_in_run(v, 0, range->from, range->after, &from);
	if (range->has_to)
		there &= rank_in_run(v, 0, range->to, true, &to);
	if (!there)
		note_want(c);
	c->at.sum += to > from ? (int64_t)(to - from) : 0;
}

/* Counts by how much an entry changes the number of members of the layers below. */
static void count_entry(
	struct set_view *v, const struct table_cursor *entry, struct set_counting *c)
{
	enum set_found below = set_view_below(v, c->at.run, table_member(entry));

	if (below == SET_WANTED)
		note_want(c);
	else
		c->at.sum +=
			below == SET_IN ? -table_gone(entry, v->now) : !table_gone(entry, v->now);
}

enum counted { COUNTED, COUNTED_TO_THE_END, COUNTED_SLICE };

static enum counted count_table(struct set_view *v, const struct table *table,
	const struct set_range *range, struct set_counting *c)
{
	struct table_cursor cursor;
	bool more = c->at.entry ? table_nth(&cursor, table, c->at.entry)
				: table_seek(&cursor, table, range->from);

	for (; more; more = table_next(&cursor)) {
		int side = side_of(range, table_member(&cursor));
		if (side > 0)
			return COUNTED_TO_THE_END;
		c->at.entry = cursor.at;
		if (side == 0)
			count_entry(v, &cursor, c);
		c->at.entry++;
		if (set_view_is_over(v, LOOKUP_STEPS))
			return COUNTED_SLICE;
	}
	return COUNTED;
}

/*
 * Counts by how much a run changes the number of members of a range in the layers below. False
 * if the slice is over.
 */
static bool count_run(struct set_view *v, const struct set_range *range, struct set_counting *c)
{
	size_t run = c->at.run, first = set_view_table_of(v, run, range->from);
	const struct fences *fences =
		first != SIZE_MAX && v->runs[run].ref.indexed ? set_view_index(v, run) : NULL;

	if (first == SIZE_MAX) {
		note_want(c);
		return true;
	}
	if (c->at.table < first)
		c->at.table = first;
	for (; c->at.table < v->runs[run].ref.tables; c->at.table++, c->at.entry = 0) {
		const struct table *table;
		enum counted counted;
		if (fences && range->has_to &&
			member_compare(fences->list[c->at.table].first, range->to) > 0)
			break;
		table = set_view_table(v, run, c->at.table);
		if (!table) {
			note_want(c);
			continue;
		}
		counted = count_table(v, table, range, c);
		if (counted != COUNTED)
			return counted == COUNTED_TO_THE_END;
	}
	return true;
}

static int64_t count_head(const struct set_view *v, const struct set_range *range)
{
	int64_t count = 0;

	for (size_t i = 0; i < v->head.member_count; i++) {
		const struct fold_member *m = &v->head.members[i];
		count += m->live && side_of(range, slice_of(m->p, m->n)) == 0;
	}
	return count;
}

/* Counts the layers below the overlay, except for wanted tables. False if the slice is over. */
static bool count_runs(struct set_view *v, const struct set_range *range, struct set_counting *c)
{
	for (; c->at.run < v->run_count; next_run(c)) {
		if (c->at.run == 0 && v->head.member_count == 0 &&
			v->runs[0].ref.removals + v->runs[0].ref.dated == 0)
			count_oldest(v, range, c);
		else if (!count_run(v, range, c))
			return false;
	}
	return true;
}

/* --- the overlay --- */

enum { BELOW_UNKNOWN, BELOW_OUT, BELOW_IN };

/* Looks up a member of the overlay in the layers below, once. */
static bool note_below(struct set_view *v, size_t i)
{
	const struct fold_member *m = &v->overlay.members[i];
	enum set_found found = set_view_below(v, v->run_count, slice_of(m->p, m->n));

	if (found != SET_WANTED)
		v->below[i] = found == SET_IN ? BELOW_IN : BELOW_OUT;
	return found != SET_WANTED;
}

static void make_below(struct set_view *v)
{
	if (v->below_size >= v->overlay.member_count && v->below)
		return;
	v->below = xrealloc(v->below, v->overlay.member_capacity + 1);
	memset(v->below + v->below_size, BELOW_UNKNOWN, v->overlay.member_capacity - v->below_size);
	v->below_size = v->overlay.member_capacity;
}

static bool is_in(const struct set_range *range, const struct fold_member *m)
{
	return range == &everything || side_of(range, slice_of(m->p, m->n)) == 0;
}

/* False if a part is wanted, or the slice is over; the results of lookups are kept. */
static bool count_overlay(struct set_view *v, const struct set_range *range, int64_t *out)
{
	bool there = true;

	*out = 0;
	make_below(v);
	for (size_t i = 0; i < v->overlay.member_count; i++) {
		const struct fold_member *m = &v->overlay.members[i];
		if (!is_in(range, m))
			continue;
		if (v->below[i] == BELOW_UNKNOWN) {
			there &= note_below(v, i);
			if (there && set_view_is_over(v, LOOKUP_STEPS))
				return false;
		}
		*out += (m->live && v->below[i] != BELOW_IN) -
			(!m->live && v->below[i] == BELOW_IN);
	}
	return there;
}

/* --- all members --- */

/*
 * Counts all members without the overlay by walking, if the newer runs have too many
 * entries for lookups.
 */
static bool walk_runs(struct set_view *v)
{
	struct set_range range = { .from = buf_slice(&v->walked),
		.after = buf_size(&v->walked) > 0 };
	char last[MEMBER_WORD_MAX];
	struct walk walk;
	struct slice member = slice_of(last, 0);
	enum walk_step step = WALK_WANTED;

	if (walk_begin(&walk, v, &range, 0, false)) {
		while ((step = walk_next(&walk, &member)) == WALK_MEMBER) {
			v->walked_members++;
			if (set_view_is_over(v, WALK_STEPS))
				break;
		}
	}
	if (step == WALK_MEMBER) {
		memcpy(last, member.p, member.n);
		buf_consume(&v->walked, buf_size(&v->walked));
		buf_add(&v->walked, last, member.n);
	}
	walk_end(&walk);
	return step == WALK_END;
}

static bool too_much_to_look_up(const struct set_view *v)
{
	enum { PART = 8 };
	uint64_t entries = 0, more = 0;

	for (size_t i = 0; i < v->run_count; i++) {
		entries += v->runs[i].ref.entries;
		more += i >= v->counted_runs && i > 0 ? v->runs[i].ref.entries : 0;
	}
	return more > entries / PART;
}

/*
 * Counts the members without the overlay. The view keeps the number of members of the
 * oldest runs.
 */
static bool count_below(struct set_view *v, struct set_counting *c)
{
	if (v->counted_runs == 0 && v->run_count) {
		uint64_t expired;
		if (!set_view_expired(v, 0, &expired))
			return false;
		v->counted_runs = 1;
		v->counted = v->runs[0].ref.entries - v->runs[0].ref.removals - expired;
	}
	if (too_much_to_look_up(v)) {
		if (!walk_runs(v))
			return false;
		v->counted = v->walked_members;
		v->counted_runs = v->run_count;
		set_view_end_walk(v);
	}
	for (; v->counted_runs < v->run_count; v->counted_runs++) {
		if (c->at.run != v->counted_runs)
			*c = (struct set_counting){ .version = v->version,
				.at = { .run = v->counted_runs } };
		if (!count_run(v, &everything, c))
			return false;
		if (c->wanted)
			return redo(c);
		v->counted += (uint64_t)c->at.sum;
	}
	return true;
}

/* Restarts the count if the set has changed. */
static struct set_counting *counting(const struct set_view *v, struct set_request *r)
{
	if (r->counting.version != v->version)
		r->counting = (struct set_counting){ .version = v->version };
	return &r->counting;
}

static bool count_layers(
	struct set_view *v, const struct set_range *range, struct set_counting *c, uint64_t *out)
{
	int64_t overlay;
	bool there;

	if (!count_runs(v, range, c))
		return false;
	there = count_overlay(v, range, &overlay);
	if (c->wanted)
		return redo(c);
	*out = (uint64_t)(c->at.sum + overlay + count_head(v, range));
	return there;
}

bool count_all(struct set_view *v, struct set_request *r, uint64_t *out)
{
	struct set_counting *c;
	int64_t overlay;

	if (v->run_count == 0 && v->head.member_count == 0) {
		*out = v->overlay.live;
		return true;
	}
	c = counting(v, r);
	if (v->head.member_count)
		return count_layers(v, &everything, c, out);
	if (!count_below(v, c) || !count_overlay(v, &everything, &overlay))
		return false;
	*out = v->counted + (uint64_t)overlay;
	return true;
}

bool count_range(struct set_view *v, struct set_request *r, uint64_t *out)
{
	set_view_spend(v, (v->head.member_count + v->overlay.member_count) / COMPARED);
	return count_layers(v, &r->range, counting(v, r), out);
}
