/*
 * Two lists of signed words, `X.a` and `X.b`, one of them active: `X.active` names it, or without that pointer the inactive
 * one begins with `^`. Writers append to the active list; readers fold the inactive one first and the active one over it.
 *
 * A compaction flips first and moves then, so that it never writes over what others still append to:
 *
 *     the inactive list holds but the guard, with the active one's time to live -> flip: writers now append to it
 *     -> CAS a seal behind the other one -> CAS what both lists come to into the active one -> CAS the other one empty
 *
 * Guard and seal are a removal of a member that there is not, `-^`. While it stands at the head of the active list the other one has
 * words that were not moved yet, and must be there: else a part of the set has been evicted.
 *
 * Each step leaves both lists together saying the same, so a crash between any two of them loses nothing; the next compaction
 * goes on. A writer looks behind its append whether it went to the list that is active still, and else repeats it there.
 */
#include <assert.h>

#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"

enum { LIST_A, LIST_B, POINTER };

struct lists {
	struct snapshot_item *pointer;
	struct snapshot_item *active, *inactive;
	bool unmarked; /* none is active by its mark: the flip is half done, and `active` is to be */
};

static const struct slice guard = { "-^", 2 };
static const struct slice suffixes[] = { { ".a", 2 }, { ".b", 2 }, { ".active", 7 } };

static void add(struct snapshot *s, int role, bool asked)
{
	if (!snapshot_find(s, role))
		snapshot_add(s, role, s->key, SLICE(""), suffixes[role], asked)->pivot = role == POINTER;
}

/* Which list the pointer names, by its full name or by its letter; -1 for none. */
static int named(const struct snapshot *s, const struct snapshot_item *pointer)
{
	struct slice value = snapshot_item_value(pointer);

	for (int role = LIST_A; role <= LIST_B; role++) {
		if (slice_equal(value, slice_skip(suffixes[role], 1)))
			return role;
		if (value.n == s->key.n + suffixes[role].n && slice_starts(value, s->key) &&
			slice_equal(slice_skip(value, s->key.n), suffixes[role]))
			return role;
	}
	return -1;
}

static bool is_marked(const struct snapshot_item *list)
{
	struct slice value = snapshot_item_value(list);

	return value.n && value.p[0] == '^';
}

/* What a list says, without its mark. */
static struct slice words(const struct snapshot_item *list)
{
	return slice_skip(snapshot_item_value(list), is_marked(list));
}

static bool has_words(const struct snapshot_item *list)
{
	struct slice said = words(list);

	return said.n && !slice_equal(said, guard);
}

/* The list that is not active is gone, and not all that it said was moved. */
static bool is_torn(const struct lists *l)
{
	return slice_starts(words(l->active), guard) && !l->inactive->there;
}

static void name_with_pointer(struct snapshot *s)
{
	struct snapshot_item *pointer = snapshot_find(s, POINTER);
	int role;

	add(s, POINTER, false);
	if (s->purpose == FOR_CHECK)
		return;
	if (s->purpose == FOR_WRITE) {
		role = pointer ? named(s, pointer) : -1;
		if (role >= 0)
			add(s, role, true);
		return;
	}
	add(s, LIST_A, false);
	add(s, LIST_B, false);
}

/* Without the pointer nobody can say which list is the one to believe. */
static enum adopted_status find_by_pointer(const struct snapshot *s, struct lists *l)
{
	struct snapshot_item *a = snapshot_find(s, LIST_A), *b = snapshot_find(s, LIST_B);
	int role = LIST_A;

	l->pointer = snapshot_find(s, POINTER);
	/* A list with a mark is kept without a pointer: the rule is wrong, which is no reason to clear anything away. */
	if (is_marked(a) || is_marked(b))
		return ADOPTED_CORRUPT;
	if (l->pointer->there) {
		role = named(s, l->pointer);
		if (role < 0)
			return ADOPTED_CORRUPT;
	}
	l->active = role == LIST_A ? a : b;
	l->inactive = role == LIST_A ? b : a;
	if (!l->active->there || !l->pointer->there)
		return has_words(a) || has_words(b) ? ADOPTED_LOST : ADOPTED_MISSING;
	return is_torn(l) ? ADOPTED_LOST : ADOPTED_OK;
}

/* With both marked a flip is half done, to the one with the guard, or to the shorter one; with none marked, words decide. */
static bool is_newer(const struct snapshot_item *list, const struct snapshot_item *other)
{
	bool guarded = slice_starts(words(list), guard), other_guarded = slice_starts(words(other), guard);

	if (!is_marked(list))
		return has_words(list) || !has_words(other);
	return guarded == other_guarded ? words(list).n <= words(other).n : guarded;
}

static enum adopted_status find_by_mark(const struct snapshot *s, struct lists *l)
{
	struct snapshot_item *a = snapshot_find(s, LIST_A), *b = snapshot_find(s, LIST_B);
	bool is_a = !is_marked(a) && a->there, is_b = !is_marked(b) && b->there;

	if (is_a && is_b && has_words(a) && has_words(b))
		return ADOPTED_CORRUPT;
	bool choose_a = is_a == is_b ? is_newer(a, b) : is_a;
	l->active = choose_a ? a : b;
	l->inactive = choose_a ? b : a;
	l->unmarked = is_marked(a) && is_marked(b);
	if (l->unmarked || (l->active->there && !is_marked(l->active)))
		return is_torn(l) ? ADOPTED_LOST : ADOPTED_OK;
	if (has_words(a) || has_words(b))
		return ADOPTED_LOST;
	/* All who make a new one must write the same list. */
	l->active = a;
	l->inactive = b;
	return ADOPTED_MISSING;
}

static enum adopted_status find(const struct snapshot *s, struct lists *l)
{
	*l = (struct lists){ 0 };
	return s->rule->pointer ? find_by_pointer(s, l) : find_by_mark(s, l);
}

static void name_items(struct snapshot *s)
{
	if (s->rule->pointer) {
		name_with_pointer(s);
	} else {
		add(s, LIST_A, false);
		add(s, LIST_B, false);
	}
}

static enum adopted_status fold(const struct snapshot *s, struct fold *out)
{
	struct lists l;
	enum adopted_status status = find(s, &l);

	if (status != ADOPTED_OK)
		return status;
	return signed_fold(out, words(l.inactive)) && signed_fold(out, words(l.active)) ? ADOPTED_OK : ADOPTED_CORRUPT;
}

static const struct snapshot_item *main_item(const struct snapshot *s)
{
	struct lists l;

	(void)find(s, &l);
	return l.active;
}

static void point_to(const struct snapshot *s, struct snapshot_item *pointer, const struct snapshot_item *list,
	const struct snapshot_item *like, struct plan *plan)
{
	struct buf *value = plan_add(plan, pointer->there ? CALL_CAS : CALL_ADD, pointer, like);
	struct slice suffix = suffixes[list->role];

	/* In the way in which it was written before. */
	if (pointer->there && snapshot_item_value(pointer).n == 1) {
		buf_add_slice(value, slice_skip(suffix, 1));
	} else {
		buf_add_slice(value, s->key);
		buf_add_slice(value, suffix);
	}
}

static void unmark(const struct lists *l, struct plan *plan)
{
	buf_add_slice(plan_rewrite(plan, l->active), words(l->active));
	plan->again = true;
}

static void plan_change(struct snapshot *s, const struct lists *l, struct plan *plan)
{
	if (l->unmarked) {
		unmark(l, plan);
		return;
	}
	signed_encode(s->change, true, plan_add(plan, CALL_APPEND, l->active, NULL));
	plan->check = true;
}

/*
 * A new pointer comes before the words: those that nothing points to are what is left of a set that was lost. One that is there
 * comes after them, for its time to live, and to make sure that it is still what it was.
 */
static void plan_creation(struct snapshot *s, const struct lists *l, struct plan *plan)
{
	if (l->pointer && !l->pointer->there)
		point_to(s, l->pointer, l->active, NULL, plan);
	signed_encode(s->change, true, plan_store(plan, l->active));
	if (l->pointer && l->pointer->there)
		point_to(s, l->pointer, l->active, NULL, plan);
}

static bool are_words(const struct lists *l, uint64_t seed)
{
	struct fold all = { .seed = seed };
	bool good = signed_fold(&all, words(l->inactive)) && signed_fold(&all, words(l->active));

	fold_free(&all);
	return good;
}

static enum adopted_status change(struct snapshot *s, bool create, struct plan *plan)
{
	struct lists l = { 0 };
	enum adopted_status status;

	if (s->purpose == FOR_WRITE && s->rule->pointer) {
		int role;
		l.pointer = snapshot_find(s, POINTER);
		role = named(s, l.pointer);
		if (!l.pointer->there)
			return ADOPTED_NEEDS_ALL;
		if (role < 0)
			return ADOPTED_CORRUPT;
		l.active = snapshot_find(s, role);
		plan_change(s, &l, plan);
		return ADOPTED_OK;
	}
	status = find(s, &l);
	if (status == ADOPTED_OK && !are_words(&l, s->seed))
		status = ADOPTED_CORRUPT;
	if (status == ADOPTED_OK) {
		plan_change(s, &l, plan);
	} else if (status == ADOPTED_MISSING && create) {
		plan_creation(s, &l, plan);
		status = ADOPTED_OK;
	}
	return status;
}

/*
 * Two flips between a look at the lists and the append would hide the second one's move: the pointer's cas id shows them, or that
 * the list does not begin any more with what was read of it.
 */
static bool check(const struct snapshot *s, const struct snapshot *now)
{
	const struct snapshot_item *before = snapshot_find(s, POINTER), *pointer = snapshot_find(now, POINTER);
	struct lists then, l;

	if (s->rule->pointer)
		return pointer->there && pointer->cas == before->cas && pointer->connection == before->connection;
	(void)find(s, &then);
	return find(now, &l) == ADOPTED_OK && !l.unmarked && l.active->role == then.active->role &&
		slice_starts(snapshot_item_value(l.active), snapshot_item_value(then.active));
}

/* Removals of what `old` has and `members` has not. */
static void take_back(const struct fold *old, const struct fold *members, struct buf *out)
{
	for (size_t i = 0; i < old->member_count; i++) {
		if (old->members[i].live && !fold_contains(members, member_of(&old->members[i]))) {
			BUF_ADD(out, "-");
			buf_add_slice(out, member_of(&old->members[i]));
		}
	}
}

/* The active list says all: what the other one has, and what is not to be there, it removes. */
static enum adopted_status replace(struct snapshot *s, const struct fold *members, struct plan *plan)
{
	struct fold old = { .seed = s->seed };
	struct lists l;
	enum adopted_status status = find(s, &l);
	struct buf *value;

	if (status == ADOPTED_OK && !signed_fold(&old, words(l.inactive)))
		status = ADOPTED_CORRUPT;
	if (status == ADOPTED_OK && l.unmarked) {
		unmark(&l, plan);
	} else if (status == ADOPTED_OK || status == ADOPTED_MISSING) {
		if (l.pointer && !l.pointer->there)
			point_to(s, l.pointer, l.active, NULL, plan);
		value = plan_store(plan, l.active);
		signed_encode(members, false, value);
		take_back(&old, members, value);
		/* Behind it: that the active list was active still. */
		if (l.pointer && l.pointer->there)
			point_to(s, l.pointer, l.active, NULL, plan);
		status = ADOPTED_OK;
	}
	fold_free(&old);
	return status;
}

/* What an inactive list without words holds; a new one, before a flip, has the guard. */
static void write_empty(const struct snapshot *s, bool guarded, struct buf *out)
{
	if (!s->rule->pointer)
		BUF_ADD(out, "^");
	if (guarded)
		buf_add_slice(out, guard);
}

static bool same_life(const struct snapshot_item *a, const struct snapshot_item *b)
{
	int64_t apart = a->ttl - b->ttl;

	if (a->ttl == TTL_NEVER || b->ttl == TTL_NEVER)
		return a->ttl == b->ttl;
	return apart >= -1 && apart <= 1;
}

/*
 * First the list that was active is sealed: from then on no CAS succeeds that was planned before the flip. Then the active list
 * says what both came to, and takes back what the other one says until that is emptied.
 */
static void plan_move(const struct snapshot *s, const struct lists *l, const struct fold *all, struct plan *plan)
{
	struct fold old = { .seed = s->seed };
	bool good = signed_fold(&old, words(l->inactive)), live;
	struct buf *value;

	assert(good);
	(void)good;
	if (fold_mentions(&old, slice_skip(guard, 1), &live)) {
		value = plan_rewrite(plan, l->active);
		signed_encode(all, false, value);
		take_back(&old, all, value);
		write_empty(s, false, plan_rewrite(plan, l->inactive));
	} else {
		value = plan_rewrite(plan, l->inactive);
		buf_add_slice(value, snapshot_item_value(l->inactive));
		buf_add_slice(value, guard);
	}
	fold_free(&old);
	plan->again = true;
}

/* While the other list has words, somebody may still take what it says by a CAS on that one. */
static void take(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan)
{
	struct lists l;
	struct buf *value;

	(void)find(s, &l);
	if (l.unmarked) {
		unmark(&l, plan);
	} else if (has_words(l.inactive)) {
		plan_move(s, &l, all, plan);
	} else {
		value = plan_rewrite(plan, l.active);
		buf_add_slice(value, words(l.active));
		signed_encode(taken, true, value);
	}
}

static void plan_flip(const struct snapshot *s, const struct lists *l, struct plan *plan)
{
	struct buf *value;

	if (!l->inactive->there) {
		write_empty(s, true, plan_add(plan, CALL_ADD, l->inactive, l->active));
	} else if (!slice_equal(words(l->inactive), guard) || !same_life(l->inactive, l->active) ||
		l->inactive->flags != l->active->flags) {
		write_empty(s, true, plan_add(plan, CALL_CAS, l->inactive, l->active));
	} else if (l->pointer) {
		point_to(s, l->pointer, l->inactive, l->active, plan);
	} else {
		value = plan_rewrite(plan, l->active);
		BUF_ADD(value, "^");
		buf_add_slice(value, words(l->active));
		buf_add_slice(plan_add(plan, CALL_CAS, l->inactive, l->active), guard);
	}
}

static void compact(struct snapshot *s, const struct fold *all, struct plan *plan)
{
	struct lists l;

	if (find(s, &l) != ADOPTED_OK)
		return;
	if (l.unmarked)
		unmark(&l, plan);
	else if (has_words(l.inactive))
		plan_move(s, &l, all, plan);
	else if (worth_rewriting(words(l.active).n, signed_size(all, false)) && !fold_contains(all, SLICE("^")))
		plan_flip(s, &l, plan);
	plan->again = plan->count > 0;
}

/* Order is lost, or a list is: the words that are left make no set. The pointer stays, for whoever makes a new one. */
static void clear(const struct snapshot *s, struct plan *plan)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i]->there && s->items[i]->role != POINTER)
			plan_expire(plan, s->items[i]);
	}
}

const struct encoding encoding_flip = {
	.name = "flip",
	.reserved = "+-",
	.guard = '^',
	.name_items = name_items,
	.fold = fold,
	.main_item = main_item,
	.change = change,
	.replace = replace,
	.take = take,
	.compact = compact,
	.clear = clear,
	.check = check,
};
