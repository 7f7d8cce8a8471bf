/*
 * Encodings whose items are texts of members. They differ in where removals are stored, as
 * listed in the table `places`:
 *
 *     signed      `+1234+222-222`    at the end of the text: the last word on a member decides
 *     csv         `a,b,c,`           nowhere: a CAS writes the text without the member
 *     tombstone   `b,|a,b,c,`        before the bar; additions and removals are both counted
 *     paired      `a,b,c,` and `b,`  in another item, unfollow-X for follow-X; both are counted
 *
 * Adding is an APPEND. In a counted text it repeats the member as often as the removals
 * require, so a change reads the items first. It must also find the bar: at the head of a text
 * without one, a removal would read as an addition.
 *
 * In paired, a compaction between the read and the append changes the counts, so they are
 * checked after the append. No call changes both items, so a compaction has several steps of
 * one CAS each. No step changes the set:
 *
 *     drop removals of members that are in the set, or were never added
 *     -> drop additions: all of members that are not in the set, and all except one of the others
 *     -> drop the removals of members that are no longer added
 *
 * Each of these depends on the counts of both items, and its CAS checks only the item that it
 * changes. So each step first writes the other item, unchanged. Of two steps that were planned
 * from the same counts, at least one then fails: otherwise one could drop a removal for which
 * the other drops the addition.
 */
#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"

/* The items, by their index in a snapshot. Only paired has an item of removals. */
enum { REMOVED, ADDED };

static const enum place {
	NOWHERE,
	SIGNED,
	BEFORE_BAR,
	OTHER_ITEM,
} places[] = {
	[ENCODING_SIGNED] = SIGNED,
	[ENCODING_CSV] = NOWHERE,
	[ENCODING_TOMBSTONE] = BEFORE_BAR,
	[ENCODING_PAIRED] = OTHER_ITEM,
};

/* The counts of an empty text. */
static const struct counted none;

static enum place place_of(const struct snapshot *s)
{
	return places[s->rule->encoding];
}

static struct snapshot_item *added_of(const struct snapshot *s)
{
	return s->items[s->count - 1];
}

/* Returns whether the change is an APPEND for any stored value. */
static bool only_appends(const struct snapshot *s)
{
	return place_of(s) == SIGNED || (place_of(s) == NOWHERE && s->change->live == s->change->member_count);
}

static void name_items(struct snapshot *s)
{
	if (s->count)
		return;
	if (place_of(s) == OTHER_ITEM)
		snapshot_add(s, REMOVED, s->rule->removed, slice_skip(s->key, s->rule->prefix.n), SLICE(""), false);
	snapshot_add(s, ADDED, s->key, SLICE(""), SLICE(""), s->purpose == FOR_WRITE && only_appends(s));
}

/* --- reading --- */

/* Splits a text at its bar. Returns false if it has none, or two. */
static bool cut(struct slice *added, struct slice *removed)
{
	const char *bar = added->n ? memchr(added->p, '|', added->n) : NULL;

	if (!bar)
		return false;
	*removed = slice_of(added->p, (size_t)(bar - added->p));
	*added = slice_skip(*added, removed->n + 1);
	return !added->n || !memchr(added->p, '|', added->n);
}

/* Folds a text, and counts its members unless the words have signs. */
static enum adopted_status count(const struct snapshot *s, struct counted *c)
{
	struct slice added = snapshot_item_value(added_of(s)), removed = slice_of("", 0);
	char delimiter = s->rule->delimiter;
	bool there = added_of(s)->there, good = true;

	if (place_of(s) == OTHER_ITEM)
		removed = snapshot_item_value(s->items[REMOVED]);
	if (place_of(s) == BEFORE_BAR && there) {
		good = cut(&added, &removed);
		c->fold.bytes++;
	}
	if (place_of(s) == SIGNED)
		good = signed_fold(&c->fold, added);
	else
		good = good && counted_read(c, added, delimiter, false) && counted_read(c, removed, delimiter, true);
	if (!good)
		return ADOPTED_CORRUPT;
	return there ? ADOPTED_OK : ADOPTED_MISSING;
}

static enum adopted_status fold(const struct snapshot *s, struct fold *out)
{
	struct counted c = { .fold.seed = s->seed };
	enum adopted_status status = count(s, &c);

	counted_to_fold(&c, out);
	return status;
}

/* --- writing --- */

/* Writes a text of the live members, each as often as the removals require. */
static void write_members(
	const struct snapshot *s, const struct counted *removals, const struct fold *members, struct buf *out)
{
	if (place_of(s) == SIGNED) {
		signed_encode(members, false, out);
		return;
	}
	if (place_of(s) == BEFORE_BAR)
		BUF_ADD(out, "|");
	for (size_t i = 0; i < members->member_count; i++) {
		struct slice member = member_of(&members->members[i]);
		if (members->members[i].live)
			delimited_add(out, member, s->rule->delimiter, 1 - counted_net(removals, member));
	}
}

/* Writes a text again, without any occurrence of the members that `gone` removes. */
static void write_without(const struct snapshot *s, const struct fold *gone, struct buf *out)
{
	struct slice text = snapshot_item_value(added_of(s)), member;
	bool live;

	while (delimited_next(&text, s->rule->delimiter, &member)) {
		if (!fold_mentions(gone, member, &live) || live)
			delimited_add(out, member, s->rule->delimiter, 1);
	}
}

/* Writes the words of a change that does not depend on the stored items. */
static void write_change(const struct snapshot *s, struct buf *out)
{
	if (place_of(s) == SIGNED)
		signed_encode(s->change, true, out);
	else
		delimited_encode(s->change, s->rule->delimiter, out);
}

/*
 * Sets the time to live of the removals to that of the additions stored before them in the
 * plan, so that they do not expire first.
 */
static void plan_lives(const struct snapshot *s, struct plan *plan)
{
	if (place_of(s) == OTHER_ITEM && s->items[REMOVED]->there)
		buf_add_slice(
			plan_add(plan, CALL_CAS, s->items[REMOVED], NULL), snapshot_item_value(s->items[REMOVED]));
}

/* --- compaction --- */

/*
 * Writes an item unchanged, so that a CAS of it that was planned before fails. This CAS also
 * fails if the item has changed.
 */
static void plan_unchanged(struct snapshot_item *item, struct plan *plan)
{
	buf_add_slice(plan_rewrite(plan, item), snapshot_item_value(item));
}

/* Keeps the removals that count: of members that were added, but not more often than removed. */
static void plan_removed(const struct snapshot *s, const struct counted *c, struct plan *plan)
{
	struct snapshot_item *item = s->items[REMOVED];
	struct buf kept = BUF_EMPTY;

	for (size_t i = 0; i < c->fold.member_count; i++) {
		const struct counted_member *m = &c->members[i];
		if (m->added > 0 && m->added <= m->removed)
			delimited_add(&kept, member_of(&c->fold.members[i]), s->rule->delimiter, m->removed);
	}
	if (item->there && buf_size(&kept) < snapshot_item_value(item).n) {
		plan_unchanged(s->items[ADDED], plan);
		buf_add_slice(plan_rewrite(plan, item), buf_slice(&kept));
	}
	buf_free(&kept);
}

static void plan_added(const struct snapshot *s, const struct counted *c, struct plan *plan)
{
	struct snapshot_item *item = s->items[ADDED];
	size_t size = c->fold.live_bytes + c->fold.live;

	if (!item->there || size >= snapshot_item_value(item).n)
		return;
	if (s->items[REMOVED]->there)
		plan_unchanged(s->items[REMOVED], plan);
	write_members(s, &none, &c->fold, plan_rewrite(plan, item));
}

/* Plans the next step for two items. The last step has nothing to drop. */
static void plan_step_of_two(const struct snapshot *s, const struct counted *c, struct plan *plan)
{
	plan_removed(s, c, plan);
	if (plan->count == 0)
		plan_added(s, c, plan);
	plan->again = plan->count > 0;
}

/* In a list, duplicates count. */
static void compact(struct snapshot *s, const struct fold *all, struct plan *plan)
{
	size_t now = 0, size = all->live_bytes + all->live + (place_of(s) == BEFORE_BAR);
	struct counted c = { .fold.seed = s->seed };

	for (size_t i = 0; i < s->count; i++)
		now += snapshot_item_value(s->items[i]).n;
	if (s->rule->type == COLLECTION_LIST || !worth_rewriting(s, now, size))
		return;
	if (place_of(s) != OTHER_ITEM)
		write_members(s, &none, all, plan_rewrite(plan, added_of(s)));
	else if (count(s, &c) == ADOPTED_OK)
		plan_step_of_two(s, &c, plan);
	counted_free(&c);
}

/* --- changes --- */

static void change_counted(struct snapshot *s, const struct counted *c, struct plan *plan)
{
	struct snapshot_item *added = added_of(s), *other = place_of(s) == OTHER_ITEM ? s->items[REMOVED] : NULL;
	struct buf adds = BUF_EMPTY, removes = BUF_EMPTY;

	if (counted_change(c, s->change, s->rule->delimiter, &adds, &removes)) {
		if (buf_size(&adds))
			buf_add_slice(plan_add(plan, CALL_APPEND, added, NULL), buf_slice(&adds));
		if (buf_size(&removes) && !other)
			buf_add_slice(plan_add(plan, CALL_PREPEND, added, NULL), buf_slice(&removes));
		else if (buf_size(&removes))
			buf_add_slice(plan_add(plan, other->there ? CALL_APPEND : CALL_ADD, other, added),
				buf_slice(&removes));
		plan->check = other && plan->count > 0;
	} else if (other) {
		plan_step_of_two(s, c, plan);
	} else {
		write_members(s, &none, &c->fold, plan_rewrite(plan, added));
		plan->again = true;
	}
	buf_free(&adds);
	buf_free(&removes);
}

/* Rewrites a text only if it has members that are removed. */
static void change_listed(struct snapshot *s, const struct counted *c, struct plan *plan)
{
	bool found = false;

	for (size_t i = 0; i < s->change->member_count; i++) {
		const struct fold_member *m = &s->change->members[i];
		found |= !m->live && counted_net(c, member_of(m)) > 0;
	}
	if (found) {
		struct buf *value = plan_rewrite(plan, added_of(s));
		write_without(s, s->change, value);
		write_change(s, value);
	} else if (s->change->live) {
		write_change(s, plan_add(plan, CALL_APPEND, added_of(s), NULL));
	}
}

/*
 * A new collection outweighs the removals of an earlier one. They are not dropped: by then
 * another collection may exist, and they apply to it.
 */
static void plan_new(const struct snapshot *s, const struct counted *c, struct plan *plan)
{
	struct buf *value = plan_add(plan, CALL_ADD, added_of(s), NULL);

	if (place_of(s) == SIGNED)
		write_change(s, value);
	else
		write_members(s, c, s->change, value);
	plan_lives(s, plan);
	plan->check = place_of(s) == OTHER_ITEM;
}

static enum adopted_status change(struct snapshot *s, bool create, struct plan *plan)
{
	struct counted c = { .fold.seed = s->seed };
	bool appends = only_appends(s), unread = appends && s->purpose == FOR_WRITE;
	enum adopted_status status = unread || added_of(s)->there ? ADOPTED_OK : ADOPTED_MISSING;

	if (!appends)
		status = count(s, &c);
	if (status == ADOPTED_MISSING && create) {
		plan_new(s, &c, plan);
		status = ADOPTED_OK;
	} else if (status == ADOPTED_OK && appends) {
		write_change(s, plan_add(plan, CALL_APPEND, added_of(s), NULL));
	} else if (status == ADOPTED_OK && place_of(s) == NOWHERE) {
		change_listed(s, &c, plan);
	} else if (status == ADOPTED_OK) {
		change_counted(s, &c, plan);
	}
	counted_free(&c);
	return status;
}

/* One CAS on the additions, with each member as often as the removals require. */
static enum adopted_status replace(struct snapshot *s, const struct fold *members, struct plan *plan)
{
	struct counted c = { .fold.seed = s->seed };
	bool good = place_of(s) != OTHER_ITEM ||
		counted_read(&c, snapshot_item_value(s->items[REMOVED]), s->rule->delimiter, true);

	if (good) {
		write_members(s, &c, members, plan_store(plan, added_of(s)));
		plan_lives(s, plan);
	}
	counted_free(&c);
	return good ? ADOPTED_OK : ADOPTED_CORRUPT;
}

/* Writes the members of a collection that are not taken, once each. */
static void write_rest(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct buf *out)
{
	bool live;

	BUF_ADD(out, "|");
	for (size_t i = 0; i < all->member_count; i++) {
		struct slice member = member_of(&all->members[i]);
		if (all->members[i].live && !fold_mentions(taken, member, &live))
			delimited_add(out, member, s->rule->delimiter, 1);
	}
}

/* Writes the removals, and one for each addition of a member that is taken. */
static void write_removals(const struct snapshot *s, const struct fold *taken, struct buf *out)
{
	struct counted c = { .fold.seed = s->seed };

	(void)count(s, &c);
	buf_add_slice(out, snapshot_item_value(s->items[REMOVED]));
	for (size_t i = 0; i < taken->member_count; i++) {
		struct slice member = member_of(&taken->members[i]);
		delimited_add(out, member, s->rule->delimiter, counted_net(&c, member));
	}
	counted_free(&c);
}

static void take(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan)
{
	struct snapshot_item *item = place_of(s) == OTHER_ITEM ? s->items[REMOVED] : added_of(s);
	struct buf *value = item->there ? plan_rewrite(plan, item) : plan_add(plan, CALL_ADD, item, added_of(s));

	switch (place_of(s)) {
	case SIGNED:
		buf_add_slice(value, snapshot_item_value(item));
		signed_encode(taken, true, value);
		break;
	case NOWHERE:
		write_without(s, taken, value);
		break;
	case BEFORE_BAR:
		write_rest(s, all, taken, value);
		break;
	case OTHER_ITEM:
		write_removals(s, taken, value);
		break;
	}
}

/* --- the check after a change of paired --- */

/*
 * If a count has not grown by the number that was written, a compaction happened in between.
 * The member must also be in the set, or not in it, as the change requires: if other clients
 * have added and removed it meanwhile, a compaction that has not seen both may still change
 * that.
 */
static bool written(const struct fold *change, const struct counted *before, const struct counted *now)
{
	for (size_t i = 0; i < change->member_count; i++) {
		struct slice member = member_of(&change->members[i]);
		struct counted_member was = counted_find(before, member), is = counted_find(now, member);
		int32_t net = was.added - was.removed;
		if (change->members[i].live && net <= 0 && (is.added < was.added + 1 - net || is.added <= is.removed))
			return false;
		if (!change->members[i].live && net > 0 && (is.removed < was.removed + net || is.added > is.removed))
			return false;
	}
	return true;
}

static bool check(const struct snapshot *s, const struct snapshot *now)
{
	struct counted before = { .fold.seed = s->seed }, after = { .fold.seed = s->seed };
	bool done;

	(void)count(s, &before);
	done = count(now, &after) == ADOPTED_OK && written(s->change, &before, &after);
	counted_free(&before);
	counted_free(&after);
	return done;
}

#define ENCODING_OF_TEXTS(id, ...) \
	const struct encoding encoding_##id = { \
		.name = #id, \
		.name_items = name_items, \
		.fold = fold, \
		.change = change, \
		.replace = replace, \
		.take = take, \
		.compact = compact, \
		__VA_ARGS__, \
	}

ENCODING_OF_TEXTS(signed, .reserved = "+-");
ENCODING_OF_TEXTS(csv, .reserved = "", .delimited = true);
ENCODING_OF_TEXTS(tombstone, .reserved = "|", .delimited = true);
ENCODING_OF_TEXTS(paired, .reserved = "", .delimited = true, .check = check);
