#include "collection/move/unit.h"

#include <stdlib.h>

#include "util/alloc.h"
#include "util/hash.h"

enum { WAIT_MS = 20, TRIES = 16 };

static void unit_on_moved(struct mover *mover);
static moved_call_judged unit_on_verdict;

/* --- the list --- */

struct unit *unit_find(const struct moves *m, uint64_t hash, struct slice key)
{
	struct unit *u;

	LIST_FOREACH(u, &m->units[hash % MOVES_BUCKETS], link) {
		if (u->hash == hash && slice_equal(u->mover.key, key))
			return u;
	}
	return NULL;
}

struct unit *unit_add(struct moves *m, uint64_t hash, struct slice key)
{
	struct unit *u = xcalloc(1, sizeof(*u) + key.n);

	u->moves = m;
	u->hash = hash;
	slice_write(u->key, key);
	u->mover.world = &m->world;
	u->mover.key = slice_of(u->key, key.n);
	u->mover.knows = !found_is_late(&m->found, hash);
	u->looked = m->world.env->now;
	u->asked = u->former = m->world.calls;
	STAILQ_INIT(&u->reads);
	STAILQ_INIT(&u->calls);
	LIST_INSERT_HEAD(&m->units[hash % MOVES_BUCKETS], u, link);
	m->world.busy++;
	return u;
}

void unit_free(struct unit *u)
{
	u->moves->world.busy--;
	mover_fini(&u->mover);
	free(u);
}

void unit_leave(struct unit *u)
{
	LIST_REMOVE(u, link);
	u->state = UNIT_GONE;
}

static void unit_on_clean(struct mover *mover)
{
	unit_free((struct unit *)((char *)mover - offsetof(struct unit, mover)));
}

/*
 * Its calls are sent. The parts of a unit that was moved are still to be deleted on the former
 * server.
 */
static void retire(struct unit *u)
{
	if (!mover_clean(&u->mover, unit_on_clean))
		unit_free(u);
}

/* --- looking for it --- */

void unit_found(struct unit *u, bool seen, bool moved)
{
	struct moves *m = u->moves;
	uint64_t now = m->world.env->now;

	found_note(&m->found, u->hash, moved, now + MOVES_LOOK_MS,
		now + (uint64_t)m->margin * 1000 + 1);
	u->state = seen ? UNIT_SEEN : UNIT_FOUND;
}

static void note_imitated(struct moved_calls *calls, bool imitated)
{
	struct moved_call *c;

	STAILQ_FOREACH(c, calls, link)
		c->imitated = imitated;
}

static void unit_on_moved(struct mover *mover)
{
	struct unit *u = (struct unit *)((char *)mover - offsetof(struct unit, mover));
	struct moves *m = u->moves;

	m->world.stats.moved += mover->moved;
	m->world.stats.merged += mover->moved && mover->join == JOIN_BOTH;
	m->world.stats.dropped += mover->moved && mover->dropped;
	if (mover->failure.happened) {
		m->world.stats.failed++;
		unit_leave(u);
		moved_calls_refuse(&u->reads, &mover->failure.result);
		moved_calls_refuse(&u->calls, &mover->failure.result);
		if (u->peeks == 0)
			unit_free(u);
		return;
	}
	if (!mover->moved && mover->there && !mover->imitated)
		found_unmarked(&m->found, u->hash, u->looked);
	unit_found(u, mover->there, mover->moved);
	u->asked = mover->asked;
	note_imitated(&u->reads, mover->imitated);
	note_imitated(&u->calls, mover->imitated);
	unit_go_on(u);
}

void unit_start(struct unit *u)
{
	mover_start(&u->mover, unit_on_moved);
}

static void unit_on_time(struct waiter *waiter, const struct result *r)
{
	struct unit *u = (struct unit *)((char *)waiter - offsetof(struct unit, waiter));
	struct env *env = u->moves->world.env;

	(void)r;
	u->former = u->moves->world.calls;
	if (env->unix_time < u->moves->at)
		env->later(env, &u->waiter, WAIT_MS);
	else
		unit_start(u);
}

void unit_queue(
	struct moves *m, struct moved_call *c, struct slice key, uint64_t hash, bool at_once)
{
	struct unit *u = unit_find(m, hash, key);
	struct env *env = m->world.env;
	bool is_new = !u;

	if (is_new)
		u = unit_add(m, hash, key);
	u->writes = u->writes || c->call.verb != CALL_GET;
	STAILQ_INSERT_TAIL(&u->calls, c, link);
	if (is_new && (at_once || env->unix_time >= m->at)) {
		unit_start(u);
	} else if (is_new) {
		u->waiter = (struct waiter){ unit_on_time, u->mover.key };
		env->later(env, &u->waiter, WAIT_MS);
	}
}

/* The calls that remain wait until the unit was looked for again. */
static void start_again(struct unit *u)
{
	struct moves *m = u->moves;
	struct unit *next;

	if (u->state == UNIT_MARKED)
		found_forget(&m->found, u->hash);
	next = unit_add(m, u->hash, u->mover.key);
	next->writes = true;
	STAILQ_CONCAT(&next->calls, &u->calls);
	unit_start(next);
}

/* --- verdicts --- */

/* Counts an attempt. False: it was one too many, and the call has ended. */
static bool may_retry(struct moved_call *c)
{
	if (++c->tries <= TRIES)
		return true;
	moved_call_refuse(c,
		&(struct result){ .status = RESULT_REFUSED,
			.line = SLICE("SERVER_ERROR busy: the key is being moved"),
			.server = "setlistd" });
	return false;
}

/* The call that blocks a unit's queue comes before all others again. */
static void retry_in(struct unit *u, struct moved_call *c, bool marked)
{
	c->unit = NULL;
	if (marked)
		u->state = UNIT_MARKED;
	if (may_retry(c))
		STAILQ_INSERT_HEAD(&u->calls, c, link);
	unit_go_on(u);
}

/*
 * A mark shows that a proxy moves the key, or that one was killed while it did. The call begins
 * again when that has ended.
 */
static void settle(struct moved_call *c)
{
	struct moves *m = c->moves;
	struct slice key = mover_unit(&m->world, c->call.key);
	uint64_t hash = hash_slice(key, m->seed);
	struct unit *u = unit_find(m, hash, key);

	found_forget(&m->found, hash);
	if (!may_retry(c))
		return;
	if (u && u->state != UNIT_SOUGHT)
		u->state = UNIT_MARKED;
	unit_queue(m, c, key, hash, true);
}

static void end_call(struct moved_call *c, const struct result *r)
{
	struct unit *u = c->unit;

	moved_call_end(c, r);
	if (u)
		unit_go_on(u);
}

static void unit_on_verdict(struct moved_call *c, enum verdict verdict, const struct result *r)
{
	bool marked = verdict == VERDICT_MARKED;

	if (verdict == VERDICT_DONE)
		end_call(c, r);
	else if (c->unit)
		retry_in(c->unit, c, marked);
	else if (marked)
		settle(c);
	else if (may_retry(c))
		guard_repeat(c);
}

void unit_send(struct moved_call *c, enum guard guard)
{
	guard_send(c, guard, unit_on_verdict);
}

void unit_read(struct moved_call *c)
{
	guard_read(c, unit_on_verdict);
}

/* --- its queue --- */

/* Of a call on a part none is needed: only its base is claimed. */
static enum guard guard_of(const struct unit *u, const struct call *call)
{
	return call->key.n == u->mover.key.n
		? verb_guard(call, found_is_late(&u->moves->found, u->hash))
		: GUARD_NONE;
}

/*
 * Whether the former server must be asked again before the call. What a setlistd that does not
 * know the new ring has written there before would come back after a deletion.
 */
static bool needs_former(const struct unit *u, const struct moved_call *c)
{
	return c->number > u->former && c->call.key.n == u->mover.key.n &&
		verb_removes(&c->call, u->moves->world.env->unix_time);
}

/*
 * The look has found no item. That answers the first calls of the queue that need one and were
 * received before the look was sent.
 */
static void answer_miss(struct unit *u)
{
	struct moved_call *c;

	while ((c = STAILQ_FIRST(&u->calls)) && c->number <= u->asked &&
		guard_of(u, &c->call) == GUARD_LOOK && c->call.verb != CALL_META) {
		STAILQ_REMOVE_HEAD(&u->calls, link);
		moved_call_end(c, &(struct result){ .status = verb_status_of_miss(&c->call) });
	}
}

/*
 * Whether the call is sent as a CAS with the cas id that its look has seen. If another client
 * deletes the item after the look, a plain REPLACE or DELETE would take a late claim for the
 * item. After GUARD_COMPARES writes of other clients in a row the plain call is sent, so that it
 * does not fail on a key with many writers.
 */
static bool is_compared(const struct unit *u, const struct moved_call *c)
{
	return guard_of(u, &c->call) == GUARD_LOOK && verb_compares(&c->call) &&
		c->tries < GUARD_COMPARES;
}

static void unit_on_compared(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = moved_call_received(waiter);
	struct result result = *r;

	if (r->status == RESULT_EXISTS) {
		retry_in(c->unit, c, false);
		return;
	}
	if (r->status == RESULT_MISS)
		result.status = verb_status_of_miss(&c->call);
	end_call(c, &result);
}

/*
 * The item was seen, so calls that were received before that need no look of their own, except
 * after one that may delete the item, or whose result is not known. An append may still meet a
 * late claim, if another client has deleted the item since. The mover drops the words that are
 * appended to such a claim: the append took effect right before the item was deleted. A META
 * that meets one is not detected.
 */
static void send_seen(struct unit *u)
{
	struct moved_call *c;
	enum guard guard;
	bool removes = false;

	while (!removes && (c = STAILQ_FIRST(&u->calls)) && !needs_former(u, c) &&
		(guard = guard_of(u, &c->call)) != GUARD_HOLD) {
		if (guard == GUARD_LOOK && (c->number > u->asked || is_compared(u, c)))
			return;
		removes = guard == GUARD_LOOK &&
			(c->call.verb == CALL_DELETE ||
				(c->call.verb == CALL_META && !verb_only_reads(&c->call)));
		STAILQ_REMOVE_HEAD(&u->calls, link);
		unit_send(c, guard);
	}
}

/*
 * The look has found the item: the first call is compared with it, or all calls are sent that
 * need no other look.
 */
static void send_first(struct unit *u, struct moved_call *c, const struct result *look)
{
	struct call call;

	if (!is_compared(u, c)) {
		send_seen(u);
		unit_go_on(u);
		return;
	}
	STAILQ_REMOVE_HEAD(&u->calls, link);
	call = verb_compare(&c->call, look);
	c->unit = u;
	moved_call_send(c, &call, false, unit_on_compared);
}

static void unit_on_look(struct waiter *waiter, const struct result *r)
{
	struct unit *u = (struct unit *)((char *)waiter - offsetof(struct unit, waiter));
	struct moved_call *c = STAILQ_FIRST(&u->calls);
	bool marked = guard_is_marked(c, r, false);

	if (!marked && !result_failed(r))
		found_unmarked(&u->moves->found, u->hash, u->looked);
	if (r->status == RESULT_HIT && !marked) {
		send_first(u, c, r);
		return;
	}
	if (marked) {
		STAILQ_REMOVE_HEAD(&u->calls, link);
		retry_in(u, c, true);
		return;
	}
	if (result_failed(r)) {
		STAILQ_REMOVE_HEAD(&u->calls, link);
		moved_call_refuse(c, r);
	} else if (c->call.verb == CALL_META) {
		STAILQ_REMOVE_HEAD(&u->calls, link);
		unit_send(c, GUARD_NONE);
	} else {
		answer_miss(u);
	}
	unit_go_on(u);
}

static void look_first(struct unit *u)
{
	struct mover_world *world = &u->moves->world;
	struct call look = { .verb = CALL_GET, .want = WANT_CAS, .key = u->mover.key };

	u->waiter = (struct waiter){ unit_on_look, u->mover.key };
	u->looked = world->env->now;
	u->asked = world->calls;
	mover_send(world, &look, &u->waiter, mover_place(world, look.key, false));
}

void unit_go_on(struct unit *u)
{
	struct moved_call *c;

	if (u->peeks)
		return;
	STAILQ_CONCAT(&u->reads, &u->calls);
	STAILQ_CONCAT(&u->calls, &u->reads);
	if (u->state == UNIT_SEEN) {
		u->state = UNIT_FOUND;
		send_seen(u);
	}
	while ((c = STAILQ_FIRST(&u->calls)) && u->state != UNIT_MARKED && !needs_former(u, c)) {
		enum guard guard = guard_of(u, &c->call);
		if (guard == GUARD_LOOK) {
			look_first(u);
			return;
		}
		STAILQ_REMOVE_HEAD(&u->calls, link);
		c->unit = guard == GUARD_HOLD ? u : NULL;
		unit_send(c, guard);
		if (guard == GUARD_HOLD)
			return;
	}
	LIST_REMOVE(u, link);
	if (c)
		start_again(u);
	retire(u);
}
