/*
 * Two lists of signed words, `X.a` and `X.b`. One is active: the pointer `X.active` names it,
 * or without a pointer, the inactive one begins with the mark `^`. Writers append to the active
 * list. Readers fold the inactive list, then the active one. A compaction flips first and moves
 * words afterwards, so it never overwrites a list that others append to:
 *
 *     write the guard to the inactive list, with the TTL of the active one
 *     -> flip: from now on writers append to it
 *     -> CAS a seal to the end of the other list
 *     -> CAS the fold of both into the active list -> CAS the other list empty
 *
 * Guard and seal are `-^`, a removal of a member that cannot exist. A guard at the head of the
 * active list means that the other list has words that were not moved yet. If that list is
 * missing then, a part of the set has been evicted.
 *
 * If the inactive list has words after its guard, a late append arrived between the guard and
 * the flip. Their writer repeats these words in the active list. After the flip they would
 * override everything written there since. The first proxy that finds such words makes the flip
 * fail: a CAS of the pointer, unchanged -> a CAS that removes the guard. Without a pointer the
 * flip fails by itself, since it begins with a CAS of the active list.
 *
 * The fold of both lists is the same after each step. So a crash between two steps loses
 * nothing, and the next compaction continues. After its append a writer checks that the list is
 * still active, and if not repeats the append.
 */
#include <assert.h>
#include <stdlib.h>

#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"

enum { LIST_A, LIST_B, POINTER };
enum { NEAR = 2 /* seconds */ };

struct lists {
	struct snapshot_item *pointer;
	struct snapshot_item *active, *inactive;
	bool both_marked; /* a flip is half done; `active` will be the active one */
};

static const struct slice guard = { "-^", 2 };
static const struct slice suffixes[] = { { ".a", 2 }, { ".b", 2 }, { ".active", 7 } };

static void add(struct snapshot *s, int role, bool asked)
{
	if (!snapshot_find(s, role))
		snapshot_add(s, role, s->key, SLICE(""), suffixes[role], asked)->pivot =
			role == POINTER;
}

/* Returns the list that the pointer names, by its key or by its letter; -1 for none. */
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

/* Returns the words of a list, without its mark. */
static struct slice words(const struct snapshot_item *list)
{
	return slice_skip(snapshot_item_value(list), is_marked(list));
}

static bool has_words(const struct snapshot_item *list)
{
	struct slice said = words(list);

	return said.n && !slice_equal(said, guard);
}

/* Returns whether the first word is the guard, and not a removal of a longer member. */
static bool is_guarded(const struct snapshot_item *list)
{
	struct slice said = words(list);

	if (!slice_starts(said, guard))
		return false;
	return said.n == guard.n || said.p[guard.n] == '+' || said.p[guard.n] == '-';
}

/* Returns whether the inactive list is missing, and had words that were not moved yet. */
static bool is_torn(const struct lists *l)
{
	return is_guarded(l->active) && !l->inactive->there;
}

/* If the pointer is missing, the active list is unknown. */
static enum adopted_status find_by_pointer(const struct snapshot *s, struct lists *l)
{
	struct snapshot_item *a = snapshot_find(s, LIST_A), *b = snapshot_find(s, LIST_B);
	int role = LIST_A;

	l->pointer = snapshot_find(s, POINTER);
	/*
	 * A marked list belongs to a set without a pointer. Then the rule is wrong, and nothing
	 * may be cleared.
	 */
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

/*
 * If both are marked, a flip to the guarded or the shorter list is half done. If none is, the
 * one with words is newer.
 */
static bool is_newer(const struct snapshot_item *list, const struct snapshot_item *other)
{
	bool guarded = is_guarded(list), other_guarded = is_guarded(other);

	if (!is_marked(list))
		return has_words(list) || !has_words(other);
	return guarded == other_guarded ? words(list).n <= words(other).n : guarded;
}

static enum adopted_status find_by_mark(const struct snapshot *s, struct lists *l)
{
	struct snapshot_item *a = snapshot_find(s, LIST_A), *b = snapshot_find(s, LIST_B);
	bool is_a = !is_marked(a) && a->there, is_b = !is_marked(b) && b->there;

	bool choose_a = is_a == is_b ? is_newer(a, b) : is_a;
	l->active = choose_a ? a : b;
	l->inactive = choose_a ? b : a;
	if (is_a && is_b && has_words(a) && has_words(b))
		return ADOPTED_CORRUPT;
	l->both_marked = is_marked(a) && is_marked(b);
	if (l->both_marked || (l->active->there && !is_marked(l->active)))
		return is_torn(l) ? ADOPTED_LOST : ADOPTED_OK;
	if (has_words(a) || has_words(b))
		return ADOPTED_LOST;
	/* All proxies that create the set must write the same list. */
	l->active = a;
	l->inactive = b;
	return ADOPTED_MISSING;
}

static enum adopted_status find(const struct snapshot *s, struct lists *l)
{
	*l = (struct lists){ 0 };
	return s->rule->pointer ? find_by_pointer(s, l) : find_by_mark(s, l);
}

static void flip_name_items(struct snapshot *s)
{
	const struct snapshot_item *pointer = snapshot_find(s, POINTER);
	int role = pointer ? named(s, pointer) : -1;

	if (s->rule->pointer)
		add(s, POINTER, false);
	if (!s->rule->pointer || s->purpose == FOR_ALL || s->purpose == FOR_REWRITE) {
		add(s, LIST_A, false);
		add(s, LIST_B, false);
	} else if (s->purpose == FOR_WRITE && role >= 0) {
		add(s, role, true);
	}
}

static enum adopted_status flip_state(const struct snapshot *s)
{
	struct lists l;

	return find(s, &l);
}

static struct words inactive_words(const struct lists *l)
{
	return (struct words){ .text = words(l->inactive), .kind = WORDS_SIGNED };
}

static bool flip_text(const struct snapshot *s, size_t i, struct words *out)
{
	struct lists l;

	(void)find(s, &l);
	*out = inactive_words(&l);
	if (i)
		out->text = words(l.active);
	return i < 2;
}

static const struct snapshot_item *flip_main_item(const struct snapshot *s)
{
	struct lists l;

	(void)find(s, &l);
	return l.active;
}

static struct snapshot_item *flip_vital_item(const struct snapshot *s)
{
	struct lists l;

	(void)find(s, &l);
	return l.pointer ? l.pointer : l.active;
}

static void point_to(const struct snapshot *s, struct snapshot_item *pointer,
	const struct snapshot_item *list, const struct snapshot_item *like, struct plan *plan)
{
	struct buf *value = plan_add(plan, pointer->there ? CALL_CAS : CALL_ADD, pointer, like);
	struct slice suffix = suffixes[list->role];

	/* Keeps the spelling of the pointer: key or letter. */
	if (pointer->there && snapshot_item_value(pointer).n == 1) {
		buf_add_slice(value, slice_skip(suffix, 1));
	} else {
		buf_add_slice(value, s->key);
		buf_add_slice(value, suffix);
	}
}

/*
 * The other list is written first, unchanged, so that a CAS on it that was planned before, to
 * create a set, fails.
 */
static void unmark(const struct lists *l, struct plan *plan)
{
	buf_add_slice(plan_rewrite(plan, l->inactive), snapshot_item_value(l->inactive));
	buf_add_slice(plan_rewrite(plan, l->active), words(l->active));
	plan->again = true;
}

/*
 * Returns whether a flip planned before these words arrived may still succeed. False for a
 * snapshot that lacks the inactive list.
 */
static bool has_late_words(const struct lists *l)
{
	return l->pointer && l->inactive && is_guarded(l->inactive) && has_words(l->inactive);
}

static void stop_flip(const struct lists *l, struct plan *plan)
{
	buf_add_slice(plan_rewrite(plan, l->pointer), snapshot_item_value(l->pointer));
	buf_add_slice(plan_rewrite(plan, l->inactive), slice_skip(words(l->inactive), guard.n));
	plan->again = true;
}

/* Plans the steps that must precede a change of the set. Returns false if there are none. */
static bool plan_first(const struct lists *l, struct plan *plan)
{
	if (l->both_marked)
		unmark(l, plan);
	else if (has_late_words(l))
		stop_flip(l, plan);
	return plan->again;
}

static void plan_change(struct snapshot *s, const struct lists *l, struct plan *plan)
{
	if (plan_first(l, plan))
		return;
	plan_add(plan, CALL_APPEND, l->active, NULL);
	plan_write(plan, (struct members_text){ .write = signed_write, .fold = s->change });
	plan->check = true;
}

/* Appends an inactive list without words. Before a flip it has the guard. */
static void write_empty(const struct snapshot *s, bool guarded, struct buf *out)
{
	if (!s->rule->pointer)
		BUF_ADD(out, "^");
	if (guarded)
		buf_add_slice(out, guard);
}

/*
 * Without a pointer a list is created as an inactive one, and gets its words by CAS. A late ADD
 * of words could make a second active list, after the list that it was meant for was flipped
 * and evicted.
 */
static bool plan_mark(const struct snapshot *s, const struct lists *l, struct plan *plan)
{
	if (l->pointer || l->active->there)
		return false;
	write_empty(s, false, plan_store(plan, l->active));
	plan->again = true;
	return true;
}

/* Writes a removal of a member that `kept` does not have. */
static void flip_write_back(
	struct snapshot *s, const struct fold_member *m, const struct fold *kept, struct buf *out)
{
	(void)s;
	if (!m->live || fold_contains(kept, member_of(m)))
		return;
	BUF_ADD(out, "-");
	buf_add_slice(out, member_of(m));
}

/* Writes `members`, and removals of the others that the inactive list has, which is work.folded. */
static void plan_both(const struct snapshot *s, const struct fold *members, members_write *write,
	struct plan *plan)
{
	plan_write(plan, (struct members_text){ .write = write, .fold = members });
	plan_write(plan,
		(struct members_text){
			.write = flip_write_back, .fold = &s->work.folded.fold, .other = members });
}

/*
 * Plans to write the active list: the live members, with `all` also the removed ones, and
 * removals of the others that the inactive list has. A new pointer is written before the words,
 * because words without a pointer count as the remains of a lost set. An existing pointer is
 * written after them: the CAS sets its time to live, and fails if the list is no longer active.
 */
static void plan_words(const struct snapshot *s, const struct lists *l, const struct fold *members,
	bool all, struct plan *plan)
{
	if (plan_mark(s, l, plan))
		return;
	if (l->pointer && !l->pointer->there)
		point_to(s, l->pointer, l->active, NULL, plan);
	plan_store(plan, l->active);
	plan_both(s, members, all ? signed_write : signed_write_live, plan);
	if (l->pointer && l->pointer->there)
		point_to(s, l->pointer, l->active, NULL, plan);
}

static enum adopted_status flip_change(struct snapshot *s, bool create, struct plan *plan)
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
	if (!snapshot_fold(s))
		return ADOPTED_PAUSED;
	status = s->status;
	(void)find(s, &l);
	if (status == ADOPTED_OK) {
		plan_change(s, &l, plan);
	} else if (status == ADOPTED_MISSING && create) {
		plan_words(s, &l, s->change, true, plan);
		status = ADOPTED_OK;
	}
	return status;
}

/*
 * After two flips between the read and the append, the same list is active again, but its words
 * may have been moved. The CAS token of the pointer shows that. Without a pointer, the list no
 * longer begins with the words that were read.
 */
static bool is_in_place(const struct snapshot *s, const struct snapshot *now)
{
	const struct snapshot_item *before = snapshot_find(s, POINTER),
				   *pointer = snapshot_find(now, POINTER);
	struct lists then, l;

	if (s->rule->pointer)
		return pointer->there && pointer->reply.cas == before->reply.cas &&
			pointer->reply.connection == before->reply.connection;
	(void)find(s, &then);
	return find(now, &l) == ADOPTED_OK && !l.both_marked &&
		l.active->role == then.active->role &&
		slice_starts(snapshot_item_value(l.active), snapshot_item_value(then.active));
}

static enum adopted_status flip_check(struct snapshot *s, struct snapshot *now)
{
	return is_in_place(s, now) ? ADOPTED_OK : ADOPTED_LOST;
}

/* The active list gets all members, and removals of the others that the inactive list has. */
static enum adopted_status flip_replace(
	struct snapshot *s, const struct fold *members, struct plan *plan)
{
	struct lists l;

	(void)find(s, &l);
	if (l.both_marked)
		unmark(&l, plan);
	else if (!work_fold(s, inactive_words(&l)))
		return ADOPTED_PAUSED;
	else
		plan_words(s, &l, members, false, plan);
	return ADOPTED_OK;
}

/* Returns the seconds by which `a` lives longer than `b`; INT64_MAX if that is not a number. */
static int64_t apart(const struct snapshot_item *a, const struct snapshot_item *b)
{
	if (!a->there || a->reply.flags != b->reply.flags ||
		(a->reply.ttl == TTL_NEVER) != (b->reply.ttl == TTL_NEVER))
		return INT64_MAX;
	return a->reply.ttl - b->reply.ttl;
}

static bool is_about(int64_t seconds, int64_t expected)
{
	return seconds != INT64_MAX && expected != INT64_MAX && llabs(seconds - expected) <= NEAR;
}

/*
 * First seals the inactive list, so that a CAS that was planned before the flip fails. Then
 * writes the fold of both lists to the active one. Removals there cancel the words of the
 * inactive list until that is emptied.
 */
static enum adopted_status plan_move(struct snapshot *s, const struct lists *l, struct plan *plan)
{
	struct buf *value;
	bool live;

	if (!work_fold(s, inactive_words(l)))
		return ADOPTED_PAUSED;
	if (fold_mentions(&s->work.folded.fold, slice_skip(guard, 1), &live)) {
		plan_rewrite(plan, l->active);
		plan_both(s, &s->all.fold, signed_write_live, plan);
		write_empty(s, false, plan_rewrite(plan, l->inactive));
	} else {
		value = plan_rewrite(plan, l->inactive);
		buf_add_slice(value, snapshot_item_value(l->inactive));
		buf_add_slice(value, guard);
	}
	plan->again = true;
	return ADOPTED_OK;
}

/*
 * While the inactive list has words, a CAS on it that was planned before the flip may take the
 * same members.
 */
static enum adopted_status flip_take(
	struct snapshot *s, const struct fold *taken, struct plan *plan)
{
	struct lists l;

	(void)find(s, &l);
	if (plan_first(&l, plan))
		return ADOPTED_OK;
	if (has_words(l.inactive))
		return plan_move(s, &l, plan);
	buf_add_slice(plan_rewrite(plan, l.active), words(l.active));
	plan_write(plan, (struct members_text){ .write = signed_write, .fold = taken });
	return ADOPTED_OK;
}

/*
 * Returns whether this operation has written the guard to the inactive list, for this pointer.
 * Then a CAS by which another proxy would clear the remains of an older set fails. If a touch
 * arrives between the read of a time to live and the late write of its copy, the copy is
 * repeated. If the clocks of the servers differ, both times must differ by as much as before.
 */
static bool is_prepared(const struct snapshot *s, const struct lists *l)
{
	int64_t by = apart(l->inactive, l->active);

	return s->prepared.done && slice_equal(words(l->inactive), guard) &&
		(!l->pointer || l->pointer->reply.cas == s->prepared.cas) &&
		(is_about(by, 0) || is_about(by, s->prepared.apart));
}

/*
 * A list that expires at about the same time as the other keeps its own time to live, so that
 * flips do not shift it.
 */
static void prepare(struct snapshot *s, const struct lists *l, struct plan *plan)
{
	int64_t by = apart(l->inactive, l->active);
	const struct snapshot_item *like = is_about(by, 0) ? l->inactive : l->active;

	s->prepared = (struct preparation){ true, l->pointer ? l->pointer->reply.cas : 0, by };
	write_empty(s, true,
		plan_add(plan, l->inactive->there ? CALL_CAS : CALL_ADD, l->inactive, like));
}

static void plan_flip(struct snapshot *s, const struct lists *l, struct plan *plan)
{
	if (!is_prepared(s, l)) {
		prepare(s, l, plan);
	} else if (l->pointer) {
		point_to(s, l->pointer, l->inactive, l->pointer, plan);
	} else {
		struct buf *value = plan_rewrite(plan, l->active);
		BUF_ADD(value, "^");
		buf_add_slice(value, words(l->active));
		buf_add_slice(plan_rewrite(plan, l->inactive), guard);
	}
}

static enum adopted_status flip_compact(struct snapshot *s, struct plan *plan)
{
	const struct fold *all = &s->all.fold;
	enum adopted_status status = ADOPTED_OK;
	struct lists l;

	if (find(s, &l) != ADOPTED_OK || plan_first(&l, plan))
		return ADOPTED_OK;
	if (has_words(l.inactive))
		status = plan_move(s, &l, plan);
	else if (worth_rewriting(s, words(l.active).n, signed_size(all, false)) &&
		!fold_contains(all, SLICE("^")))
		plan_flip(s, &l, plan);
	plan->again = plan->count > 0;
	return status;
}

/*
 * A list or the pointer is lost, so the remaining words are not a set. The pointer is
 * kept, for a new set.
 */
static void flip_clear(const struct snapshot *s, struct plan *plan)
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
	.name_items = flip_name_items,
	.state = flip_state,
	.text = flip_text,
	.main_item = flip_main_item,
	.vital_item = flip_vital_item,
	.change = flip_change,
	.replace = flip_replace,
	.take = flip_take,
	.compact = flip_compact,
	.clear = flip_clear,
	.check = flip_check,
};
