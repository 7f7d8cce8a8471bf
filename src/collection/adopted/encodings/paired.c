/*
 * Two items of delimited members, `follow-X` for additions and `unfollow-X` for removals, both counted. Adding and removing
 * are an APPEND to their item, which repeats the member as often as needed. A compaction between the read and the append
 * changes that number, so the counts are checked after the append.
 *
 * No call changes both items, so a compaction has several steps of one CAS each. No step changes the set:
 *
 *     drop removals of members that are in the set, or were never added
 *     -> drop additions: all of members that are not in the set, and all except one of the others
 *     -> drop the removals of those that are not added any more
 *
 * Each of these depends on the counts of both items, and its CAS checks only the item that it changes. So each step first writes
 * the other item, unchanged. Of two steps that were planned from the same counts, at least one then fails: otherwise one could drop
 * a removal for which the other drops the addition.
 */
#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"

enum { REMOVED, ADDED };

static void name_items(struct snapshot *s)
{
	if (s->count)
		return;
	snapshot_add(s, REMOVED, s->rule->removed, slice_skip(s->key, s->rule->prefix.n), SLICE(""), false);
	snapshot_add(s, ADDED, s->key, SLICE(""), SLICE(""), false);
}

static enum adopted_status count(const struct snapshot *s, struct counted *c)
{
	if (!counted_read(c, snapshot_item_value(s->items[ADDED]), s->rule->delimiter, false) ||
		!counted_read(c, snapshot_item_value(s->items[REMOVED]), s->rule->delimiter, true))
		return ADOPTED_CORRUPT;
	return s->items[ADDED]->there ? ADOPTED_OK : ADOPTED_MISSING;
}

static enum adopted_status fold(const struct snapshot *s, struct fold *out)
{
	struct counted c = { .fold.seed = s->seed };
	enum adopted_status status = count(s, &c);

	counted_to_fold(&c, out);
	return status;
}

/*
 * Writes an item unchanged, so that a CAS of it that was planned before fails. This CAS also fails if the item has
 * changed.
 */
static void plan_unchanged(struct snapshot_item *item, struct plan *plan)
{
	buf_add_slice(plan_rewrite(plan, item), snapshot_item_value(item));
}

/* Keeps the removals that count: of members that were added, but not more often. */
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
	delimited_encode(&c->fold, s->rule->delimiter, plan_rewrite(plan, item));
}

static void plan_compaction(const struct snapshot *s, const struct counted *c, struct plan *plan)
{
	plan_removed(s, c, plan);
	if (plan->count == 0)
		plan_added(s, c, plan);
	plan->again = plan->count > 0;
}

/* Appends each live member as often as the removals require. */
static void add_members(
	const struct snapshot *s, const struct counted *removals, const struct fold *members, struct buf *out)
{
	for (size_t i = 0; i < members->member_count; i++) {
		struct slice member = member_of(&members->members[i]);
		if (members->members[i].live)
			delimited_add(out, member, s->rule->delimiter, 1 - counted_net(removals, member));
	}
}

static void change_counted(struct snapshot *s, const struct counted *c, struct plan *plan)
{
	struct snapshot_item *added = s->items[ADDED], *removed = s->items[REMOVED];
	struct buf adds = BUF_EMPTY, removes = BUF_EMPTY;

	if (!counted_change(c, s->change, s->rule->delimiter, &adds, &removes)) {
		plan_compaction(s, c, plan);
	} else {
		if (buf_size(&adds))
			buf_add_slice(plan_add(plan, CALL_APPEND, added, NULL), buf_slice(&adds));
		if (buf_size(&removes))
			buf_add_slice(plan_add(plan, removed->there ? CALL_APPEND : CALL_ADD, removed, added),
				buf_slice(&removes));
	}
	buf_free(&adds);
	buf_free(&removes);
	plan->check = plan->count > 0 && !plan->again;
}

/*
 * If a count has not grown by the number that was written, a compaction happened in between. The member must also be
 * in the set, or not in it, as the change requires: if other clients have added and removed it meanwhile, a compaction
 * that has not seen both may still change that.
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

/*
 * A new collection outweighs the removals that an earlier one has left. They are not dropped: by then another collection may exist, and they
 * apply to it. They get the time to live of the new one, after it is there, so that they do not expire first.
 */
static void plan_new(const struct snapshot *s, const struct counted *c, struct plan *plan)
{
	struct snapshot_item *removed = s->items[REMOVED];
	struct buf *value = plan_add(plan, CALL_ADD, s->items[ADDED], NULL);

	add_members(s, c, s->change, value);
	if (removed->there)
		buf_add_slice(plan_add(plan, CALL_CAS, removed, NULL), snapshot_item_value(removed));
	plan->check = true;
}

static enum adopted_status change(struct snapshot *s, bool create, struct plan *plan)
{
	struct counted c = { .fold.seed = s->seed };
	enum adopted_status status = count(s, &c);

	if (status == ADOPTED_MISSING && create) {
		plan_new(s, &c, plan);
		status = ADOPTED_OK;
	} else if (status == ADOPTED_OK) {
		change_counted(s, &c, plan);
	}
	counted_free(&c);
	return status;
}

/* One CAS on the additions, with each member as often as the removals require. */
static enum adopted_status replace(struct snapshot *s, const struct fold *members, struct plan *plan)
{
	struct snapshot_item *item = s->items[ADDED];
	struct counted c = { .fold.seed = s->seed };
	struct buf *value;

	if (!counted_read(&c, snapshot_item_value(s->items[REMOVED]), s->rule->delimiter, true)) {
		counted_free(&c);
		return ADOPTED_CORRUPT;
	}
	value = plan_store(plan, item);
	add_members(s, &c, members, value);
	counted_free(&c);
	/* The removals must not expire before the additions. */
	if (s->items[REMOVED]->there)
		buf_add_slice(
			plan_add(plan, CALL_CAS, s->items[REMOVED], NULL), snapshot_item_value(s->items[REMOVED]));
	return ADOPTED_OK;
}

static void take(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan)
{
	struct snapshot_item *added = s->items[ADDED], *removed = s->items[REMOVED];
	struct counted c = { .fold.seed = s->seed };
	struct buf *value = removed->there ? plan_rewrite(plan, removed) : plan_add(plan, CALL_ADD, removed, added);

	(void)all;
	(void)count(s, &c);
	buf_add_slice(value, snapshot_item_value(removed));
	for (size_t i = 0; i < taken->member_count; i++) {
		struct slice member = member_of(&taken->members[i]);
		delimited_add(value, member, s->rule->delimiter, counted_net(&c, member));
	}
	counted_free(&c);
}

static void compact(struct snapshot *s, const struct fold *all, struct plan *plan)
{
	struct counted c = { .fold.seed = s->seed };
	size_t now = snapshot_item_value(s->items[ADDED]).n + snapshot_item_value(s->items[REMOVED]).n;

	if (worth_rewriting(s, now, all->live_bytes + all->live) && count(s, &c) == ADOPTED_OK)
		plan_compaction(s, &c, plan);
	counted_free(&c);
}

const struct encoding encoding_paired = {
	.name = "paired",
	.reserved = "",
	.delimited = true,
	.name_items = name_items,
	.fold = fold,
	.change = change,
	.replace = replace,
	.take = take,
	.compact = compact,
	.check = check,
};
