/*
 * `b,|a,b,c,`: removals before the bar, additions after it, and both are counted. Adding is an APPEND and removing a PREPEND.
 * A change reads the item first, to know the counts and to see the bar: before a value without one, a removal would read as an
 * addition.
 */
#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"

static void name_items(struct snapshot *s)
{
	if (s->count == 0)
		snapshot_add(s, 0, s->key, SLICE(""), SLICE(""), false);
}

static enum adopted_status count(const struct snapshot *s, struct counted *c)
{
	struct slice value = snapshot_item_value(s->items[0]);
	const char *bar = value.n ? memchr(value.p, '|', value.n) : NULL;
	struct slice removed, added;

	if (!s->items[0]->there)
		return ADOPTED_MISSING;
	if (!bar)
		return ADOPTED_CORRUPT;
	removed = slice_of(value.p, (size_t)(bar - value.p));
	added = slice_skip(value, removed.n + 1);
	if (added.n && memchr(added.p, '|', added.n))
		return ADOPTED_CORRUPT;
	if (!counted_read(c, added, s->rule->delimiter, false) || !counted_read(c, removed, s->rule->delimiter, true))
		return ADOPTED_CORRUPT;
	c->fold.bytes++;
	return ADOPTED_OK;
}

static enum adopted_status fold(const struct snapshot *s, struct fold *out)
{
	struct counted c = { .fold.seed = s->seed };
	enum adopted_status status = count(s, &c);

	counted_to_fold(&c, out);
	return status;
}

static void write_all(const struct snapshot *s, const struct fold *members, struct buf *out)
{
	BUF_ADD(out, "|");
	delimited_encode(members, s->rule->delimiter, out);
}

static void change_counted(struct snapshot *s, const struct counted *c, struct plan *plan)
{
	struct snapshot_item *item = s->items[0];
	struct buf added = BUF_EMPTY, removed = BUF_EMPTY;

	if (!counted_change(c, s->change, s->rule->delimiter, &added, &removed)) {
		write_all(s, &c->fold, plan_rewrite(plan, item));
		plan->again = true;
	} else {
		if (buf_size(&added))
			buf_add_slice(plan_add(plan, CALL_APPEND, item, NULL), buf_slice(&added));
		if (buf_size(&removed))
			buf_add_slice(plan_add(plan, CALL_PREPEND, item, NULL), buf_slice(&removed));
	}
	buf_free(&added);
	buf_free(&removed);
}

static enum adopted_status change(struct snapshot *s, bool create, struct plan *plan)
{
	struct counted c = { .fold.seed = s->seed };
	enum adopted_status status = count(s, &c);

	if (status == ADOPTED_OK)
		change_counted(s, &c, plan);
	if (status == ADOPTED_MISSING && create) {
		write_all(s, s->change, plan_add(plan, CALL_ADD, s->items[0], NULL));
		status = ADOPTED_OK;
	}
	counted_free(&c);
	return status;
}

static enum adopted_status replace(struct snapshot *s, const struct fold *members, struct plan *plan)
{
	write_all(s, members, plan_store(plan, s->items[0]));
	return ADOPTED_OK;
}

/* Writes each remaining member once. */
static void take(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan)
{
	struct buf *value = plan_rewrite(plan, s->items[0]);
	bool live;

	BUF_ADD(value, "|");
	for (size_t i = 0; i < all->member_count; i++) {
		struct slice member = member_of(&all->members[i]);
		if (all->members[i].live && !fold_mentions(taken, member, &live))
			delimited_add(value, member, s->rule->delimiter, 1);
	}
}

static void compact(struct snapshot *s, const struct fold *all, struct plan *plan)
{
	struct snapshot_item *item = s->items[0];

	if (worth_rewriting(s, snapshot_item_value(item).n, 1 + all->live_bytes + all->live))
		write_all(s, all, plan_rewrite(plan, item));
}

const struct encoding encoding_tombstone = {
	.name = "tombstone",
	.reserved = "|",
	.delimited = true,
	.name_items = name_items,
	.fold = fold,
	.change = change,
	.replace = replace,
	.take = take,
	.compact = compact,
};
