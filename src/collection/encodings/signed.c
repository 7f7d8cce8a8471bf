/* `+1234+222-222`: both adding and removing are an APPEND, and the last word on a member holds. */
#include "collection/encodings/encodings.h"
#include "collection/encodings/words.h"

static void name_pieces(struct snapshot *s)
{
	if (s->count == 0)
		snapshot_add(s, 0, s->key, SLICE(""), SLICE(""), s->purpose == FOR_WRITE);
}

static enum coded_status fold(const struct snapshot *s, struct fold *out)
{
	if (!s->pieces[0]->there)
		return CODED_MISSING;
	return signed_fold(out, piece_value(s->pieces[0])) ? CODED_OK : CODED_CORRUPT;
}

static enum coded_status change(struct snapshot *s, bool create, struct plan *plan)
{
	bool missing = s->purpose != FOR_WRITE && !s->pieces[0]->there;

	if (missing && !create)
		return CODED_MISSING;
	signed_encode(s->change, true, plan_add(plan, missing ? CALL_ADD : CALL_APPEND, s->pieces[0], NULL));
	return CODED_OK;
}

static enum coded_status replace(struct snapshot *s, const struct fold *members, struct plan *plan)
{
	struct piece *piece = s->pieces[0];

	signed_encode(members, false, plan_store(plan, piece));
	return CODED_OK;
}

static void take(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan)
{
	struct buf *value = plan_rewrite(plan, s->pieces[0]);

	(void)all;
	buf_add_slice(value, piece_value(s->pieces[0]));
	signed_encode(taken, true, value);
}

static void compact(struct snapshot *s, const struct fold *all, struct plan *plan)
{
	if (worth_rewriting(piece_value(s->pieces[0]).n, signed_size(all, false)))
		signed_encode(all, false, plan_rewrite(plan, s->pieces[0]));
}

const struct encoding encoding_signed = {
	.name = "signed",
	.reserved = "+-",
	.name_pieces = name_pieces,
	.fold = fold,
	.change = change,
	.replace = replace,
	.take = take,
	.compact = compact,
};
