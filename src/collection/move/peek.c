#include "collection/move/peek.h"

#include <stddef.h>

/*
 * Returns whether the new server has only a claim, or a copy of this very item. A copy of a
 * different item may be the only copy left, and words around a mark may be the newest.
 */
static bool is_behind(struct slice key, const struct result *here, const struct result *former)
{
	struct mark mark;

	if (here->status != RESULT_HIT)
		return true;
	mark = mark_read(key, here->flags, here->value);
	if (mark.before.n || mark.behind.n)
		return false;
	return mark.kind == MARK_CLAIM || (mark.kind == MARK_COPY && mark.cas == former->cas);
}

static bool is_item(const struct peek *peek, const struct result *r)
{
	return r->status == RESULT_HIT &&
		!mark_is_met(peek->key, r->flags, r->value, peek->has_value, false);
}

static enum peek_place judge(
	const struct peek *peek, const struct result *former, const struct result *here)
{
	if (peek->is_part && former->status == RESULT_HIT)
		return PEEK_FORMER;
	if (peek->failure.happened)
		return PEEK_FAILED;
	if (is_item(peek, former))
		return is_behind(peek->key, here, former) ? PEEK_FORMER : PEEK_UNCLEAR;
	if (is_item(peek, here))
		return former->status != RESULT_HIT ? PEEK_HERE : PEEK_UNCLEAR;
	return former->status != RESULT_HIT && here->status != RESULT_HIT ? PEEK_NOWHERE
									  : PEEK_UNCLEAR;
}

static void take_look(struct peek *peek, const struct result *r, bool is_former)
{
	const struct result *former, *here;
	enum peek_place place;

	if (result_failed(r))
		failure_keep(&peek->failure, r);
	if (!peek->has_one) {
		peek->has_one = true;
		peek->one = *r;
		buf_add_slice(&peek->value, r->value);
		peek->one.value = buf_slice(&peek->value);
		peek->one.line = slice_of("", 0);
		return;
	}
	former = is_former ? r : &peek->one;
	here = is_former ? &peek->one : r;
	place = judge(peek, former, here);
	peek->done(peek, place,
		place == PEEK_FAILED           ? &peek->failure.result
			: place == PEEK_FORMER ? former
					       : here);
}

static void peek_on_former(struct waiter *waiter, const struct result *r)
{
	take_look((struct peek *)((char *)waiter - offsetof(struct peek, former)), r, true);
}

static void peek_on_here(struct waiter *waiter, const struct result *r)
{
	take_look((struct peek *)((char *)waiter - offsetof(struct peek, here)), r, false);
}

void peek_start(struct peek *peek, struct mover_world *world, const struct call *call, bool is_part,
	void (*done)(struct peek *peek, enum peek_place place, const struct result *r))
{
	struct call copy = *call;

	copy.want |= WANT_CAS;
	*peek = (struct peek){
		.key = call->key,
		.former = { peek_on_former, call->key },
		.here = { peek_on_here, call->key },
		.is_part = is_part,
		.has_value = call->want & WANT_VALUE,
		.done = done,
	};
	mover_send(world, &copy, &peek->former, mover_place(world, call->key, true));
	mover_send(world, &copy, &peek->here, mover_place(world, call->key, false));
}

void peek_fini(struct peek *peek)
{
	buf_free(&peek->value);
	failure_free(&peek->failure);
}
