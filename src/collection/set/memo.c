#include "collection/set/memo.h"

static bool is_equal(const struct set_memo *memo, const struct set_request *r)
{
	struct slice bounds = buf_slice(&memo->bounds);

	return memo->known && memo->verb == r->verb && memo->count == r->count &&
		memo->after == r->range.after && memo->has_to == r->range.has_to &&
		memo->from_size == r->range.from.n && bounds.n == r->range.from.n + r->range.to.n &&
		slice_equal(slice_of(bounds.p, memo->from_size), r->range.from) &&
		slice_equal(slice_skip(bounds, memo->from_size), r->range.to);
}

/*
 * Blocks of a range are parts of a larger request, and not memoized; nor are members that match a
 * pattern.
 */
static bool is_remembered(const struct set_request *r)
{
	return r->verb == SET_COUNT || (r->verb == SET_RANGE && r->bytes == 0 && !r->pattern.p);
}

static size_t memory_of(const struct set_memo *memo)
{
	return memo->bounds.cap + (memo->text ? memo->text->text.cap : 0);
}

bool memos_find(const struct set_memos *memos, struct set_request *r)
{
	if (!is_remembered(r))
		return false;
	for (size_t i = 0; i < MEMOS; i++) {
		const struct set_memo *memo = &memos->list[i];
		if (!is_equal(memo, r))
			continue;
		r->number = memo->number;
		r->more = memo->more;
		r->shared = memo->text ? shared_hold(memo->text) : NULL;
		return true;
	}
	return false;
}

void memos_keep(struct set_memos *memos, const struct set_request *r)
{
	struct set_memo *memo = &memos->list[memos->next];

	if (!is_remembered(r) || (r->verb == SET_RANGE && !r->shared))
		return;
	memos->next = (memos->next + 1) % MEMOS;
	memos->any = true;
	memos->memory -= memory_of(memo);
	shared_drop(memo->text);
	buf_consume(&memo->bounds, buf_size(&memo->bounds));
	buf_add_slice(&memo->bounds, r->range.from);
	buf_add_slice(&memo->bounds, r->range.to);
	*memo = (struct set_memo){
		.known = true,
		.verb = r->verb,
		.after = r->range.after,
		.has_to = r->range.has_to,
		.more = r->more,
		.count = r->count,
		.number = r->number,
		.bounds = memo->bounds,
		.from_size = r->range.from.n,
		.text = r->shared ? shared_hold(r->shared) : NULL,
	};
	memos->memory += memory_of(memo);
}

void memos_forget(struct set_memos *memos)
{
	if (!memos->any)
		return;
	for (size_t i = 0; i < MEMOS; i++) {
		shared_drop(memos->list[i].text);
		buf_free(&memos->list[i].bounds);
	}
	*memos = (struct set_memos){ 0 };
}
