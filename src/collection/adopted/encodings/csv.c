/* `a,b,c,`: adding is an APPEND. Removing a member that is there is a CAS of the text without it. */
#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"

static bool only_adds(const struct fold *change)
{
	return change->live == change->member_count;
}

static void name_items(struct snapshot *s)
{
	if (s->count == 0)
		snapshot_add(s, 0, s->key, SLICE(""), SLICE(""), s->purpose == FOR_WRITE && only_adds(s->change));
}

static bool read_list(const struct snapshot *s, struct fold *out)
{
	struct slice text = snapshot_item_value(s->items[0]), member;

	out->bytes += text.n;
	while (text.n) {
		if (!delimited_next(&text, s->rule->delimiter, &member))
			return false;
		fold_add(out, member);
		out->tokens++;
	}
	return true;
}

static enum adopted_status fold(const struct snapshot *s, struct fold *out)
{
	if (!s->items[0]->there)
		return ADOPTED_MISSING;
	return read_list(s, out) ? ADOPTED_OK : ADOPTED_CORRUPT;
}

/* Appends the text without the members that `change` removes; `found` is whether it had any. False if it is malformed. */
static bool without(const struct snapshot *s, const struct fold *change, struct buf *out, bool *found)
{
	struct slice text = snapshot_item_value(s->items[0]), member;
	bool live;

	*found = false;
	while (delimited_next(&text, s->rule->delimiter, &member)) {
		if (fold_mentions(change, member, &live) && !live)
			*found = true;
		else
			delimited_add(out, member, s->rule->delimiter, 1);
	}
	return text.n == 0;
}

static enum adopted_status change_there(struct snapshot *s, struct plan *plan)
{
	struct buf kept = BUF_EMPTY;
	bool found, good = without(s, s->change, &kept, &found);

	if (good && found) {
		struct buf *value = plan_rewrite(plan, s->items[0]);
		buf_add_slice(value, buf_slice(&kept));
		delimited_encode(s->change, s->rule->delimiter, value);
	} else if (good && s->change->live) {
		delimited_encode(s->change, s->rule->delimiter, plan_add(plan, CALL_APPEND, s->items[0], NULL));
	}
	buf_free(&kept);
	return good ? ADOPTED_OK : ADOPTED_CORRUPT;
}

static enum adopted_status change(struct snapshot *s, bool create, struct plan *plan)
{
	bool blind = only_adds(s->change), unread = blind && s->purpose == FOR_WRITE;
	bool missing = !unread && !s->items[0]->there;

	if (missing && !create)
		return ADOPTED_MISSING;
	if (!missing && !blind)
		return change_there(s, plan);
	delimited_encode(
		s->change, s->rule->delimiter, plan_add(plan, missing ? CALL_ADD : CALL_APPEND, s->items[0], NULL));
	return ADOPTED_OK;
}

static enum adopted_status replace(struct snapshot *s, const struct fold *members, struct plan *plan)
{
	delimited_encode(members, s->rule->delimiter, plan_store(plan, s->items[0]));
	return ADOPTED_OK;
}

static void take(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan)
{
	bool found;

	(void)all;
	(void)without(s, taken, plan_rewrite(plan, s->items[0]), &found);
}

/* In a list, duplicates count. */
static void compact(struct snapshot *s, const struct fold *all, struct plan *plan)
{
	struct snapshot_item *item = s->items[0];

	if (s->rule->type == COLLECTION_SET &&
		worth_rewriting(s, snapshot_item_value(item).n, all->live_bytes + all->live))
		delimited_encode(all, s->rule->delimiter, plan_rewrite(plan, item));
}

const struct encoding encoding_csv = {
	.name = "csv",
	.reserved = "",
	.delimited = true,
	.name_items = name_items,
	.fold = fold,
	.change = change,
	.replace = replace,
	.take = take,
	.compact = compact,
};
