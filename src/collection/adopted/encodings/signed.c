/* `+1234+222-222`: adding and removing are both an APPEND. The last word on a member decides. */
#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"

static void name_items(struct snapshot *s)
{
	if (s->count == 0)
		snapshot_add(s, 0, s->key, SLICE(""), SLICE(""), s->purpose == FOR_WRITE);
}

static enum adopted_status fold(const struct snapshot *s, struct fold *out)
{
	if (!s->items[0]->there)
		return ADOPTED_MISSING;
	return signed_fold(out, snapshot_item_value(s->items[0])) ? ADOPTED_OK : ADOPTED_CORRUPT;
}

static enum adopted_status change(struct snapshot *s, bool create, struct plan *plan)
{
	bool missing = s->purpose != FOR_WRITE && !s->items[0]->there;

	if (missing && !create)
		return ADOPTED_MISSING;
	signed_encode(s->change, true, plan_add(plan, missing ? CALL_ADD : CALL_APPEND, s->items[0], NULL));
	return ADOPTED_OK;
}

static enum adopted_status replace(struct snapshot *s, const struct fold *members, struct plan *plan)
{
	signed_encode(members, false, plan_store(plan, s->items[0]));
	return ADOPTED_OK;
}

static void take(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan)
{
	struct buf *value = plan_rewrite(plan, s->items[0]);

	(void)all;
	buf_add_slice(value, snapshot_item_value(s->items[0]));
	signed_encode(taken, true, value);
}

static void compact(struct snapshot *s, const struct fold *all, struct plan *plan)
{
	if (worth_rewriting(s, snapshot_item_value(s->items[0]).n, signed_size(all, false)))
		signed_encode(all, false, plan_rewrite(plan, s->items[0]));
}

const struct encoding encoding_signed = {
	.name = "signed",
	.reserved = "+-",
	.name_items = name_items,
	.fold = fold,
	.change = change,
	.replace = replace,
	.take = take,
	.compact = compact,
};
