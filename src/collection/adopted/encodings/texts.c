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
	return place_of(s) == SIGNED ||
		(place_of(s) == NOWHERE && s->change->live == s->change->member_count);
}

static void name_items(struct snapshot *s)
{
	if (s->count)
		return;
	if (place_of(s) == OTHER_ITEM)
		snapshot_add(s, REMOVED, s->rule->removed, slice_skip(s->key, s->rule->prefix.n),
			SLICE(""), false);
	snapshot_add(
		s, ADDED, s->key, SLICE(""), SLICE(""), s->purpose == FOR_WRITE && only_appends(s));
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

static enum adopted_status texts_state(const struct snapshot *s)
{
	struct slice added = snapshot_item_value(added_of(s)), removed;

	if (!added_of(s)->there)
		return ADOPTED_MISSING;
	return place_of(s) == BEFORE_BAR && !cut(&added, &removed) ? ADOPTED_CORRUPT : ADOPTED_OK;
}

/* The members are counted unless the words have signs. */
static bool texts_text(const struct snapshot *s, size_t i, struct words *out)
{
	struct slice added = snapshot_item_value(added_of(s)), removed = slice_of("", 0);

	if (place_of(s) == OTHER_ITEM)
		removed = snapshot_item_value(s->items[REMOVED]);
	else if (place_of(s) == BEFORE_BAR)
		(void)cut(&added, &removed);
	*out = (struct words){ .text = i ? removed : added, .delimiter = s->rule->delimiter };
	out->kind = place_of(s) == SIGNED ? WORDS_SIGNED : i ? WORDS_REMOVED : WORDS_ADDED;
	return i < 2;
}

/* --- writing --- */

static void texts_write_once(
	struct snapshot *s, const struct fold_member *m, const struct fold *other, struct buf *out)
{
	(void)other;
	delimited_add(out, member_of(m), s->rule->delimiter, m->live);
}

/* Writes a member as often as the removals in the other item require. */
static void texts_write_outweighing(
	struct snapshot *s, const struct fold_member *m, const struct fold *other, struct buf *out)
{
	(void)other;
	if (m->live)
		delimited_add(out, member_of(m), s->rule->delimiter,
			INT64_C(1) + counted_find(&s->all, member_of(m)).removed);
}

/* Writes a member unless the change `gone` removes it. */
static void texts_write_kept(
	struct snapshot *s, const struct fold_member *m, const struct fold *gone, struct buf *out)
{
	bool live;

	if (!fold_mentions(gone, member_of(m), &live) || live)
		delimited_add(out, member_of(m), s->rule->delimiter, m->live);
}

/* Writes a text of the live members, with `outweigh` each as often as the removals require. */
static void plan_members(
	const struct snapshot *s, bool outweigh, const struct fold *members, struct plan *plan)
{
	members_write *write =
		outweigh && place_of(s) == OTHER_ITEM ? texts_write_outweighing : texts_write_once;

	if (place_of(s) == BEFORE_BAR)
		BUF_ADD(&plan->steps[plan->count - 1].value, "|");
	plan_write(plan,
		(struct members_text){ .write = place_of(s) == SIGNED ? signed_write_live : write,
			.fold = members });
}

/* Writes a text again, without any occurrence of the members that `gone` removes. */
static void plan_without(const struct snapshot *s, const struct fold *gone, struct plan *plan)
{
	struct words text = { snapshot_item_value(added_of(s)), WORDS_ADDED, s->rule->delimiter };

	plan_write(plan,
		(struct members_text){ .write = texts_write_kept, .text = text, .other = gone });
}

/* Writes the words of a change that does not depend on the stored items. */
static void plan_words_of_change(const struct snapshot *s, struct plan *plan)
{
	plan_write(plan,
		(struct members_text){
			.write = place_of(s) == SIGNED ? signed_write : texts_write_once,
			.fold = s->change });
}

/*
 * Sets the time to live of the removals to that of the additions stored before them in the
 * plan, so that they do not expire first.
 */
static void plan_lives(const struct snapshot *s, struct plan *plan)
{
	if (place_of(s) == OTHER_ITEM && s->items[REMOVED]->there)
		buf_add_slice(plan_add(plan, CALL_CAS, s->items[REMOVED], NULL),
			snapshot_item_value(s->items[REMOVED]));
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
static void texts_write_removed(
	struct snapshot *s, const struct fold_member *m, const struct fold *other, struct buf *out)
{
	const struct counted_member *c = &s->all.members[m - s->all.fold.members];

	(void)other;
	if (c->added > 0 && c->added <= c->removed)
		delimited_add(out, member_of(m), s->rule->delimiter, c->removed);
}

static enum adopted_status plan_removed(struct snapshot *s, struct plan *plan)
{
	struct snapshot_item *item = s->items[REMOVED];

	if (!work_write(
		    s, (struct members_text){ .write = texts_write_removed, .fold = &s->all.fold }))
		return ADOPTED_PAUSED;
	if (item->there && buf_size(&s->work.text) < snapshot_item_value(item).n) {
		plan_unchanged(s->items[ADDED], plan);
		*plan_rewrite(plan, item) = work_text(s);
	}
	return ADOPTED_OK;
}

static void plan_added(const struct snapshot *s, struct plan *plan)
{
	struct snapshot_item *item = s->items[ADDED];
	size_t size = s->all.fold.live_bytes + s->all.fold.live;

	if (!item->there || size >= snapshot_item_value(item).n)
		return;
	if (s->items[REMOVED]->there)
		plan_unchanged(s->items[REMOVED], plan);
	plan_rewrite(plan, item);
	plan_members(s, false, &s->all.fold, plan);
}

/* Plans the next step for two items. The last step has nothing to drop. */
static enum adopted_status plan_step_of_two(struct snapshot *s, struct plan *plan)
{
	enum adopted_status status = plan_removed(s, plan);

	if (status == ADOPTED_OK && plan->count == 0)
		plan_added(s, plan);
	plan->again = plan->count > 0;
	return status;
}

/* In a list, duplicates count. */
static enum adopted_status compact(struct snapshot *s, struct plan *plan)
{
	const struct fold *all = &s->all.fold;
	size_t now = 0, size = all->live_bytes + all->live + (place_of(s) == BEFORE_BAR);

	for (size_t i = 0; i < s->count; i++)
		now += snapshot_item_value(s->items[i]).n;
	if (s->rule->type == COLLECTION_LIST || !worth_rewriting(s, now, size))
		return ADOPTED_OK;
	if (place_of(s) == OTHER_ITEM)
		return plan_step_of_two(s, plan);
	plan_rewrite(plan, added_of(s));
	plan_members(s, false, all, plan);
	return ADOPTED_OK;
}

/* --- changes --- */

/*
 * Writes the additions and removals that carry out the change to work.text and work.more. Stops
 * if a member would have to be repeated too often: then the items should be rewritten first.
 */
static enum adopted_status write_counted(struct snapshot *s, bool *few)
{
	enum { REPEATED_MAX = 8, STEPS = 8 };
	struct snapshot_work *w = &s->work;

	*few = true;
	while (w->at < s->change->member_count && *few) {
		const struct fold_member *m = &s->change->members[w->at++];
		int32_t net = counted_net(&s->all, member_of(m));
		if (m->live && net <= 0)
			delimited_add(&w->text, member_of(m), s->rule->delimiter, INT64_C(1) - net);
		else if (!m->live && net > 0)
			delimited_add(&w->more, member_of(m), s->rule->delimiter, net);
		*few = net > -REPEATED_MAX && net < REPEATED_MAX;
		if (snapshot_is_over(s, STEPS) && *few)
			return ADOPTED_PAUSED;
	}
	return ADOPTED_OK;
}

static void append_counted(const struct snapshot *s, struct snapshot_item *added,
	struct snapshot_item *other, struct plan *plan)
{
	struct slice adds = buf_slice(&s->work.text), removes = buf_slice(&s->work.more);

	if (adds.n)
		buf_add_slice(plan_add(plan, CALL_APPEND, added, NULL), adds);
	if (removes.n && !other)
		buf_add_slice(plan_add(plan, CALL_PREPEND, added, NULL), removes);
	else if (removes.n)
		buf_add_slice(plan_add(plan, other->there ? CALL_APPEND : CALL_ADD, other, added),
			removes);
	plan->check = other && plan->count > 0;
}

static enum adopted_status change_counted(struct snapshot *s, struct plan *plan)
{
	struct snapshot_item *added = added_of(s),
			     *other = place_of(s) == OTHER_ITEM ? s->items[REMOVED] : NULL;
	enum adopted_status status;
	bool few;

	if (!s->work.writes) {
		status = write_counted(s, &few);
		if (status == ADOPTED_OK && few)
			append_counted(s, added, other, plan);
		if (status != ADOPTED_OK || few)
			return status;
		work_free(s);
	}
	if (other)
		return plan_step_of_two(s, plan);
	plan_rewrite(plan, added);
	plan_members(s, false, &s->all.fold, plan);
	plan->again = true;
	return ADOPTED_OK;
}

/* Rewrites a text only if it has members that are removed. */
static enum adopted_status change_listed(struct snapshot *s, struct plan *plan)
{
	enum { STEPS = 8 };
	struct snapshot_work *w = &s->work;
	bool found = false;

	while (w->at < s->change->member_count && !found) {
		const struct fold_member *m = &s->change->members[w->at++];
		found = !m->live && counted_net(&s->all, member_of(m)) > 0;
		if (snapshot_is_over(s, STEPS) && !found)
			return ADOPTED_PAUSED;
	}
	if (found) {
		plan_rewrite(plan, added_of(s));
		plan_without(s, s->change, plan);
		plan_words_of_change(s, plan);
	} else if (s->change->live) {
		plan_add(plan, CALL_APPEND, added_of(s), NULL);
		plan_words_of_change(s, plan);
	}
	return ADOPTED_OK;
}

/*
 * A new collection outweighs the removals of an earlier one. They are not dropped: by then
 * another collection may exist, and they apply to it.
 */
static void plan_new(const struct snapshot *s, struct plan *plan)
{
	plan_add(plan, CALL_ADD, added_of(s), NULL);
	if (place_of(s) == SIGNED)
		plan_words_of_change(s, plan);
	else
		plan_members(s, true, s->change, plan);
	plan_lives(s, plan);
	plan->check = place_of(s) == OTHER_ITEM;
}

static enum adopted_status change(struct snapshot *s, bool create, struct plan *plan)
{
	bool appends = only_appends(s), unread = appends && s->purpose == FOR_WRITE;
	enum adopted_status status = unread || added_of(s)->there ? ADOPTED_OK : ADOPTED_MISSING;

	if (!appends) {
		if (!snapshot_fold(s))
			return ADOPTED_PAUSED;
		status = s->status;
	}
	if (status == ADOPTED_MISSING && create) {
		plan_new(s, plan);
		status = ADOPTED_OK;
	} else if (status == ADOPTED_OK && appends) {
		plan_add(plan, CALL_APPEND, added_of(s), NULL);
		plan_words_of_change(s, plan);
	} else if (status == ADOPTED_OK && place_of(s) == NOWHERE) {
		status = change_listed(s, plan);
	} else if (status == ADOPTED_OK) {
		status = change_counted(s, plan);
	}
	return status;
}

/* One CAS on the additions, with each member as often as the removals require. */
static enum adopted_status replace(
	struct snapshot *s, const struct fold *members, struct plan *plan)
{
	plan_store(plan, added_of(s));
	plan_members(s, true, members, plan);
	plan_lives(s, plan);
	return ADOPTED_OK;
}

/* Writes the removals of a member, one for each of its additions. */
static void texts_write_removals(
	struct snapshot *s, const struct fold_member *m, const struct fold *other, struct buf *out)
{
	(void)other;
	delimited_add(out, member_of(m), s->rule->delimiter, counted_net(&s->all, member_of(m)));
}

static enum adopted_status take(struct snapshot *s, const struct fold *taken, struct plan *plan)
{
	struct snapshot_item *item = place_of(s) == OTHER_ITEM ? s->items[REMOVED] : added_of(s);
	struct buf *value = item->there ? plan_rewrite(plan, item)
					: plan_add(plan, CALL_ADD, item, added_of(s));

	switch (place_of(s)) {
	case SIGNED:
		buf_add_slice(value, snapshot_item_value(item));
		plan_write(plan, (struct members_text){ .write = signed_write, .fold = taken });
		break;
	case NOWHERE:
		plan_without(s, taken, plan);
		break;
	case BEFORE_BAR:
		/* The members that are not taken, once each. */
		BUF_ADD(value, "|");
		plan_write(plan,
			(struct members_text){
				.write = texts_write_kept, .fold = &s->all.fold, .other = taken });
		break;
	case OTHER_ITEM:
		buf_add_slice(value, snapshot_item_value(item));
		plan_write(plan,
			(struct members_text){ .write = texts_write_removals, .fold = taken });
		break;
	}
	return ADOPTED_OK;
}

/* --- the check after a change of paired --- */

/*
 * If a count has not grown by the number that was written, a compaction happened in between.
 * The member must also be in the set, or not in it, as the change requires: if other clients
 * have added and removed it meanwhile, a compaction that has not seen both may still change
 * that.
 */
static bool written(
	const struct fold_member *m, const struct counted *before, const struct counted *now)
{
	struct counted_member was = counted_find(before, member_of(m)),
			      is = counted_find(now, member_of(m));
	int32_t net = was.added - was.removed;

	if (m->live)
		return net > 0 || (is.added >= was.added + 1 - net && is.added > is.removed);
	return net <= 0 || (is.removed >= was.removed + net && is.added <= is.removed);
}

static enum adopted_status texts_check(struct snapshot *s, struct snapshot *now)
{
	enum { STEPS = 16 };

	if (!snapshot_fold(s) || !snapshot_fold(now))
		return ADOPTED_PAUSED;
	if (now->status != ADOPTED_OK)
		return ADOPTED_LOST;
	while (now->work.at < s->change->member_count) {
		if (!written(&s->change->members[now->work.at++], &s->all, &now->all))
			return ADOPTED_LOST;
		if (snapshot_is_over(s, STEPS))
			return ADOPTED_PAUSED;
	}
	return ADOPTED_OK;
}

#define ENCODING_OF_TEXTS(id, ...) \
	const struct encoding encoding_##id = { \
		.name = #id, \
		.name_items = name_items, \
		.state = texts_state, \
		.text = texts_text, \
		.change = change, \
		.replace = replace, \
		.take = take, \
		.compact = compact, \
		__VA_ARGS__, \
	}

ENCODING_OF_TEXTS(signed, .reserved = "+-");
ENCODING_OF_TEXTS(csv, .reserved = "", .delimited = true);
ENCODING_OF_TEXTS(tombstone, .reserved = "|", .delimited = true);
ENCODING_OF_TEXTS(paired, .reserved = "", .delimited = true, .check = texts_check);
