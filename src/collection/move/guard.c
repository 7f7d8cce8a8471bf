#include "collection/move/guard.h"

#include <stdlib.h>

#include "collection/move/mark.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"

static void guard_on_read(struct waiter *waiter, const struct result *r);

bool guard_is_marked(const struct moved_call *c, const struct result *r, bool has_value)
{
	return r->status == RESULT_HIT &&
		mark_is_met(c->call.key, r->flags, r->value, has_value, c->imitated);
}

/*
 * Whether it is a part of a base that moves. A part may be written to the former server before
 * the time by a proxy that lets the base refer to it only after the base has moved. So a read
 * that misses it on the new server copies it.
 */
static bool is_moved_part(const struct mover_world *world, struct slice key)
{
	return part_key_base(key).n && mover_unit(world, key).n < key.n && mover_moves(world, key);
}

bool guard_checks(const struct mover_world *world, const struct call *call)
{
	return call->verb == CALL_GET ||
		(call->verb == CALL_TOUCH && is_moved_part(world, call->key));
}

/* --- reads, and parts that are copied when they are missed --- */

static void guard_on_part_copied(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = moved_call_received(waiter);

	(void)r;
	moved_call_send(c, &c->call, false, guard_on_read);
}

static void guard_on_part(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = moved_call_received(waiter);
	struct call call = {
		.verb = CALL_ADD, .key = c->call.key, .value = r->value, .flags = r->flags
	};
	const struct result miss = { .status = RESULT_MISS };

	if (r->status == RESULT_HIT && ttl_exptime(c->world->env, r->ttl, &call.exptime))
		moved_call_send(c, &call, false, guard_on_part_copied);
	else
		c->judged(c, VERDICT_DONE, result_failed(r) ? r : &miss);
}

static void guard_on_read(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = moved_call_received(waiter);
	struct call part = { .verb = CALL_GET, .want = WANT_VALUE | WANT_TTL, .key = c->call.key };

	if (r->status == RESULT_MISS && !c->part && is_moved_part(c->world, c->call.key)) {
		c->part = true;
		moved_call_send(c, &part, true, guard_on_part);
	} else {
		c->judged(c,
			guard_is_marked(c, r, c->call.want & WANT_VALUE) ? VERDICT_MARKED
									 : VERDICT_DONE,
			r);
	}
}

void guard_read(struct moved_call *c, moved_call_judged *judged)
{
	c->judged = judged;
	moved_call_send(c, &c->call, false, guard_on_read);
}

/* --- writes --- */

/*
 * After an error, the value shows whether the item itself caused it; after a META, whether it is
 * a mark.
 */
static bool shows_value(const struct moved_call *c)
{
	return c->failure.happened || c->call.verb == CALL_META;
}

/*
 * The read that follows a doubtful call has a result: the call has met a mark, or an item, or
 * something that is gone since.
 */
static void guard_on_look(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = moved_call_received(waiter);
	bool marked = guard_is_marked(c, r, shows_value(c)),
	     seen = r->status == RESULT_HIT && !marked;
	struct result before = { .status = c->status, .server = r->server };

	if (result_failed(r)) {
		struct result failed = *r;
		failed.status = r->status == RESULT_REFUSED ? r->status : RESULT_UNAVAILABLE;
		c->judged(c, VERDICT_DONE, &failed);
	} else if (seen && c->call.verb == CALL_META) {
		c->imitated = true;
		c->judged(c, VERDICT_AGAIN, r);
	} else if (seen && !result_failed(&before)) {
		c->judged(c, VERDICT_DONE, &before);
	} else if (seen && (!verb_is_number(r->value) || c->tries >= GUARD_COMPARES)) {
		c->judged(c, VERDICT_DONE, &c->failure.result);
	} else if (r->status == RESULT_MISS && before.status == RESULT_EXISTS &&
		!c->call.vivifies) {
		c->judged(c, VERDICT_DONE,
			&(struct result){ .status = RESULT_MISS, .server = r->server });
	} else {
		c->judged(c, marked ? VERDICT_MARKED : VERDICT_AGAIN, r);
	}
}

static void look_at_mark(struct moved_call *c, const struct result *r)
{
	struct call look = { .verb = CALL_GET, .key = c->call.key };

	if (result_failed(r))
		failure_keep(&c->failure, r);
	look.want = shows_value(c) ? WANT_VALUE : 0;
	moved_call_send(c, &look, false, guard_on_look);
}

static void guard_on_result(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = moved_call_received(waiter);

	c->status = r->status;
	if (verb_met_mark(&c->call, r, c->imitated))
		c->judged(c, VERDICT_MARKED, r);
	else if (verb_is_doubtful(&c->call, r, c->imitated))
		look_at_mark(c, r);
	else
		c->judged(c, VERDICT_DONE, r);
}

/* --- sending --- */

void guard_repeat(struct moved_call *c)
{
	moved_call_send(c, &c->call, false, guard_on_result);
}

void guard_send(struct moved_call *c, enum guard guard, moved_call_judged *judged)
{
	c->judged = judged;
	if (guard_checks(c->world, &c->call)) {
		guard_read(c, judged);
	} else if (guard == GUARD_HOLD || guard == GUARD_TELLS || c->call.verb == CALL_META) {
		guard_repeat(c);
	} else {
		mover_send(c->world, &c->call, c->asker, mover_place(c->world, c->call.key, false));
		free(c);
	}
}
