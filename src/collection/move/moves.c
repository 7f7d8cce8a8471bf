/*
 * The layer before the servers. Calls on a unit are queued while it is looked up and moved, and
 * are then sent to its new server in their order. found.h caches which units were found.
 *
 * The claim of a mover may arrive after another proxy has moved the unit and a client has deleted
 * it. memcached would treat that mark as an item: an append would succeed, and an add would fail.
 * No claim arrives later than the margin. So for that time after a unit was found, and until a
 * later read has found no mark, calls that depend on the existence of the item are guarded.
 *
 * A call that only reads, and has no write before it in the queue, is sent to both servers in
 * parallel (peek.h). It is queued only if their replies are not conclusive. Such a read also
 * starts the move, unless another one has just done so: when the time is reached, no key has
 * moved yet, and the servers have other work as well.
 */
#include "collection/move/moves.h"

#include <stdlib.h>

#include "collection/move/found.h"
#include "collection/move/unit.h"
#include "collection/move/verbs.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "util/alloc.h"
#include "util/hash.h"

enum { BUCKETS = 1024, WAIT_MS = 20, TRIES = 16, COMPARES = 4, BEHIND_MS = 5 };

LIST_HEAD(units, unit);

struct moves {
	struct mover_world world;
	int64_t at, margin;
	uint64_t seed;
	struct moves_stats stats;
	size_t busy;     /* units, and reads in flight */
	uint64_t behind; /* env.now when the next move without queued calls may start */
	struct units units[BUCKETS];
	struct founds found;
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
	return m->busy == 0;
}

const struct moves_stats *moves_statistics(const struct moves *m)
{
	return &m->stats;
}

/* Sends a call that is not affected by the moves. */
static void pass_to(struct moves *m, const struct call *call, struct waiter *waiter, int server)
{
	struct call copy = *call;

	copy.server = server;
	m->world.env->call(m->world.env, &copy, waiter);
}

static void send_by(struct moves *m, const struct call *call, struct waiter *waiter, bool former)
{
	mover_send(&m->world, call, waiter, mover_place(&m->world, call->key, former));
}

/* --- queued calls --- */

static struct moved_call *keep_call(struct moves *m, const struct call *call, struct waiter *asker)
{
	struct moved_call *c = moved_call_keep(m, call, asker);

	c->number = ++m->world.calls;
	return c;
}

static struct unit *find_unit(const struct moves *m, uint64_t hash, struct slice key)
{
	struct unit *u;

	LIST_FOREACH(u, &m->units[hash % BUCKETS], link) {
		if (u->hash == hash && slice_equal(u->mover.key, key))
			return u;
	}
	return NULL;
}

static struct unit *add_unit(struct moves *m, uint64_t hash, struct slice key)
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
	LIST_INSERT_HEAD(&m->units[hash % BUCKETS], u, link);
	m->busy++;
	return u;
}

static void free_unit(struct unit *u)
{
	u->moves->busy--;
	mover_fini(&u->mover);
	free(u);
}

static void on_clean(struct mover *mover)
{
	free_unit((struct unit *)((char *)mover - offsetof(struct unit, mover)));
}

static void retire_unit(struct unit *u)
{
	if (!mover_clean(&u->mover, on_clean))
		free_unit(u);
}

static void note_found(struct moves *m, uint64_t hash, bool moved)
{
	uint64_t now = m->world.env->now;

	found_note(&m->found, hash, moved, now + MOVES_LOOK_MS, now + (uint64_t)m->margin * 1000 + 1);
}

static void go_on(struct unit *u);

static void on_end(struct mover *mover)
{
	struct unit *u = (struct unit *)((char *)mover - offsetof(struct unit, mover));
	struct moves *m = u->moves;
	struct moved_call *c;

	m->stats.moved += mover->moved;
	m->stats.merged += mover->moved && mover->joined && mover->join == JOIN_BOTH;
	m->stats.dropped += mover->moved && mover->dropped;
	if (!mover->failure.happened) {
		if (!mover->moved && mover->there && !mover->imitated)
			found_unmarked(&m->found, u->hash, u->looked);
		note_found(m, u->hash, mover->moved);
		u->found = true;
		u->there = mover->there;
		u->asked = mover->asked;
		STAILQ_FOREACH(c, &u->calls, link)
			c->imitated = mover->imitated;
		STAILQ_FOREACH(c, &u->reads, link)
			c->imitated = mover->imitated;
		go_on(u);
		return;
	}
	LIST_REMOVE(u, link);
	m->stats.failed++;
	u->failed = true;
	unit_refuse(u, &mover->failure.result);
	if (u->peeks == 0)
		free_unit(u);
}

static void on_time(struct waiter *waiter, const struct result *r)
{
	struct unit *u = (struct unit *)((char *)waiter - offsetof(struct unit, waiter));
	struct env *env = u->moves->world.env;

	(void)r;
	u->former = u->moves->world.calls;
	if (env->unix_time < u->moves->at)
		env->later(env, &u->waiter, WAIT_MS);
	else
		mover_start(&u->mover, on_end);
}

static void start_unit(struct unit *u, bool at_once)
{
	struct env *env = u->moves->world.env;

	if (at_once || env->unix_time >= u->moves->at) {
		mover_start(&u->mover, on_end);
	} else {
		u->waiter = (struct waiter){ on_time, u->mover.key };
		env->later(env, &u->waiter, WAIT_MS);
	}
}

/* Queues the call until its unit is found; with `at_once` even before the time of the change. */
static void wait_for(struct moves *m, struct moved_call *c, struct slice key, uint64_t hash, bool at_once)
{
	struct unit *u = find_unit(m, hash, key);
	bool is_new = !u;

	if (is_new)
		u = add_unit(m, hash, key);
	u->writes = u->writes || c->call.verb != CALL_GET;
	STAILQ_INSERT_TAIL(&u->calls, c, link);
	if (is_new)
		start_unit(u, at_once);
}

/* --- reads --- */

/* Sends `call` for a queued call. `done` receives the result. */
static void send_kept(struct moved_call *c, const struct call *call, bool former,
	void (*done)(struct waiter *waiter, const struct result *r))
{
	struct moves *m = c->moves;

	c->waiter = (struct waiter){ done, c->call.key };
	m->busy++;
	send_by(m, call, &c->waiter, former);
}

static void read_here(struct waiter *waiter, const struct result *r);

static void part_copied(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));

	(void)r;
	c->moves->busy--;
	send_kept(c, &c->call, false, read_here);
}

static void part_found(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));
	struct call call = { .verb = CALL_ADD, .key = c->call.key, .value = r->value, .flags = r->flags };
	const struct result miss = { .status = RESULT_MISS };

	c->moves->busy--;
	if (r->status == RESULT_HIT && ttl_exptime(c->moves->world.env, r->ttl, &call.exptime)) {
		send_kept(c, &call, false, part_copied);
		return;
	}
	c->asker->done(c->asker, result_failed(r) ? r : &miss);
	free(c);
}

/*
 * Returns whether it is a part of a base that moves. A proxy may write it to the former server
 * before the time, and commit the base after its move. So one that misses the part here copies it.
 */
static bool is_moved_part(const struct moves *m, struct slice key)
{
	return part_key_base(key).n && mover_unit(&m->world, key).n < key.n && mover_moves(&m->world, key);
}

/* Counts a retry. Returns false if there were too many; then the call has been refused. */
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

/* A mark: a proxy moves the key, or was killed while it did. Retries the call after that move. */
static void settle(struct moved_call *c)
{
	struct moves *m = c->moves;
	struct slice key = mover_unit(&m->world, c->call.key);
	uint64_t hash = hash_slice(key, m->seed);
	struct unit *u = find_unit(m, hash, key);

	found_forget(&m->found, hash);
	if (!may_retry(c))
		return;
	if (u && u->found)
		u->marked = true;
	wait_for(m, c, key, hash, true);
}

static bool is_marked(const struct moved_call *c, const struct result *r, bool has_value)
{
	return r->status == RESULT_HIT && mark_is_met(c->call.key, r->flags, r->value, has_value, c->imitated);
}

static void read_here(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));
	struct moves *m = c->moves;

	m->busy--;
	if (r->status == RESULT_MISS && !c->part && is_moved_part(m, c->call.key)) {
		c->part = true;
		send_kept(c, &(struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_TTL, .key = c->call.key },
			true, part_found);
	} else if (is_marked(c, r, c->call.want & WANT_VALUE)) {
		settle(c);
	} else {
		c->asker->done(c->asker, r);
		free(c);
	}
}

static void ask_here(struct moved_call *c)
{
	send_kept(c, &c->call, false, read_here);
}

static bool asks_here(const struct moves *m, const struct call *call)
{
	return call->verb == CALL_GET || (call->verb == CALL_TOUCH && is_moved_part(m, call->key));
}

/* --- calls that must not take a mark for an item --- */

/* A call on a part needs no guard: only its base is claimed. */
static enum guard guard_in(const struct unit *u, const struct call *call)
{
	return call->key.n == u->mover.key.n ? verb_guard(call, found_is_late(&u->moves->found, u->hash)) : GUARD_NONE;
}

/*
 * Returns whether the former server must be checked again before the call. An item that a
 * setlistd with the old ring has written there before would reappear after a deletion.
 */
static bool needs_former(const struct unit *u, const struct moved_call *c)
{
	return c->number > u->former && c->call.key.n == u->mover.key.n &&
		verb_removes(&c->call, u->moves->world.env->unix_time);
}

static void end_call(struct moved_call *c, const struct result *r)
{
	struct waiter *asker = c->asker;
	struct unit *u = c->unit;
	struct failure failure = c->failure;
	bool fails = r == &c->failure.result;

	free(c);
	asker->done(asker, fails ? &failure.result : r);
	failure_free(&failure);
	if (u)
		go_on(u);
}

static void told(struct waiter *waiter, const struct result *r);

/* Puts the call back at the head of its unit's queue. */
static void retry_in(struct unit *u, struct moved_call *c, bool marked)
{
	c->unit = NULL;
	u->marked = u->marked || marked;
	if (may_retry(c))
		STAILQ_INSERT_HEAD(&u->calls, c, link);
	go_on(u);
}

static void retry(struct moved_call *c, bool marked)
{
	if (c->unit)
		retry_in(c->unit, c, marked);
	else if (marked)
		settle(c);
	else if (may_retry(c))
		send_kept(c, &c->call, false, told);
}

/* After an error, the value shows if the item caused it; after a META, if the item is a mark. */
static bool shows_value(const struct moved_call *c)
{
	return c->failure.happened || c->call.verb == CALL_META;
}

/*
 * Handles the reply to the read after a call. The call has met a mark, or an item that may be gone.
 */
static void looked_behind(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));
	bool marked = is_marked(c, r, shows_value(c)), seen = r->status == RESULT_HIT && !marked;
	struct result before = { .status = c->status, .server = r->server };

	c->moves->busy--;
	if (result_failed(r)) {
		struct result failed = *r;
		failed.status = r->status == RESULT_REFUSED ? r->status : RESULT_UNAVAILABLE;
		end_call(c, &failed);
	} else if (seen && c->call.verb == CALL_META) {
		c->imitated = true;
		retry(c, false);
	} else if (seen && !result_failed(&before)) {
		end_call(c, &before);
	} else if (seen && (!verb_is_number(r->value) || c->tries >= COMPARES)) {
		end_call(c, &c->failure.result);
	} else if (r->status == RESULT_MISS && before.status == RESULT_EXISTS && !c->call.vivifies) {
		end_call(c, &(struct result){ .status = RESULT_MISS, .server = r->server });
	} else {
		retry(c, marked);
	}
}

static void look_behind(struct moved_call *c, const struct result *r)
{
	struct call look = { .verb = CALL_GET, .key = c->call.key };

	if (result_failed(r))
		failure_keep(&c->failure, r);
	look.want = shows_value(c) ? WANT_VALUE : 0;
	send_kept(c, &look, false, looked_behind);
}

static void told(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));

	c->moves->busy--;
	c->status = r->status;
	if (verb_met_mark(&c->call, r, c->imitated))
		settle(c);
	else if (verb_is_doubtful(&c->call, r, c->imitated))
		look_behind(c, r);
	else
		end_call(c, r);
}

/* Sends a call that does not have to be preceded by a read. */
static void send_on(struct moved_call *c, enum guard guard)
{
	if (asks_here(c->moves, &c->call)) {
		ask_here(c);
	} else if (guard == GUARD_HOLD || guard == GUARD_TELLS || c->call.verb == CALL_META) {
		send_kept(c, &c->call, false, told);
	} else {
		send_by(c->moves, &c->call, c->asker, false);
		free(c);
	}
}

/* The read has found no item. Answers calls at the head that need one and preceded the read. */
static void miss(struct unit *u)
{
	struct moved_call *c;

	while ((c = STAILQ_FIRST(&u->calls)) && c->number <= u->asked && guard_in(u, &c->call) == GUARD_LOOK &&
		c->call.verb != CALL_META) {
		enum result_status status = verb_status_of_miss(&c->call);
		struct waiter *asker = c->asker;
		STAILQ_REMOVE_HEAD(&u->calls, link);
		free(c);
		asker->done(asker, &(struct result){ .status = status });
	}
}

/*
 * Returns whether the call is sent as a CAS with the cas id that the preceding read returned.
 * If another client deletes the item after that read, a plain REPLACE or DELETE would apply to
 * a late claim. After COMPARES writes of other clients in a row the plain call is sent, so that
 * it does not fail on a key with many writers.
 */
static bool is_compared(const struct unit *u, const struct moved_call *c)
{
	return guard_in(u, &c->call) == GUARD_LOOK && verb_compares(&c->call) && c->tries < COMPARES;
}

static void compared(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));
	struct result result = *r;

	c->moves->busy--;
	if (r->status == RESULT_EXISTS) {
		retry_in(c->unit, c, false);
		return;
	}
	if (r->status == RESULT_MISS)
		result.status = verb_status_of_miss(&c->call);
	end_call(c, &result);
}

/*
 * The item was seen, so calls that were received before that need no read of their own, except
 * after one that may delete the item, or whose result is unknown. An append may still meet a
 * late claim if another client has deleted the item since. The mover drops words that are
 * appended to such a claim: the append took effect right before the item was deleted. A META
 * that meets one is not detected.
 */
static void send_all(struct unit *u)
{
	struct moved_call *c;
	enum guard guard;
	bool removes = false;

	while (!removes && (c = STAILQ_FIRST(&u->calls)) && !needs_former(u, c) &&
		(guard = guard_in(u, &c->call)) != GUARD_HOLD) {
		if (guard == GUARD_LOOK && (c->number > u->asked || is_compared(u, c)))
			return;
		removes = guard == GUARD_LOOK &&
			(c->call.verb == CALL_DELETE || (c->call.verb == CALL_META && !verb_only_reads(&c->call)));
		STAILQ_REMOVE_HEAD(&u->calls, link);
		send_on(c, guard);
	}
}

static void looked_before(struct waiter *waiter, const struct result *r)
{
	struct unit *u = (struct unit *)((char *)waiter - offsetof(struct unit, waiter));
	struct moved_call *c = STAILQ_FIRST(&u->calls);
	bool marked = is_marked(c, r, false), compares;

	if (!marked && !result_failed(r))
		found_unmarked(&u->moves->found, u->hash, u->looked);
	compares = r->status == RESULT_HIT && is_compared(u, c);
	if (result_failed(r) || marked || compares || (r->status == RESULT_MISS && c->call.verb == CALL_META))
		STAILQ_REMOVE_HEAD(&u->calls, link);
	if (marked) {
		retry_in(u, c, true);
		return;
	}
	if (compares) {
		struct call call = verb_compare(&c->call, r);
		c->unit = u;
		send_kept(c, &call, false, compared);
		return;
	}
	if (result_failed(r))
		moved_call_refuse(c, r);
	else if (r->status == RESULT_HIT)
		send_all(u);
	else if (c->call.verb == CALL_META)
		send_on(c, GUARD_NONE);
	else
		miss(u);
	go_on(u);
}

/* Looks up the unit again, with its calls queued. */
static void start_again(struct unit *u)
{
	struct moves *m = u->moves;
	struct unit *next;

	if (u->marked)
		found_forget(&m->found, u->hash);
	next = add_unit(m, u->hash, u->mover.key);
	next->writes = true;
	STAILQ_CONCAT(&next->calls, &u->calls);
	mover_start(&next->mover, on_end);
}

/* Sends the queued calls in order, up to one whose result is needed before the next. */
static void go_on(struct unit *u)
{
	struct moves *m = u->moves;
	struct moved_call *c;

	if (u->peeks)
		return;
	STAILQ_CONCAT(&u->reads, &u->calls);
	STAILQ_CONCAT(&u->calls, &u->reads);
	if (u->there) {
		u->there = false;
		send_all(u);
	}
	while ((c = STAILQ_FIRST(&u->calls)) && !u->marked && !needs_former(u, c)) {
		enum guard guard = guard_in(u, &c->call);
		if (guard == GUARD_LOOK) {
			struct call look = { .verb = CALL_GET, .want = WANT_CAS, .key = u->mover.key };
			u->waiter = (struct waiter){ looked_before, u->mover.key };
			u->looked = m->world.env->now;
			u->asked = m->world.calls;
			send_by(m, &look, &u->waiter, false);
			return;
		}
		STAILQ_REMOVE_HEAD(&u->calls, link);
		c->unit = guard == GUARD_HOLD ? u : NULL;
		send_on(c, guard);
		if (guard == GUARD_HOLD)
			return;
	}
	LIST_REMOVE(u, link);
	if (c)
		start_again(u);
	retire_unit(u);
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

static void peeked(struct peek *peek, enum peek_place place, const struct result *r)
{
	struct moved_peek *p = (struct moved_peek *)peek;
	struct moved_call *c = p->call;
	struct unit *u = p->unit;
	struct moves *m = u->moves;
	bool finds_it = p->finds && (place == PEEK_HERE || place == PEEK_NOWHERE), finds_not = p->finds && !finds_it;
	/* Reads keep their order. */
	bool answers = (place == PEEK_FORMER || place == PEEK_HERE) && STAILQ_EMPTY(&u->reads);

	u->peeks--;
	if (place == PEEK_FAILED || (!answers && u->failed)) {
		moved_call_refuse(c, place == PEEK_FAILED ? r : &u->mover.failure.result);
	} else if (answers) {
		c->asker->done(c->asker, r);
		free(c);
	} else {
		STAILQ_INSERT_TAIL(&u->reads, c, link);
	}
	peek_fini(peek);
	free(p);
	if (finds_it) {
		if (place == PEEK_HERE)
			found_unmarked(&m->found, u->hash, u->looked);
		note_found(m, u->hash, false);
		u->found = true;
		u->there = place == PEEK_HERE;
	} else if (finds_not && may_leave(u)) {
		LIST_REMOVE(u, link);
		u->failed = true;
	} else if (finds_not) {
		m->behind = m->world.env->now + BEHIND_MS;
		mover_start(&u->mover, on_end);
	}
	if (u->failed && u->peeks == 0)
		free_unit(u);
	else if (u->found)
		go_on(u);
}

static void peek_in(struct unit *u, struct moved_call *c, bool finds)
{
	struct moved_peek *p = xmalloc(sizeof(*p));

	p->call = c;
	p->unit = u;
	p->finds = finds;
	u->peeks++;
	peek_start(&p->peek, &u->moves->world, &c->call, c->call.key.n != u->mover.key.n, peeked);
}

/* --- until the time --- */

static void read_former(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));

	c->moves->busy--;
	if (r->status == RESULT_MISS && c->call.verb == CALL_TOUCH) {
		struct slice key = mover_unit(&c->moves->world, c->call.key);
		wait_for(c->moves, c, key, hash_slice(key, c->moves->seed), false);
	} else if (verb_missed(r)) {
		ask_here(c);
	} else {
		c->asker->done(c->asker, r);
		free(c);
	}
}

/* --- entry --- */

/* Sends a call on a unit that was found. */
static void send_here(struct moves *m, const struct call *call, struct waiter *waiter, struct slice key, uint64_t hash)
{
	enum guard guard = call->key.n == key.n ? verb_guard(call, found_is_late(&m->found, hash)) : GUARD_NONE;
	struct moved_call *c;
	struct unit *u;

	if (guard == GUARD_NONE && !asks_here(m, call)) {
		send_by(m, call, waiter, false);
		return;
	}
	c = keep_call(m, call, waiter);
	if (guard == GUARD_NONE || guard == GUARD_TELLS) {
		send_on(c, guard);
		return;
	}
	u = add_unit(m, hash, key);
	u->found = true;
	u->former = 0;
	STAILQ_INSERT_TAIL(&u->calls, c, link);
	go_on(u);
}

static void looked_aside(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));
	struct moves *m = c->moves;
	uint64_t hash = hash_slice(c->call.key, m->seed);

	m->busy--;
	if (r->status == RESULT_HIT && !find_unit(m, hash, c->call.key)) {
		found_forget(&m->found, hash);
		mover_start(&add_unit(m, hash, c->call.key)->mover, on_end);
	}
	free(c);
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
		send_kept(keep_call(m, &look, NULL), &look, true, looked_aside);
	}
	return true;
}

/* Handles a call on a unit that has no queue. */
static void find(struct moves *m, const struct call *call, struct waiter *waiter, struct slice key, uint64_t hash)
{
	struct env *env = m->world.env;
	struct moved_call *c;

	if ((call->key.n != key.n || !verb_removes(call, env->unix_time)) && was_found(m, key, hash)) {
		send_here(m, call, waiter, key, hash);
		return;
	}
	c = keep_call(m, call, waiter);
	/*
	 * A touch is not queued: an item moves with its time to live, and the touch that
	 * corrects a rewrite must not be late. A read before a rewrite is queued with it, to
	 * see later touches.
	 */
	if (env->unix_time < m->at && ((verb_only_reads(call) && !call->leads) || call->verb == CALL_TOUCH)) {
		send_kept(c, &c->call, true, read_former);
		return;
	}
	m->stats.waited += env->unix_time < m->at;
	if (env->unix_time >= m->at && may_peek(call, key, NULL))
		peek_in(add_unit(m, hash, key), c, true);
	else
		wait_for(m, c, key, hash, false);
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
	key = here == former && !part_key_base(call->key).n ? slice_of("", 0) : mover_unit(&m->world, call->key);
	if (key.n == 0) {
		pass_to(m, call, waiter, here);
		return;
	}
	hash = hash_slice(key, m->seed);
	u = find_unit(m, hash, key);
	if (!u)
		find(m, call, waiter, key, hash);
	else if (!u->found && !u->writes && may_peek(call, key, u))
		peek_in(u, keep_call(m, call, waiter), false);
	else
		wait_for(m, keep_call(m, call, waiter), key, hash, false);
}
