#include "collection/move/mover.h"

#include <stddef.h>
#include <stdlib.h>

#include "collection/text/fences.h"
#include "collection/text/lease.h"
#include "collection/text/part_key.h"
#include "collection/ttl.h"
#include "protocol/request.h"
#include "util/alloc.h"
#include "util/random.h"

enum {
	PARTS_AT_ONCE = 32,
	ATTEMPTS_MAX = 64,
	ATTEMPTS_AT_ONCE = 4,
	PAUSE_MS = 16,
	CLAIM_SECONDS = 60,
	WAITS = 8,
	WAIT_MS = 4,
	/* ATTEMPTS_MAX such pauses take longer than the last second of an item's life. */
	EXPIRY_MS = 64
};
enum { ALL = WANT_VALUE | WANT_CAS | WANT_TTL };

typedef void mover_step(struct mover *m);
static mover_step look, looked, claim, claimed, read_former, decide, copy_parts, next_parts, parts_ended, copy_item,
	delete_former, deleted, read_here, here_is, dropped, touched;

struct slice mover_unit(const struct mover_world *world, struct slice key)
{
	struct slice base = part_key_base(key);

	if (base.n && mover_moves(world, base)) {
		unsigned behind;
		/* A segment of version 0.1.0 is placed by its own key. */
		if (part_key_place(key, &behind).n == base.n)
			return base;
	}
	return mover_moves(world, key) ? key : slice_of(key.p, 0);
}

/* --- calls --- */

void mover_send(const struct mover_world *world, const struct call *call, struct waiter *waiter, int server)
{
	struct call copy = *call;

	copy.server = server;
	if (call->verb != CALL_META && call->verb != CALL_STATS && !request_key_fits_line(call->key)) {
		copy.want |= WANT_ENCODED;
		copy.verb = call->verb == CALL_TOUCH ? CALL_GAT : call->verb;
	}
	world->env->call(world->env, &copy, waiter);
}

static void send_aside(struct env *env, const struct call *call, struct waiter *waiter)
{
	const struct mover_side *side = (struct mover_side *)env;
	bool reads = call->verb == CALL_GET || call->verb == CALL_STATS;

	mover_send(side->world, call, waiter, mover_place(side->world, call->key, side->copies ? reads : side->former));
}

void mover_world_init(struct mover_world *world)
{
	world->from = (struct mover_side){ .world = world, .former = true };
	world->to = (struct mover_side){ .world = world };
	world->copy = (struct mover_side){ .world = world, .copies = true };
}

/* Returns the env of a side, with the clock of the world. */
static struct env *env_of(struct mover_side *side)
{
	side->env = *side->world->env;
	side->env.call = send_aside;
	return &side->env;
}

/* If a call cannot be sent, its result may precede the replies to earlier calls. */
static void count_answer(struct mover *m)
{
	if (--m->pending)
		return;
	if (m->failure.happened)
		m->done(m);
	else
		m->next(m);
}

static void take_result(struct mover *m, struct mover_item *item, const struct result *r)
{
	if (result_failed(r)) {
		failure_keep(&m->failure, r);
	} else if (item && r->status == RESULT_HIT) {
		item->value.start = item->value.end = 0;
		buf_add_slice(&item->value, r->value);
		item->cas = r->cas;
		item->connection = r->connection;
		item->flags = r->flags;
		item->ttl = r->ttl;
	}
	count_answer(m);
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, waiter));

	m->status = r->status;
	take_result(m, m->target, r);
}

static void answered_by_n(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, at_n));

	m->n_status = r->status;
	take_result(m, &m->n, r);
}

static void send(struct mover *m, struct mover_side *side, struct call call, struct waiter *waiter)
{
	call.server = CALL_ANY_SERVER;
	call.key = m->key;
	waiter->key = m->key;
	m->pending++;
	side->env.call = send_aside;
	side->env.call(&side->env, &call, waiter);
}

static void ask(struct mover *m, struct mover_side *side, struct call call, mover_step *next)
{
	m->next = next;
	m->target = NULL;
	m->waiter.done = answered;
	send(m, side, call, &m->waiter);
}

/* Requires that m->next is set, which follows this read and the other calls in flight. */
static void read_n(struct mover *m, unsigned want)
{
	m->at_n.done = answered_by_n;
	m->asked = m->world->calls;
	send(m, &m->world->to, (struct call){ .verb = CALL_GET, .want = want }, &m->at_n);
}

static void fail(struct mover *m, const char *line)
{
	failure_keep(&m->failure,
		&(struct result){
			.status = RESULT_REFUSED, .line = slice_of(line, strlen(line)), .server = "setlistd" });
	m->done(m);
}

static void look_later(struct mover *m, unsigned ms)
{
	struct env *env = m->world->env;

	m->next = look;
	m->target = NULL;
	m->waiter = (struct waiter){ answered, m->key };
	m->pending++;
	env->later(env, &m->waiter, 1 + (unsigned)(random_next(&env->random) % ms));
}

/* Another proxy moves the unit too, or a client changes it. */
static void again(struct mover *m)
{
	struct env *env = m->world->env;

	m->knows = false;
	if (++m->attempts > ATTEMPTS_MAX) {
		fail(m, "SERVER_ERROR busy: the key is being moved");
	} else if (m->attempts <= ATTEMPTS_AT_ONCE || !env->later) {
		look(m);
	} else {
		look_later(m, PAUSE_MS);
	}
}

/* Stores the exptime for `ttl`. False if unknown or about to expire: the mover fails or retries. */
static bool can_keep(struct mover *m, int64_t ttl, int64_t *exptime)
{
	if (ttl_exptime(m->world->env, ttl, exptime))
		return true;
	if (ttl == TTL_UNKNOWN)
		fail(m, "SERVER_ERROR a key that moves has a time to live that its server does not tell");
	else if (++m->attempts > ATTEMPTS_MAX || !m->world->env->later)
		fail(m, "SERVER_ERROR busy: the key is being moved");
	else
		look_later(m, EXPIRY_MS);
	return false;
}

/* --- finding the item --- */

void mover_start(struct mover *m, void (*done)(struct mover *m))
{
	m->done = done;
	m->number = random_next(&m->world->env->random);
	look(m);
}

/* The reply of n is not used if o has the item. */
static void look(struct mover *m)
{
	m->moves = m->there = false;
	m->n_status = RESULT_MISS;
	ask(m, &m->world->from, (struct call){ .verb = CALL_GET }, looked);
	if (!m->knows)
		read_n(m, 0);
}

/* If neither has the item, it may have been moved meanwhile. The queued calls read n again. */
static void looked(struct mover *m)
{
	if (m->status == RESULT_HIT) {
		claim(m);
	} else if (m->n_status == RESULT_HIT && m->n.flags == MARK_FLAGS) {
		read_here(m);
	} else {
		m->there = m->n_status == RESULT_HIT;
		m->done(m);
	}
}

/* --- the copy --- */

/* The addition fails if n has any item. The read after it returns that. */
static void on_claim(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, second));

	m->claimed = r->status == RESULT_DONE;
	if (result_failed(r))
		failure_keep(&m->failure, r);
	count_answer(m);
}

static void claim(struct mover *m)
{
	struct buf text = BUF_EMPTY;
	struct call call = { .verb = CALL_ADD, .flags = MARK_FLAGS, .exptime = CLAIM_SECONDS };

	m->moves = true;
	mark_add_claim(&text, m->key);
	call.value = buf_slice(&text);
	m->next = claimed;
	m->second.done = on_claim;
	send(m, &m->world->to, call, &m->second);
	read_n(m, ALL);
	buf_free(&text);
}

static bool is_own_copy(const struct mover *m)
{
	return m->mark.kind == MARK_COPY && m->mark.mover == m->number;
}

/*
 * If another mover moves this item, this one pauses first. If only this mover has written to n
 * since n had nothing, the copy there is its own. If its deletion on o failed, o's item has
 * changed.
 */
static void claimed(struct mover *m)
{
	if (m->n_status != RESULT_HIT) {
		again(m);
		return;
	}
	m->mark = mark_read(m->key, m->n.flags, buf_slice(&m->n.value));
	m->sole = (m->claimed && m->mark.kind == MARK_CLAIM) || (m->sole && is_own_copy(m));
	if (!m->sole && m->mark.kind != MARK_NONE && m->waits < WAITS && m->world->env->later) {
		m->waits++;
		look_later(m, WAIT_MS);
		return;
	}
	ask(m, &m->world->from, (struct call){ .verb = CALL_GET, .want = ALL }, read_former);
	m->target = &m->o;
}

static void read_former(struct mover *m)
{
	if (m->status != RESULT_HIT)
		again(m);
	else if (can_keep(m, m->o.ttl, &m->parts.exptime))
		decide(m);
}

static bool is_too_large(const struct result *r)
{
	return r->status == RESULT_TOO_LARGE ||
		(r->status == RESULT_REFUSED && slice_equal(r->line, SLICE("SERVER_ERROR object too large for cache")));
}

static void copied(struct cas *cas, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)cas - offsetof(struct mover, cas));

	if (is_too_large(r) && !m->bare && m->mark.kind != MARK_NONE) {
		m->bare = true;
		again(m);
	} else if (result_failed(r)) {
		failure_keep(&m->failure, r);
		m->done(m);
	} else if (r->status == RESULT_DONE) {
		delete_former(m);
	} else {
		again(m);
	}
}

static void on_copy(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, waiter));

	m->pending--;
	copied(&m->cas, r);
}

/* A write that replaces the item read on n. */
static struct call write_call(const struct mover *m, struct slice value, uint32_t flags, int64_t ttl)
{
	struct call call = {
		.verb = CALL_CAS,
		.key = m->key,
		.value = value,
		.flags = flags,
		.number = m->n.cas,
		.connection = m->n.connection,
	};

	if (!ttl_exptime(m->world->env, ttl, &call.exptime))
		call.exptime = -1;
	return call;
}

/*
 * The time to live of a copy is read before the deletion: a touch right after the write could
 * arrive after the move, and undo a client's touch. Only a date needs cas_send.
 */
static void write_copy(struct mover *m, struct slice value, uint32_t flags)
{
	struct call call = write_call(m, value, flags, m->joined ? m->n.ttl : m->o.ttl);

	m->asked = m->world->calls;
	if (m->joined) {
		cas_send(&m->cas, env_of(&m->world->to), call, m->key, m->n.ttl, copied);
		return;
	}
	if (ttl_is_date(call.exptime)) {
		cas_send(&m->cas, env_of(&m->world->copy), call, m->key, m->o.ttl, copied);
		return;
	}
	m->waiter.done = on_copy;
	send(m, &m->world->to, call, &m->waiter);
}

/*
 * Returns whether n has more than an earlier copy of the item on o. A copy of a different item
 * than o has now may be the only copy left: its mover deleted that item, and then a setlistd
 * that still has the old ring created the item on o. Or such a setlistd changed the item before
 * it could be deleted. The latter is true if words were appended, or if the item has parts,
 * which no new item has so soon.
 */
static bool is_truth(const struct mover *m)
{
	struct slice copy = m->mark.value, value = buf_slice(&m->o.value);

	if (m->mark.kind != MARK_COPY || m->mark.cas == m->o.cas || (m->sole && is_own_copy(m)))
		return m->mark.kind == MARK_NONE;
	return !join_has_parts(value) && !(slice_starts(value, copy) && copy.n && copy.p[copy.n - 1] == ' ');
}

static void take_here(struct mover *m)
{
	m->here.start = m->here.end = 0;
	buf_add_slice(&m->here, m->mark.before);
	buf_add_slice(&m->here, m->mark.value);
	buf_add_slice(&m->here, m->mark.behind);
}

/* Returns whether the item on o is dropped, and nothing has to be written to n. */
static bool keeps_here(const struct mover *m)
{
	return m->joined && m->join == JOIN_HERE && m->mark.kind == MARK_NONE;
}

/*
 * Words around a mark were written through a proxy that has the new ring, so they take
 * precedence. For the same reason a joined item keeps the time to live of the item on n.
 */
static void decide(struct mover *m)
{
	bool is_copy = m->mark.kind == MARK_COPY && m->mark.before.n + m->mark.behind.n == 0;

	m->joined = is_truth(m);
	m->dropped = false;
	if (m->joined) {
		take_here(m);
		m->join = join_of(m->world->env->rules, m->key, buf_slice(&m->o.value), buf_slice(&m->here), is_copy);
		m->joined = m->join != JOIN_FORMER;
		m->dropped = m->join == JOIN_HERE && !slice_equal(buf_slice(&m->here), buf_slice(&m->o.value));
	}
	if (!m->joined || keeps_here(m) || can_keep(m, m->n.ttl, &m->parts.exptime))
		copy_parts(m);
}

static void copy_item(struct mover *m)
{
	struct slice value = buf_slice(&m->o.value);
	struct buf text = BUF_EMPTY;
	uint32_t flags = MARK_FLAGS;

	if (keeps_here(m)) {
		delete_former(m);
		return;
	}
	if (m->joined) {
		flags = m->mark.flags;
		if (m->join == JOIN_BOTH)
			join_values(value, buf_slice(&m->here), &text);
		else
			buf_add_slice(&text, buf_slice(&m->here));
	} else if (m->bare) {
		flags = m->o.flags;
		buf_add_slice(&text, value);
	} else {
		mark_add_copy(
			&text, m->key, m->o.flags, m->o.cas, m->number, m->mark.before.n + value.n + m->mark.behind.n);
		buf_add_slice(&text, m->mark.before);
		buf_add_slice(&text, value);
		buf_add_slice(&text, m->mark.behind);
	}
	write_copy(m, buf_slice(&text), flags);
	buf_free(&text);
}

/* --- the deletion --- */

static void on_last_look(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, second));

	m->last_ttl = r->status == RESULT_HIT ? r->ttl : 0;
	count_answer(m);
}

/*
 * The time to live is read just before the deletion: a touch keeps the cas id. n's shows if in
 * time.
 */
static void delete_former(struct mover *m)
{
	struct call call = {
		.verb = CALL_CAS,
		.exptime = -1,
		.number = m->o.cas,
		.connection = m->o.connection,
		.value = SLICE(""),
	};

	m->second.done = on_last_look;
	if (!m->joined)
		send(m, &m->world->from, (struct call){ .verb = CALL_GET, .want = WANT_TTL }, &m->second);
	ask(m, &m->world->from, call, deleted);
	if (!m->joined && !m->bare)
		read_n(m, ALL);
}

static void deleted(struct mover *m)
{
	if (m->status != RESULT_DONE) {
		again(m);
		return;
	}
	m->moved = true;
	if (m->joined || m->bare) {
		m->there = true;
		m->last_ttl = m->joined ? 0 : m->last_ttl;
		touched(m);
	} else {
		here_is(m);
	}
}

static void read_here(struct mover *m)
{
	m->next = here_is;
	read_n(m, ALL);
}

static void finished(struct cas *cas, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)cas - offsetof(struct mover, cas));

	if (result_failed(r)) {
		failure_keep(&m->failure, r);
		m->done(m);
	} else if (r->status == RESULT_DONE) {
		m->there = true;
		touched(m);
	} else {
		read_here(m);
	}
}

static void drop_claim(struct mover *m)
{
	struct call call = {
		.verb = CALL_CAS,
		.exptime = -1,
		.number = m->n.cas,
		.connection = m->n.connection,
		.value = SLICE(""),
	};

	ask(m, &m->world->to, call, dropped);
}

static void dropped(struct mover *m)
{
	if (m->status == RESULT_EXISTS)
		again(m);
	else
		m->done(m);
}

static void here_is(struct mover *m)
{
	struct buf text = BUF_EMPTY;
	struct call call;

	if (m->n_status == RESULT_HIT)
		m->mark = mark_read(m->key, m->n.flags, buf_slice(&m->n.value));
	if (m->n_status != RESULT_HIT || m->mark.kind == MARK_NONE) {
		m->there = m->n_status == RESULT_HIT;
		m->imitated = m->there && m->n.flags == MARK_FLAGS;
		m->done(m);
		return;
	}
	if (m->mark.kind == MARK_CLAIM) {
		drop_claim(m);
		return;
	}
	buf_add_slice(&text, m->mark.before);
	buf_add_slice(&text, m->mark.value);
	buf_add_slice(&text, m->mark.behind);
	call = write_call(m, buf_slice(&text), m->mark.flags, m->n.ttl);
	m->asked = m->world->calls;
	cas_send(&m->cas, env_of(&m->world->to), call, m->key, m->n.ttl, finished);
	buf_free(&text);
}

/* Repeats the touch of another client between the copy of the item on o and its deletion. */
static void touched(struct mover *m)
{
	int64_t exptime, before = m->o.ttl, now = m->last_ttl;
	bool changed = m->moved && now &&
		(before == TTL_NEVER || now == TTL_NEVER ? now != before : now > before || now + 2 < before);

	m->last_ttl = 0;
	if (changed && ttl_exptime(m->world->env, now, &exptime))
		ask(m, &m->world->to, (struct call){ .verb = CALL_TOUCH, .exptime = exptime }, touched);
	else
		m->done(m);
}

/* --- parts --- */

struct mover_part {
	struct waiter waiter;
	struct mover *mover;
	bool is_index, stays;
	char key[];
};

static void send_part(struct mover_part *part, struct mover_side *side, struct call call,
	void (*done)(struct waiter *, const struct result *))
{
	call.server = CALL_ANY_SERVER;
	call.key = part->waiter.key;
	part->waiter.done = done;
	side->env.call(&side->env, &call, &part->waiter);
}

static void end_part(struct mover_part *part, const struct result *r)
{
	struct mover *m = part->mover;

	free(part);
	m->parts.pending--;
	if (result_failed(r))
		failure_keep(&m->failure, r);
	next_parts(m);
}

static void part_ended(struct waiter *waiter, const struct result *r)
{
	end_part((struct mover_part *)waiter, r);
}

/* Touches a part that an earlier mover has written, perhaps with a shorter life. */
static void part_written(struct waiter *waiter, const struct result *r)
{
	struct mover_part *part = (struct mover_part *)waiter;
	struct mover *m = part->mover;

	if (r->status == RESULT_NOT_STORED)
		send_part(part, &m->world->to,
			(struct call){ .verb = CALL_TOUCH, .exptime = ttl_of_part(m->world->env, m->parts.exptime) },
			part_ended);
	else
		end_part(part, r);
}

static void add_tables(struct buf *ids, struct slice index)
{
	struct fences fences;

	if (!fences_read(&fences, index))
		return;
	for (size_t i = 0; i < fences.count; i++)
		buf_add_word(ids, slice_of(fences.list[i].id, OPLOG_ID));
	fences_free(&fences);
}

static bool has_word(const struct buf *words, struct slice word)
{
	struct slice rest = buf_slice(words), one;

	while ((one = slice_token(&rest)).n) {
		if (slice_equal(one, word))
			return true;
	}
	return false;
}

/* A set that has lost a part is moved as it is: it counts as missing. */
static void part_read(struct waiter *waiter, const struct result *r)
{
	struct mover_part *part = (struct mover_part *)waiter;
	struct mover *m = part->mover;

	if (r->status != RESULT_HIT) {
		end_part(part, r);
		return;
	}
	if (part->is_index)
		add_tables(&m->parts.ids, r->value);
	if (part->stays) {
		end_part(part, r);
		return;
	}
	send_part(part, &m->world->to,
		(struct call){ .verb = CALL_ADD,
			.value = r->value,
			.flags = r->flags,
			.exptime = ttl_of_part(m->world->env, m->parts.exptime) },
		part_written);
}

static struct mover_part *new_part(struct mover *m, struct slice id)
{
	struct mover_part *part = xmalloc(sizeof(*part) + m->key.n + 1 + id.n);
	char *p = slice_write(part->key, m->key);

	*p++ = '.';
	p = slice_write(p, id);
	part->mover = m;
	part->is_index = *id.p == (char)OPLOG_INDEX;
	part->waiter.key = slice_of(part->key, (size_t)(p - part->key));
	return part;
}

static void begin_part(struct mover *m, struct slice id)
{
	struct mover_world *world = m->world;
	struct mover_part *part = new_part(m, id);
	bool drops = m->joined && m->join == JOIN_HERE;

	/*
	 * An index that stays may have tables that move. A dropped item's parts are only
	 * deleted.
	 */
	part->stays = !mover_moves(world, part->waiter.key) || (drops && !m->parts.deletes);
	if (part->stays && (m->parts.deletes || !part->is_index)) {
		free(part);
		return;
	}
	m->parts.pending++;
	if (m->parts.deletes)
		send_part(part, &world->from, (struct call){ .verb = CALL_DELETE }, part_ended);
	else
		send_part(part, &world->from, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, part_read);
}

static void own_part_read(struct waiter *waiter, const struct result *r)
{
	struct mover_part *part = (struct mover_part *)waiter;
	struct mover *m = part->mover;

	if (r->status == RESULT_HIT && part->is_index)
		add_tables(&m->parts.own, r->value);
	else if (r->status == RESULT_HIT)
		join_drop_words(&m->o.value, &m->here, r->value);
	end_part(part, r);
}

static void read_own_part(struct mover *m, struct slice id)
{
	if (has_word(&m->parts.ids, id))
		return;
	m->parts.pending++;
	send_part(new_part(m, id), &m->world->to, (struct call){ .verb = CALL_GET, .want = WANT_VALUE }, own_part_read);
}

/* Stores the next id of a list of parts. Returns false if there is none left. */
static bool take_id(const struct buf *ids, size_t *next, struct slice *id)
{
	struct slice rest = slice_skip(buf_slice(ids), *next);

	*id = slice_token(&rest);
	*next = buf_size(ids) - rest.n;
	return id->n > 0;
}

/* The parts of the item on n are read after the item on o's parts; common parts are left out. */
static void next_parts(struct mover *m)
{
	struct mover_parts *parts = &m->parts;
	struct slice id;

	while (parts->pending < PARTS_AT_ONCE && !m->failure.happened && take_id(&parts->ids, &parts->next, &id))
		begin_part(m, id);
	if (parts->pending == 0 && !parts->deletes)
		parts->reads_own = true;
	while (parts->reads_own && parts->pending < PARTS_AT_ONCE && !m->failure.happened &&
		take_id(&parts->own, &parts->next_own, &id))
		read_own_part(m, id);
	if (parts->pending == 0)
		parts_ended(m);
}

/* Appends the ids of the parts that a base refers to directly. */
static void find_parts(struct slice value, struct buf *ids)
{
	struct buf refs = BUF_EMPTY;
	struct slice rest;
	struct oplog_run run;
	struct oplog_ref segment;

	lease_add_refs(value, &refs);
	rest = buf_slice(&refs);
	while (oplog_next_run(&rest, &run))
		buf_add_word(ids, run.id);
	while (oplog_next_ref(&rest, &segment))
		buf_add_word(ids, segment.id);
	buf_free(&refs);
}

/* A part that moves by itself, and has been read, is not a base. */
static void copy_parts(struct mover *m)
{
	m->parts.ids.start = m->parts.ids.end = 0;
	m->parts.own.start = m->parts.own.end = 0;
	m->parts.next = m->parts.next_own = 0;
	m->parts.reads_own = false;
	if (part_key_base(m->key).n == 0)
		find_parts(buf_slice(&m->o.value), &m->parts.ids);
	if (m->joined && m->join == JOIN_BOTH && join_needs_runs(buf_slice(&m->o.value), buf_slice(&m->here)))
		find_parts(buf_slice(&m->here), &m->parts.own);
	next_parts(m);
}

static void parts_ended(struct mover *m)
{
	if (m->parts.deletes || m->failure.happened)
		m->done(m);
	else
		copy_item(m);
}

bool mover_clean(struct mover *m, void (*done)(struct mover *m))
{
	if (!m->moved || buf_size(&m->parts.ids) == 0)
		return false;
	m->done = done;
	m->parts.deletes = true;
	m->parts.reads_own = false;
	m->parts.next = 0;
	next_parts(m);
	return true;
}

void mover_fini(struct mover *m)
{
	buf_free(&m->o.value);
	buf_free(&m->n.value);
	buf_free(&m->here);
	buf_free(&m->parts.ids);
	buf_free(&m->parts.own);
	failure_free(&m->failure);
}
