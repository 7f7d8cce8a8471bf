/*
 * The gate before the servers. Calls on a unit wait in its queue while it is looked for and moved, and then go to its new server in their
 * order. Where a unit was found lately is remembered by its hash, without probing: what is forgotten is looked for again.
 */
#include "collection/move/moves.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "collection/move/mover.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "protocol/request.h"
#include "util/alloc.h"
#include "util/hash.h"

enum { FOUND = 16384, BUCKETS = 1024, WAIT_MS = 20 };

/* A call that waits, with a copy of its slices; or a read whose result is looked at before its waiter gets it. */
struct moved_call {
	STAILQ_ENTRY(moved_call) link;
	struct moves *moves;
	struct call call;
	struct waiter waiter; /* of the read */
	struct waiter *asker;
	bool again; /* it was asked for a second time */
	char bytes[];
};

STAILQ_HEAD(moved_calls, moved_call);

struct unit {
	LIST_ENTRY(unit) link;
	struct moves *moves;
	uint64_t hash;
	struct mover mover;
	struct waiter timer;
	struct moved_calls calls;
	char key[];
};

LIST_HEAD(units, unit);

struct moves {
	struct mover_world world;
	int64_t at, margin;
	uint64_t seed;
	struct moves_stats stats;
	size_t busy; /* units, and reads under way */
	struct units units[BUCKETS];
	struct {
		uint64_t hash, until; /* env.now; 0: nothing is known */
	} found[FOUND];
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

static int place(const struct moves *m, struct slice key, bool former)
{
	return m->world.place(m->world.arg, key, former);
}

static void send_to(struct moves *m, const struct call *call, struct waiter *waiter, int server)
{
	struct call copy = *call;

	copy.server = server;
	m->world.env->call(m->world.env, &copy, waiter);
}

/*
 * The unit of a key that moves: its base, if that moves, else the key itself. Empty if neither moves. A key that only base64 can name does
 * not: the calls of a mover would have its bytes in their lines.
 */
static struct slice unit_of(const struct moves *m, struct slice key)
{
	struct slice base = part_key_base(key);

	if (!request_key_valid(key, KEY_MAX))
		return slice_of(key.p, 0);
	if (base.n && place(m, base, true) != place(m, base, false)) {
		unsigned behind;
		/* A segment of version 0.1.0 lies at the place of its own key. */
		if (part_key_place(key, &behind).n == base.n)
			return base;
	}
	return place(m, key, true) != place(m, key, false) ? key : slice_of(key.p, 0);
}

/* --- calls that wait --- */

static struct moved_call *keep_call(struct moves *m, const struct call *call, struct waiter *asker)
{
	struct moved_call *c = xmalloc(sizeof(*c) + call->key.n + call->value.n + call->line.n);
	char *p = c->bytes;

	*c = (struct moved_call){ .moves = m, .call = *call, .asker = asker };
	c->call.key.p = p;
	p = slice_write(p, call->key);
	c->call.value.p = p;
	p = slice_write(p, call->value);
	c->call.line.p = p;
	slice_write(p, call->line);
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

static void send_here(struct moves *m, const struct call *call, struct waiter *waiter);

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

/* None of the calls was sent. */
static void refuse(struct moved_calls *calls, const struct result *why)
{
	struct result r = *why;
	struct moved_call *c;

	if (r.status != RESULT_REFUSED)
		r.status = RESULT_UNAVAILABLE;
	while ((c = STAILQ_FIRST(calls))) {
		struct waiter *asker = c->asker;
		STAILQ_REMOVE_HEAD(calls, link);
		free(c);
		asker->done(asker, &r);
	}
}

static void on_end(struct mover *mover)
{
	struct unit *u = (struct unit *)((char *)mover - offsetof(struct unit, mover));
	struct moves *m = u->moves;
	struct moved_calls calls = STAILQ_HEAD_INITIALIZER(calls);
	struct moved_call *c;

	STAILQ_CONCAT(&calls, &u->calls);
	LIST_REMOVE(u, link);
	m->stats.moved += mover->moved;
	m->stats.merged += mover->moved && mover->joined;
	if (mover->failure.happened) {
		m->stats.failed++;
		refuse(&calls, &mover->failure.result);
		free_unit(u);
		return;
	}
	m->found[u->hash % FOUND].hash = u->hash;
	m->found[u->hash % FOUND].until = m->world.env->now + MOVES_LOOK_MS;
	while ((c = STAILQ_FIRST(&calls))) {
		STAILQ_REMOVE_HEAD(&calls, link);
		send_here(m, &c->call, c->asker);
		free(c);
	}
	if (!mover_clean(mover, on_clean))
		free_unit(u);
}

static void on_time(struct waiter *waiter, const struct result *r)
{
	struct unit *u = (struct unit *)((char *)waiter - offsetof(struct unit, timer));
	struct env *env = u->moves->world.env;

	(void)r;
	if (env->unix_time < u->moves->at)
		env->later(env, &u->timer, WAIT_MS);
	else
		mover_start(&u->mover, on_end);
}

static struct unit *add_unit(struct moves *m, uint64_t hash, struct slice key)
{
	struct unit *u = xcalloc(1, sizeof(*u) + key.n);

	u->moves = m;
	u->hash = hash;
	slice_write(u->key, key);
	u->mover.world = &m->world;
	u->mover.key = slice_of(u->key, key.n);
	u->mover.knows = m->found[hash % FOUND].hash == hash;
	u->timer.done = on_time;
	STAILQ_INIT(&u->calls);
	LIST_INSERT_HEAD(&m->units[hash % BUCKETS], u, link);
	m->busy++;
	return u;
}

static void start_unit(struct unit *u, bool at_once)
{
	struct env *env = u->moves->world.env;

	if (at_once || env->unix_time >= u->moves->at)
		mover_start(&u->mover, on_end);
	else
		env->later(env, &u->timer, WAIT_MS);
}

/* --- reads --- */

/* The call waits until its unit, with this key and hash, is found; that does not wait for the time if `at_once`. */
static void wait_for(struct moves *m, struct moved_call *c, struct slice key, uint64_t hash, bool at_once)
{
	struct unit *u = find_unit(m, hash, key);
	bool is_new = !u;

	if (is_new)
		u = add_unit(m, hash, key);
	STAILQ_INSERT_TAIL(&u->calls, c, link);
	if (is_new)
		start_unit(u, at_once);
}

/* Sends the call of a waiter, which is `done` by a function of ours. */
static void send_kept(struct moved_call *c, const struct call *call, bool former,
	void (*done)(struct waiter *waiter, const struct result *r))
{
	struct moves *m = c->moves;

	c->waiter = (struct waiter){ done, c->call.key };
	m->busy++;
	send_to(m, call, &c->waiter, place(m, c->call.key, former));
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
	struct call call = { .verb = CALL_ADD, .key = c->call.key, .value = r->value };
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
 * Whether it is a part of a base that moves. A part may be written to the former server before the time, by whoever lets the base refer
 * to it only after that has moved. So whoever misses it here copies it.
 */
static bool is_moved_part(const struct moves *m, struct slice key)
{
	return part_key_base(key).n && unit_of(m, key).n < key.n && place(m, key, true) != place(m, key, false);
}

/* A mark shows that a proxy moves the key, or that one was killed while it did. */
static void read_here(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));
	struct moves *m = c->moves;

	m->busy--;
	if (r->status == RESULT_MISS && !c->again && is_moved_part(m, c->call.key)) {
		c->again = true;
		send_kept(c, &(struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_TTL, .key = c->call.key },
			true, part_found);
		return;
	}
	if (r->status == RESULT_HIT && r->flags == MARK_FLAGS && !c->again) {
		struct moved_call *next = keep_call(m, &c->call, c->asker);
		struct slice key = unit_of(m, next->call.key);
		uint64_t hash = hash_slice(key, m->seed);
		next->again = true;
		m->found[hash % FOUND].hash = 0;
		wait_for(m, next, key, hash, true);
	} else {
		c->asker->done(c->asker, r);
	}
	free(c);
}

static void ask_here(struct moved_call *c)
{
	send_kept(c, &c->call, false, read_here);
}

static void send_here(struct moves *m, const struct call *call, struct waiter *waiter)
{
	if (call->verb == CALL_GET || (call->verb == CALL_TOUCH && is_moved_part(m, call->key)))
		ask_here(keep_call(m, call, waiter));
	else
		send_to(m, call, waiter, place(m, call->key, false));
}

/* --- until the time --- */

static bool is_meta_miss(const struct result *r)
{
	return r->status == RESULT_TEXT && slice_starts(r->line, SLICE("EN"));
}

static void read_former(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));

	c->moves->busy--;
	if (r->status == RESULT_MISS || is_meta_miss(r)) {
		ask_here(c);
	} else {
		c->asker->done(c->asker, r);
		free(c);
	}
}

/* A meta get may also touch an item, or make one. */
static bool is_read(const struct call *call)
{
	struct slice rest = call->line, word;

	if (call->verb != CALL_META)
		return call->verb == CALL_GET;
	if (!slice_equal(slice_token(&rest), SLICE("mg")))
		return false;
	(void)slice_token(&rest);
	while ((word = slice_token(&rest)).n) {
		if (*word.p == 'N' || *word.p == 'T' || *word.p == 'E')
			return false;
	}
	return true;
}

/* --- the door --- */

/* Of a unit that nobody waits for. */
static void find(struct moves *m, const struct call *call, struct waiter *waiter, struct slice key, uint64_t hash)
{
	struct env *env = m->world.env;
	bool known = m->found[hash % FOUND].hash == hash && m->found[hash % FOUND].until > env->now;
	struct moved_call *c;

	if (known) {
		send_here(m, call, waiter);
		return;
	}
	c = keep_call(m, call, waiter);
	if (env->unix_time < m->at && is_read(call)) {
		send_kept(c, &c->call, true, read_former);
		return;
	}
	m->stats.waited += env->unix_time < m->at;
	wait_for(m, c, key, hash, false);
}

void moves_call(struct moves *m, const struct call *call, struct waiter *waiter)
{
	struct slice key;
	uint64_t hash;

	if (call->server != CALL_ANY_SERVER) {
		send_to(m, call, waiter, call->server);
		return;
	}
	key = unit_of(m, call->key);
	if (key.n == 0 || m->world.env->unix_time < m->at - m->margin) {
		send_to(m, call, waiter, place(m, call->key, m->world.env->unix_time < m->at));
		return;
	}
	hash = hash_slice(key, m->seed);
	if (find_unit(m, hash, key))
		wait_for(m, keep_call(m, call, waiter), key, hash, false);
	else
		find(m, call, waiter, key, hash);
}
