/*
 * The gate in front of the servers. A call on a unit that is not known to have moved is queued
 * until the unit was found (unit.h), and then goes to its new server. found.h is the cache of
 * units that were found.
 *
 * A call that only reads, with no write queued before it, is sent to both servers at once
 * (peek.h). It is queued only if their answers do not decide. Such a read starts the move, too,
 * unless another one has done so right before: when the time comes all keys are still to be
 * moved, and the servers have other work as well.
 */
#include "collection/move/moves.h"

#include <stdlib.h>

#include "collection/move/peek.h"
#include "collection/move/unit.h"
#include "collection/text/part_key.h"
#include "util/alloc.h"
#include "util/hash.h"

enum { BEHIND_MS = 5 };

/* A read that is sent to both servers. */
struct moved_peek {
	struct peek peek;
	struct moved_call *call;
	struct unit *unit;
	bool finds; /* Only this read decides where the unit is. */
};

struct moves *moves_create(const struct moves_options *options)
{
	struct moves *m = xcalloc(1, sizeof(*m));

	m->world.env = options->env;
	m->world.place = options->place;
	m->world.arg = options->arg;
	mover_world_init(&m->world);
	m->at = options->at;
	m->margin = options->margin;
	m->seed = options->env->seed;
	return m;
}

void moves_destroy(struct moves *m)
{
	free(m);
}

bool moves_idle(const struct moves *m)
{
	return m->world.busy == 0;
}

const struct moves_stats *moves_statistics(const struct moves *m)
{
	return &m->world.stats;
}

/* Sends a call that is not affected by the moves. */
static void pass_to(struct moves *m, const struct call *call, struct waiter *waiter, int server)
{
	struct call copy = *call;

	copy.server = server;
	m->world.env->call(m->world.env, &copy, waiter);
}

static struct moved_call *keep_call(struct moves *m, const struct call *call, struct waiter *asker)
{
	return moved_call_keep(m, &m->world, call, asker);
}

/* --- reads that are not queued --- */

/*
 * Parts never change. But the former server may have a part that is copied only when it is missed.
 */
static bool may_peek(const struct call *call, struct slice unit, const struct unit *u)
{
	if (call->verb != CALL_GET)
		return false;
	return call->key.n == unit.n ? call->only_reads : u && u->mover.moves;
}

/* Returns whether the unit may stay where it is for now. */
static bool may_leave(const struct unit *u)
{
	return u->peeks == 0 && STAILQ_EMPTY(&u->reads) && STAILQ_EMPTY(&u->calls) &&
		u->moves->world.env->now < u->moves->behind;
}

/* The peek that decides where the unit is has ended. */
static void note_place(struct unit *u, enum peek_place place)
{
	struct moves *m = u->moves;

	if (place == PEEK_HERE || place == PEEK_NOWHERE) {
		if (place == PEEK_HERE)
			found_unmarked(&m->found, u->hash, u->looked);
		unit_found(u, place == PEEK_HERE, false);
	} else if (may_leave(u)) {
		unit_leave(u);
	} else {
		m->behind = m->world.env->now + BEHIND_MS;
		unit_start(u);
	}
}

static void moves_on_peek(struct peek *peek, enum peek_place place, const struct result *r)
{
	struct moved_peek *p = (struct moved_peek *)peek;
	struct moved_call *c = p->call;
	struct unit *u = p->unit;
	bool finds = p->finds;
	/* Reads keep their order. */
	bool answers = (place == PEEK_FORMER || place == PEEK_HERE) && STAILQ_EMPTY(&u->reads);

	u->peeks--;
	if (place == PEEK_FAILED || (!answers && u->state == UNIT_GONE))
		moved_call_refuse(c, place == PEEK_FAILED ? r : &u->mover.failure.result);
	else if (answers)
		moved_call_end(c, r);
	else
		STAILQ_INSERT_TAIL(&u->reads, c, link);
	peek_fini(peek);
	free(p);
	if (finds)
		note_place(u, place);
	if (u->state == UNIT_GONE && u->peeks == 0)
		unit_free(u);
	else if (u->state != UNIT_GONE && u->state != UNIT_SOUGHT)
		unit_go_on(u);
}

static void peek_in(struct unit *u, struct moved_call *c, bool finds)
{
	struct moved_peek *p = xmalloc(sizeof(*p));

	p->call = c;
	p->unit = u;
	p->finds = finds;
	u->peeks++;
	peek_start(&p->peek, &u->moves->world, &c->call, c->call.key.n != u->mover.key.n,
		moves_on_peek);
}

/* --- until the time --- */

static void moves_on_former(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = moved_call_received(waiter);

	if (r->status == RESULT_MISS && c->call.verb == CALL_TOUCH) {
		struct slice key = mover_unit(c->world, c->call.key);
		unit_queue(c->moves, c, key, hash_slice(key, c->moves->seed), false);
	} else if (verb_missed(r)) {
		unit_read(c);
	} else {
		moved_call_end(c, r);
	}
}

/* --- entry --- */

/* Sends a call on a unit that was found. */
static void send_here(struct moves *m, const struct call *call, struct waiter *waiter,
	struct slice key, uint64_t hash)
{
	enum guard guard = call->key.n == key.n ? verb_guard(call, found_is_late(&m->found, hash))
						: GUARD_NONE;
	struct moved_call *c;
	struct unit *u;

	if (guard == GUARD_NONE && !guard_checks(&m->world, call)) {
		mover_send(&m->world, call, waiter, mover_place(&m->world, call->key, false));
		return;
	}
	c = keep_call(m, call, waiter);
	if (guard == GUARD_NONE || guard == GUARD_TELLS) {
		unit_send(c, guard);
		return;
	}
	u = unit_add(m, hash, key);
	u->state = UNIT_FOUND;
	u->former = 0;
	STAILQ_INSERT_TAIL(&u->calls, c, link);
	unit_go_on(u);
}

static void moves_on_look_aside(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = moved_call_received(waiter);
	struct moves *m = c->moves;
	uint64_t hash = hash_slice(c->call.key, m->seed);

	if (r->status == RESULT_HIT && !unit_find(m, hash, c->call.key)) {
		found_forget(&m->found, hash);
		unit_start(unit_add(m, hash, c->call.key));
	}
	moved_call_end(c, r);
}

/*
 * Returns whether the unit was found before. If that was long ago, its former server is read
 * again, in parallel to the call: a proxy that still has the old servers may have written there.
 */
static bool was_found(struct moves *m, struct slice key, uint64_t hash)
{
	const struct call look = { .verb = CALL_GET, .key = key };
	struct found *f = found_find(&m->found, hash);
	uint64_t now = m->world.env->now;

	if (!f || (f->until <= now && m->world.env->unix_time < m->at))
		return false;
	if (f->until <= now) {
		f->until = now + MOVES_LOOK_MS;
		moved_call_send(keep_call(m, &look, NULL), &look, true, moves_on_look_aside);
	}
	return true;
}

/* Handles a call on a unit that has no queue. */
static void call_unit(struct moves *m, const struct call *call, struct waiter *waiter,
	struct slice key, uint64_t hash)
{
	struct env *env = m->world.env;
	struct moved_call *c;

	if ((call->key.n != key.n || !verb_removes(call, env->unix_time)) &&
		was_found(m, key, hash)) {
		send_here(m, call, waiter, key, hash);
		return;
	}
	c = keep_call(m, call, waiter);
	/*
	 * A touch is not queued: an item moves with its time to live, and the touch that
	 * corrects a rewrite must not be late. A read before a rewrite is queued with it, to
	 * see later touches.
	 */
	if (env->unix_time < m->at &&
		((verb_only_reads(call) && !call->role.leads) || call->verb == CALL_TOUCH)) {
		moved_call_send(c, &c->call, true, moves_on_former);
		return;
	}
	m->world.stats.waited += env->unix_time < m->at;
	if (env->unix_time >= m->at && may_peek(call, key, NULL))
		peek_in(unit_add(m, hash, key), c, true);
	else
		unit_queue(m, c, key, hash, false);
}

void moves_call(struct moves *m, const struct call *call, struct waiter *waiter)
{
	int former, here;
	struct slice key;
	struct unit *u;
	uint64_t hash;

	if (call->server != CALL_ANY_SERVER) {
		pass_to(m, call, waiter, call->server);
		return;
	}
	here = m->world.place(m->world.arg, call->key, &former);
	if (m->world.env->unix_time < m->at - m->margin) {
		pass_to(m, call, waiter, former);
		return;
	}
	/* The base of a part that stays may move. */
	key = here == former && !part_key_base(call->key).n ? slice_of("", 0)
							    : mover_unit(&m->world, call->key);
	if (key.n == 0) {
		pass_to(m, call, waiter, here);
		return;
	}
	hash = hash_slice(key, m->seed);
	u = unit_find(m, hash, key);
	if (!u)
		call_unit(m, call, waiter, key, hash);
	else if (u->state == UNIT_SOUGHT && !u->writes && may_peek(call, key, u))
		peek_in(u, keep_call(m, call, waiter), false);
	else
		unit_queue(m, keep_call(m, call, waiter), key, hash, false);
}
