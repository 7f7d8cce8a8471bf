/*
 * The gate before the servers. Calls on a unit wait in its queue while it is looked for and moved, and then go to its new server in their
 * order. Where a unit was found lately is remembered by its hash, without probing: what is forgotten is looked for again.
 *
 * The claim of a mover may come when others have moved the unit, and a client has deleted it. memcached would take that mark for an item:
 * append would store, and add would not. No claim comes later than the margin. So for that long after a unit was found, and until a read
 * behind that has seen no mark, calls that need an item, or need none, are guarded.
 */
#include "collection/move/moves.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "collection/move/mover.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/num.h"

enum { FOUND = 16384, BUCKETS = 1024, WAIT_MS = 20, TRIES = 16 };

/* A call that waits, with a copy of its slices; or one whose result is looked at before its waiter gets it. */
struct moved_call {
	STAILQ_ENTRY(moved_call) link;
	struct moves *moves;
	struct call call;
	struct waiter waiter; /* of the call, or of a look at its key */
	struct waiter *asker;
	struct unit *unit; /* whose other calls wait for its result, or NULL */
	enum result_status status;
	bool part;      /* it was copied from the former server, if it was there */
	bool imitated;  /* the key has an item with the flags of a mark, which is none */
	unsigned tries; /* that have met a mark */
	char bytes[];
};

STAILQ_HEAD(moved_calls, moved_call);

struct unit {
	LIST_ENTRY(unit) link;
	struct moves *moves;
	uint64_t hash;
	struct mover mover;
	struct waiter waiter; /* of a timer, or of a look at its key */
	uint64_t looked;      /* when that was sent: env.now */
	struct moved_calls calls;
	bool found;  /* the calls go out, and the mover is not needed any more */
	bool marked; /* a call has met a mark since */
	char key[];
};

LIST_HEAD(units, unit);

/* Where a unit was found. Times are env.now; 0: none. */
struct found {
	uint64_t hash;
	uint64_t until; /* then it is looked for again */
	uint64_t late;  /* a claim may come before that; 0: none comes any more */
};

struct moves {
	struct mover_world world;
	int64_t at, margin;
	uint64_t seed;
	struct moves_stats stats;
	size_t busy; /* units, and reads under way */
	struct units units[BUCKETS];
	struct found found[FOUND];
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

static bool is_moving(const struct moves *m, struct slice key)
{
	int former;

	return m->world.place(m->world.arg, key, &former) != former;
}

/* Sends a call that concerns nobody here. */
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

/* The unit of a key that moves: its base, if that moves, else the key itself. Empty if neither moves. */
static struct slice unit_of(const struct moves *m, struct slice key)
{
	struct slice base = part_key_base(key);

	if (base.n && is_moving(m, base)) {
		unsigned behind;
		/* A segment of version 0.1.0 lies at the place of its own key. */
		if (part_key_place(key, &behind).n == base.n)
			return base;
	}
	return is_moving(m, key) ? key : slice_of(key.p, 0);
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

static struct unit *add_unit(struct moves *m, uint64_t hash, struct slice key)
{
	struct unit *u = xcalloc(1, sizeof(*u) + key.n);

	u->moves = m;
	u->hash = hash;
	slice_write(u->key, key);
	u->mover.world = &m->world;
	u->mover.key = slice_of(u->key, key.n);
	u->mover.knows = m->found[hash % FOUND].hash == hash;
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

/* The call was not sent. */
static void refuse(struct moved_call *c, const struct result *why)
{
	struct result r = *why;
	struct waiter *asker = c->asker;

	if (r.status != RESULT_REFUSED)
		r.status = RESULT_UNAVAILABLE;
	free(c);
	asker->done(asker, &r);
}

static void note_found(struct moves *m, uint64_t hash, bool moved)
{
	struct found *f = &m->found[hash % FOUND];
	uint64_t now = m->world.env->now;

	if (f->hash != hash || moved)
		f->late = now + (uint64_t)m->margin * 1000 + 1;
	f->hash = hash;
	f->until = now + MOVES_LOOK_MS;
}

static void go_on(struct unit *u);

static void on_end(struct mover *mover)
{
	struct unit *u = (struct unit *)((char *)mover - offsetof(struct unit, mover));
	struct moves *m = u->moves;
	struct moved_calls calls = STAILQ_HEAD_INITIALIZER(calls);
	struct moved_call *c;

	m->stats.moved += mover->moved;
	m->stats.merged += mover->moved && mover->joined;
	if (!mover->failure.happened) {
		note_found(m, u->hash, mover->moved);
		u->found = true;
		STAILQ_FOREACH(c, &u->calls, link)
			c->imitated = mover->imitated;
		go_on(u);
		return;
	}
	STAILQ_CONCAT(&calls, &u->calls);
	LIST_REMOVE(u, link);
	m->stats.failed++;
	while ((c = STAILQ_FIRST(&calls))) {
		STAILQ_REMOVE_HEAD(&calls, link);
		refuse(c, &mover->failure.result);
	}
	free_unit(u);
}

static void on_time(struct waiter *waiter, const struct result *r)
{
	struct unit *u = (struct unit *)((char *)waiter - offsetof(struct unit, waiter));
	struct env *env = u->moves->world.env;

	(void)r;
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

/* --- reads --- */

/* Sends the call of a waiter, which is `done` by a function of ours. */
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
	return part_key_base(key).n && unit_of(m, key).n < key.n && is_moving(m, key);
}

/* Counts a mark that a call has met. False: it was one too many, and the call has ended. */
static bool may_retry(struct moved_call *c)
{
	if (++c->tries <= TRIES)
		return true;
	refuse(c,
		&(struct result){ .status = RESULT_REFUSED,
			.line = SLICE("SERVER_ERROR busy: the key is being moved"),
			.server = "setlistd" });
	return false;
}

/* A mark shows that a proxy moves the key, or that one was killed while it did. The call begins again when that has ended. */
static void settle(struct moved_call *c)
{
	struct moves *m = c->moves;
	struct slice key = unit_of(m, c->call.key);
	uint64_t hash = hash_slice(key, m->seed);
	struct unit *u = find_unit(m, hash, key);

	m->found[hash % FOUND].hash = 0;
	if (!may_retry(c))
		return;
	if (u && u->found)
		u->marked = true;
	wait_for(m, c, key, hash, true);
}

static bool is_marked(const struct moved_call *c, const struct result *r)
{
	return r->status == RESULT_HIT && r->flags == MARK_FLAGS && !c->imitated;
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
	} else if (is_marked(c, r)) {
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

enum guard {
	GUARD_NONE,
	GUARD_LOOK, /* the key is looked at before */
	GUARD_HOLD, /* its result tells; those behind it wait for that */
	GUARD_TELLS /* its result tells */
};

static enum guard guard_of(const struct moves *m, const struct call *call, uint64_t hash)
{
	const struct found *f = &m->found[hash % FOUND];
	bool late = f->hash != hash || f->late;

	switch (call->verb) {
	case CALL_APPEND:
	case CALL_PREPEND:
	case CALL_REPLACE:
	case CALL_DELETE:
		return late ? GUARD_LOOK : GUARD_NONE;
	case CALL_META:
		return late ? GUARD_LOOK : GUARD_TELLS;
	case CALL_SET:
		return late && call->compare ? GUARD_HOLD : GUARD_NONE;
	case CALL_ADD:
	case CALL_CAS:
	case CALL_TOUCH: /* it may have to follow a read of the time to live at once */
		return late ? GUARD_HOLD : GUARD_NONE;
	case CALL_INCR:
	case CALL_DECR:
	case CALL_GAT:
		return GUARD_TELLS;
	default:
		return GUARD_NONE;
	}
}

/* Of a call on a part none is needed: only its base is claimed. */
static enum guard guard_in(const struct unit *u, const struct call *call)
{
	return call->key.n == u->mover.key.n ? guard_of(u->moves, call, u->hash) : GUARD_NONE;
}

static void end_call(struct moved_call *c, const struct result *r)
{
	struct waiter *asker = c->asker;
	struct unit *u = c->unit;

	free(c);
	asker->done(asker, r);
	if (u)
		go_on(u);
}

static void told(struct waiter *waiter, const struct result *r);

/* The call of a unit comes before all others again. */
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

/* The look behind a call has a reply. The call has met a mark, or an item, or something that has gone since. */
static void looked_behind(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));
	bool marked = is_marked(c, r);
	struct result before = { .status = c->status, .server = r->server };

	c->moves->busy--;
	if (result_failed(r)) {
		struct result failed = *r;
		failed.status = r->status == RESULT_REFUSED ? r->status : RESULT_UNAVAILABLE;
		end_call(c, &failed);
	} else if (r->status == RESULT_HIT && !marked && !result_failed(&before)) {
		end_call(c, &before);
	} else if (r->status == RESULT_MISS && before.status == RESULT_EXISTS && !c->call.vivifies) {
		end_call(c, &(struct result){ .status = RESULT_MISS, .server = r->server });
	} else {
		retry(c, marked);
	}
}

/* Whether the reply to a meta get is about a mark: it has the flags of one, or its value is one. */
static bool is_text_of_mark(struct slice key, const struct result *r)
{
	struct slice rest = r->line, word;
	uint32_t flags;

	while ((word = slice_token(&rest)).n) {
		if (*word.p == 'f' && num_parse_u32(slice_skip(word, 1), &flags))
			return flags == MARK_FLAGS;
	}
	return mark_read(key, MARK_FLAGS, r->value).kind != MARK_NONE;
}

static bool has_met_mark(const struct moved_call *c, const struct result *r)
{
	if (c->call.verb == CALL_META)
		return r->status == RESULT_TEXT && !c->imitated && is_text_of_mark(c->call.key, r);
	return c->call.verb == CALL_GAT && is_marked(c, r);
}

/* Whether the call may have met a mark. An error of arithmetic stays one when it is tried again. */
static bool is_doubtful(const struct moved_call *c, const struct result *r)
{
	bool counts = c->call.verb == CALL_INCR || c->call.verb == CALL_DECR;

	if (c->call.verb == CALL_TOUCH)
		return r->status == RESULT_DONE;
	return r->status == RESULT_EXISTS || (r->status == RESULT_NOT_STORED && c->call.verb == CALL_ADD) ||
		(r->status == RESULT_REFUSED && counts && c->tries == 0);
}

static void told(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));

	c->moves->busy--;
	c->status = r->status;
	if (has_met_mark(c, r))
		settle(c);
	else if (is_doubtful(c, r))
		send_kept(c, &(struct call){ .verb = CALL_GET, .key = c->call.key }, false, looked_behind);
	else
		end_call(c, r);
}

/* Sends a call that needs no look before. */
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

/* The first calls of the queue need an item, and there is none. */
static void miss(struct unit *u)
{
	struct moved_call *c;

	while ((c = STAILQ_FIRST(&u->calls)) && guard_in(u, &c->call) == GUARD_LOOK && c->call.verb != CALL_META) {
		bool removes = c->call.verb == CALL_DELETE;
		struct waiter *asker = c->asker;
		STAILQ_REMOVE_HEAD(&u->calls, link);
		free(c);
		asker->done(asker, &(struct result){ .status = removes ? RESULT_MISS : RESULT_NOT_STORED });
	}
}

/* All that wait need no look of their own then, but behind one whose result is not known. */
static void send_all(struct unit *u)
{
	struct moved_call *c;
	enum guard guard;

	while ((c = STAILQ_FIRST(&u->calls)) && (guard = guard_in(u, &c->call)) != GUARD_HOLD) {
		STAILQ_REMOVE_HEAD(&u->calls, link);
		send_on(c, guard);
	}
}

static void looked_before(struct waiter *waiter, const struct result *r)
{
	struct unit *u = (struct unit *)((char *)waiter - offsetof(struct unit, waiter));
	struct found *f = &u->moves->found[u->hash % FOUND];
	struct moved_call *c = STAILQ_FIRST(&u->calls);
	bool marked = is_marked(c, r);

	if (f->hash == u->hash && u->looked >= f->late && !marked && !result_failed(r))
		f->late = 0;
	if (result_failed(r) || marked || (r->status == RESULT_MISS && c->call.verb == CALL_META))
		STAILQ_REMOVE_HEAD(&u->calls, link);
	if (marked) {
		retry_in(u, c, true);
		return;
	}
	if (result_failed(r))
		refuse(c, r);
	else if (r->status == RESULT_HIT)
		send_all(u);
	else if (c->call.verb == CALL_META)
		send_on(c, GUARD_NONE);
	else
		miss(u);
	go_on(u);
}

/* The unit is looked for again, and its calls wait for that. */
static void start_again(struct unit *u)
{
	struct moves *m = u->moves;
	struct unit *next;

	m->found[u->hash % FOUND].hash = 0;
	next = add_unit(m, u->hash, u->mover.key);
	STAILQ_CONCAT(&next->calls, &u->calls);
	mover_start(&next->mover, on_end);
}

/* Sends the calls that wait, in their order, until the result of a call has to be known. */
static void go_on(struct unit *u)
{
	struct moves *m = u->moves;
	struct moved_call *c;

	while ((c = STAILQ_FIRST(&u->calls)) && !u->marked) {
		enum guard guard = guard_in(u, &c->call);
		if (guard == GUARD_LOOK) {
			struct call look = { .verb = CALL_GET, .key = u->mover.key };
			u->waiter = (struct waiter){ looked_before, u->mover.key };
			u->looked = m->world.env->now;
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

/* --- until the time --- */

static bool is_meta_miss(const struct result *r)
{
	return r->status == RESULT_TEXT && slice_starts(r->line, SLICE("EN"));
}

static void read_former(struct waiter *waiter, const struct result *r)
{
	struct moved_call *c = (struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));

	c->moves->busy--;
	if (r->status == RESULT_MISS && c->call.verb == CALL_TOUCH) {
		struct slice key = unit_of(c->moves, c->call.key);
		wait_for(c->moves, c, key, hash_slice(key, c->moves->seed), false);
	} else if (r->status == RESULT_MISS || is_meta_miss(r)) {
		ask_here(c);
	} else {
		c->asker->done(c->asker, r);
		free(c);
	}
}

/* A meta get may also touch an item, or make one. STATS reads the clock of a server. */
static bool is_read(const struct call *call)
{
	struct slice rest = call->line, word;

	if (call->verb != CALL_META)
		return call->verb == CALL_GET || call->verb == CALL_STATS;
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

/* Of a unit that was found lately. */
static void send_here(struct moves *m, const struct call *call, struct waiter *waiter, struct slice key, uint64_t hash)
{
	enum guard guard = call->key.n == key.n ? guard_of(m, call, hash) : GUARD_NONE;
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
	STAILQ_INSERT_TAIL(&u->calls, c, link);
	go_on(u);
}

/* Of a unit that nobody waits for. */
static void find(struct moves *m, const struct call *call, struct waiter *waiter, struct slice key, uint64_t hash)
{
	struct env *env = m->world.env;
	bool known = m->found[hash % FOUND].hash == hash && m->found[hash % FOUND].until > env->now;
	struct moved_call *c;

	if (known) {
		send_here(m, call, waiter, key, hash);
		return;
	}
	c = keep_call(m, call, waiter);
	/* A touch need not wait: an item moves with its time to live. The touch that corrects a rewrite would come too late if it waited. */
	if (env->unix_time < m->at && (is_read(call) || call->verb == CALL_TOUCH)) {
		send_kept(c, &c->call, true, read_former);
		return;
	}
	m->stats.waited += env->unix_time < m->at;
	wait_for(m, c, key, hash, false);
}

void moves_call(struct moves *m, const struct call *call, struct waiter *waiter)
{
	int former, here;
	struct slice key;
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
	key = here == former && !part_key_base(call->key).n ? slice_of("", 0) : unit_of(m, call->key);
	if (key.n == 0) {
		pass_to(m, call, waiter, here);
		return;
	}
	hash = hash_slice(key, m->seed);
	if (find_unit(m, hash, key))
		wait_for(m, keep_call(m, call, waiter), key, hash, false);
	else
		find(m, call, waiter, key, hash);
}
