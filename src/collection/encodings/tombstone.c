/*
 * `b,|a,b,c,`: what stands before the bar was removed, what stands behind it added, and both are counted. Adding is an
 * APPEND, removing a PREPEND, so it is looked first at how many of them it takes. What is there is never blindly taken for
 * a list: before a value without a bar, a removal would read as an addition.
 */
#include "collection/encodings/counted.h"
#include "collection/encodings/encodings.h"
#include "collection/encodings/words.h"

static void name_pieces(struct snapshot *s)
{
	if (s->count == 0)
		snapshot_add(s, 0, s->key, SLICE(""), SLICE(""), false);
}

static enum coded_status count(const struct snapshot *s, struct counted *c)
{
	struct slice value = piece_value(s->pieces[0]);
	const char *bar = value.n ? memchr(value.p, '|', value.n) : NULL;
	struct slice removed, added;

	if (!s->pieces[0]->there)
		return CODED_MISSING;
	if (!bar)
		return CODED_CORRUPT;
	removed = slice_of(value.p, (size_t)(bar - value.p));
	added = slice_skip(value, removed.n + 1);
	if (added.n && memchr(added.p, '|', added.n))
		return CODED_CORRUPT;
	if (!counted_read(c, added, s->rule->delimiter, false) || !counted_read(c, removed, s->rule->delimiter, true))
		return CODED_CORRUPT;
	c->fold.bytes++;
	return CODED_OK;
}

static enum coded_status fold(const struct snapshot *s, struct fold *out)
{
	struct counted c = { .fold.seed = s->seed };
	enum coded_status status = count(s, &c);

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
	struct piece *piece = s->pieces[0];
	struct buf added = BUF_EMPTY, removed = BUF_EMPTY;

	if (!counted_change(c, s->change, s->rule->delimiter, &added, &removed)) {
		write_all(s, &c->fold, plan_rewrite(plan, piece));
		plan->again = true;
	} else {
		if (buf_size(&added))
			buf_add_slice(plan_add(plan, CALL_APPEND, piece, NULL), buf_slice(&added));
		if (buf_size(&removed))
			buf_add_slice(plan_add(plan, CALL_PREPEND, piece, NULL), buf_slice(&removed));
	}
	buf_free(&added);
	buf_free(&removed);
}

static enum coded_status change(struct snapshot *s, bool create, struct plan *plan)
{
	struct counted c = { .fold.seed = s->seed };
	enum coded_status status = count(s, &c);

	if (status == CODED_OK)
		change_counted(s, &c, plan);
	if (status == CODED_MISSING && create) {
		write_all(s, s->change, plan_add(plan, CALL_ADD, s->pieces[0], NULL));
		status = CODED_OK;
	}
	counted_free(&c);
	return status;
}

static enum coded_status replace(struct snapshot *s, const struct fold *members, struct plan *plan)
{
	struct piece *piece = s->pieces[0];

	write_all(s, members, plan_store(plan, piece));
	return CODED_OK;
}

/* What is left, counted anew. */
static void take(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan)
{
	struct buf *value = plan_rewrite(plan, s->pieces[0]);
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
	struct piece *piece = s->pieces[0];

	if (worth_rewriting(piece_value(piece).n, 1 + all->live_bytes + all->live))
		write_all(s, all, plan_rewrite(plan, piece));
}

const struct encoding encoding_tombstone = {
	.name = "tombstone",
	.reserved = "|",
	.delimited = true,
	.name_pieces = name_pieces,
	.fold = fold,
	.change = change,
	.replace = replace,
	.take = take,
	.compact = compact,
};
