#include "collection/move/mover.h"

#include <stddef.h>
#include <stdlib.h>

#include "collection/text/date.h"
#include "collection/ttl.h"
#include "util/alloc.h"
#include "util/random.h"

enum {
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
static mover_step mover_look, mover_on_looked, claim, mover_on_claimed, mover_read_former, decide,
	copy_parts, copy_item, delete_former, mover_on_deleted, read_here, mover_on_here,
	mover_on_dropped, mover_on_touched;

/* --- calls --- */

/* A call that cannot be sent may be answered before those that were sent. */
static void count_call(struct mover *m)
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
	count_call(m);
}

static void mover_on_answer(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, waiter));

	m->status = r->status;
	take_result(m, m->target, r);
}

static void mover_on_answer_of_n(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, at_n));

	m->n_status = r->status;
	take_result(m, &m->n, r);
}

static void send_to(
	struct mover *m, struct mover_side *side, struct call call, struct waiter *waiter)
{
	call.server = CALL_ANY_SERVER;
	call.key = m->key;
	waiter->key = m->key;
	m->pending++;
	side->env.call(&side->env, &call, waiter);
}

static void call_then(struct mover *m, struct mover_side *side, struct call call, mover_step *next)
{
	m->next = next;
	m->target = NULL;
	m->waiter.done = mover_on_answer;
	send_to(m, side, call, &m->waiter);
}

/* Requires that m->next is set, which follows this read and the other calls in flight. */
static void read_n(struct mover *m, unsigned want)
{
	m->at_n.done = mover_on_answer_of_n;
	m->asked = m->world->calls;
	send_to(m, &m->world->to, (struct call){ .verb = CALL_GET, .want = want }, &m->at_n);
}

static void fail_move(struct mover *m, const char *line)
{
	failure_keep(&m->failure,
		&(struct result){ .status = RESULT_REFUSED,
			.line = slice_of(line, strlen(line)),
			.server = "setlistd" });
	m->done(m);
}

static void look_later(struct mover *m, unsigned ms)
{
	struct env *env = m->world->env;

	m->next = mover_look;
	m->target = NULL;
	m->waiter = (struct waiter){ mover_on_answer, m->key };
	m->pending++;
	env->later(env, &m->waiter, 1 + (unsigned)(random_next(&env->random) % ms));
}

/* Another proxy moves the unit too, or a client changes it. */
static void attempt_again(struct mover *m)
{
	struct env *env = m->world->env;

	m->knows = false;
	if (++m->attempts > ATTEMPTS_MAX) {
		fail_move(m, "SERVER_ERROR busy: the key is being moved");
	} else if (m->attempts <= ATTEMPTS_AT_ONCE || !env->later) {
		mover_look(m);
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
		fail_move(m, "SERVER_ERROR the time to live of a moving key is unknown");
	else if (++m->attempts > ATTEMPTS_MAX || !m->world->env->later)
		fail_move(m, "SERVER_ERROR busy: the key is being moved");
	else
		look_later(m, EXPIRY_MS);
	return false;
}

static struct mover *mover_of(struct mover_parts *parts)
{
	return (struct mover *)((char *)parts - offsetof(struct mover, parts));
}

/* --- where it is --- */

void mover_start(struct mover *m, void (*done)(struct mover *m))
{
	m->done = done;
	m->parts.world = m->world;
	m->parts.key = m->key;
	m->parts.failure = &m->failure;
	m->number = random_next(&m->world->env->random);
	mover_look(m);
}

/* The reply of n is not used if o has the item. */
static void mover_look(struct mover *m)
{
	m->moves = m->there = false;
	m->n_status = RESULT_MISS;
	call_then(m, &m->world->from, (struct call){ .verb = CALL_GET }, mover_on_looked);
	if (!m->knows)
		read_n(m, 0);
}

/* If neither has the item, it may have been moved meanwhile. The queued calls read n again. */
static void mover_on_looked(struct mover *m)
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
static void mover_on_claim(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, second));

	m->claimed = r->status == RESULT_DONE;
	if (result_failed(r))
		failure_keep(&m->failure, r);
	count_call(m);
}

static void claim(struct mover *m)
{
	struct buf text = BUF_EMPTY;
	struct call call = { .verb = CALL_ADD, .flags = MARK_FLAGS, .exptime = CLAIM_SECONDS };

	m->moves = true;
	mark_add_claim(&text, m->key);
	call.value = buf_slice(&text);
	m->next = mover_on_claimed;
	m->second.done = mover_on_claim;
	send_to(m, &m->world->to, call, &m->second);
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
static void mover_on_claimed(struct mover *m)
{
	if (m->n_status != RESULT_HIT) {
		attempt_again(m);
		return;
	}
	m->mark = mark_read(m->key, m->n.flags, buf_slice(&m->n.value));
	m->sole = (m->claimed && m->mark.kind == MARK_CLAIM) || (m->sole && is_own_copy(m));
	if (!m->sole && m->mark.kind != MARK_NONE && m->waits < WAITS && m->world->env->later) {
		m->waits++;
		look_later(m, WAIT_MS);
		return;
	}
	call_then(m, &m->world->from, (struct call){ .verb = CALL_GET, .want = ALL },
		mover_read_former);
	m->target = &m->o;
}

/* Returns whether the copy on n is not of the item that o has now. */
static bool is_of_another(const struct mover *m)
{
	return m->mark.kind == MARK_COPY && m->mark.cas != m->o.cas && !(m->sole && is_own_copy(m));
}

static void mover_on_part(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, second));

	m->part_status = r->status;
	if (result_failed(r))
		failure_keep(&m->failure, r);
	count_call(m);
}

/* After a rewrite, the parts of the former base are deleted in the background. */
static void mover_on_part_read(struct mover *m)
{
	bool there = m->part_status == RESULT_HIT;

	if (there && m->seen != m->o.cas && m->world->env->later) {
		m->seen = m->o.cas;
		look_later(m, PAUSE_MS);
		return;
	}
	m->fresh = there ? m->o.cas : 0;
	decide(m);
}

/* Reads the part on o that shows whether the item there is a later state of the copy. */
static void read_part_on_o(struct mover *m, struct slice id)
{
	struct env *from = &m->world->from.env;

	buf_consume(&m->part, buf_size(&m->part));
	buf_add_slice(&m->part, m->key);
	BUF_ADD(&m->part, ".");
	buf_add_slice(&m->part, id);
	m->next = mover_on_part_read;
	m->second = (struct waiter){ mover_on_part, buf_slice(&m->part) };
	m->pending++;
	from->call(from,
		&(struct call){ .verb = CALL_GET, .server = CALL_ANY_SERVER, .key = m->second.key },
		&m->second);
}

static void mover_read_former(struct mover *m)
{
	struct slice part = SLICE("");

	if (m->status != RESULT_HIT) {
		attempt_again(m);
	} else if (can_keep(m, m->o.ttl, &m->parts.exptime)) {
		if (is_of_another(m))
			(void)join_may_succeed(m->mark.value, buf_slice(&m->o.value), &part);
		if (part.n)
			read_part_on_o(m, part);
		else
			decide(m);
	}
}

static bool is_too_large_to_move(const struct result *r)
{
	return r->status == RESULT_TOO_LARGE ||
		(r->status == RESULT_REFUSED &&
			slice_equal(r->line, SLICE("SERVER_ERROR object too large for cache")));
}

static void mover_on_copied(struct cas *cas, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)cas - offsetof(struct mover, cas));

	if (is_too_large_to_move(r) && !m->bare && m->mark.kind != MARK_NONE) {
		m->bare = true;
		attempt_again(m);
	} else if (result_failed(r)) {
		failure_keep(&m->failure, r);
		m->done(m);
	} else if (r->status == RESULT_DONE) {
		delete_former(m);
	} else {
		attempt_again(m);
	}
}

static void mover_on_copy(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, waiter));

	m->pending--;
	mover_on_copied(&m->cas, r);
}

/* A write that replaces the item read on n. */
static struct call write_call(
	const struct mover *m, struct slice value, uint32_t flags, int64_t ttl)
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
 * arrive after the move, and undo a client's touch. Only a date needs cas_send; but a base with a
 * date of its own (text/date.h) expires at that, and each touch changes its CAS id.
 */
static void write_copy(struct mover *m, struct slice value, uint32_t flags)
{
	struct call call =
		write_call(m, value, flags, m->join != JOIN_FORMER ? m->n.ttl : m->o.ttl);
	int64_t date = join_date(m->join != JOIN_FORMER ? value : buf_slice(&m->o.value));

	m->asked = m->world->calls;
	if (date != DATE_NONE) {
		call.exptime = date;
		m->waiter.done = mover_on_copy;
		send_to(m, &m->world->to, call, &m->waiter);
		return;
	}
	if (m->join != JOIN_FORMER) {
		cas_send(
			&m->cas, mover_env(&m->world->to), call, m->key, m->n.ttl, mover_on_copied);
		return;
	}
	if (ttl_is_date(call.exptime)) {
		cas_send(&m->cas, mover_env(&m->world->copy), call, m->key, m->o.ttl,
			mover_on_copied);
		return;
	}
	m->waiter.done = mover_on_copy;
	send_to(m, &m->world->to, call, &m->waiter);
}

/*
 * Returns whether n has more than an earlier copy of the item on o. A copy of a different item
 * than o has now may be the only copy left: its mover deleted that item, and then a setlistd
 * that still has the old ring created the item on o. Or such a setlistd changed the item before
 * it could be deleted. The latter is true if words were appended, or if the item has parts, unless
 * a part of the copy shows that it is new.
 */
static bool is_truth(const struct mover *m)
{
	struct slice copy = m->mark.value, value = buf_slice(&m->o.value), part;

	if (!is_of_another(m))
		return m->mark.kind == MARK_NONE;
	return m->fresh == m->o.cas ||
		(!join_may_succeed(copy, value, &part) &&
			!(slice_starts(value, copy) && copy.n && copy.p[copy.n - 1] == ' '));
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
	return m->join == JOIN_HERE && m->mark.kind == MARK_NONE;
}

/*
 * Words around a mark were written through a proxy that has the new ring, so they take
 * precedence. For the same reason a joined item keeps the time to live of the item on n.
 */
static void decide(struct mover *m)
{
	bool is_copy = m->mark.kind == MARK_COPY && m->mark.before.n + m->mark.behind.n == 0;

	m->join = JOIN_FORMER;
	m->dropped = false;
	if (is_truth(m)) {
		take_here(m);
		m->join = join_of(m->world->env->rules, m->key, buf_slice(&m->o.value),
			buf_slice(&m->here), is_copy);
		m->dropped = m->join == JOIN_HERE &&
			!slice_equal(buf_slice(&m->here), buf_slice(&m->o.value));
	}
	if (m->join == JOIN_FORMER || keeps_here(m) || can_keep(m, m->n.ttl, &m->parts.exptime))
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
	if (m->join != JOIN_FORMER) {
		flags = m->mark.flags;
		if (m->join == JOIN_BOTH)
			join_values(value, buf_slice(&m->here), m->world->env->seed, &text);
		else
			buf_add_slice(&text, buf_slice(&m->here));
	} else if (m->bare) {
		flags = m->o.flags;
		buf_add_slice(&text, value);
	} else {
		mark_add_copy(&text, m->key, m->o.flags, m->o.cas, m->number,
			m->mark.before.n + value.n + m->mark.behind.n);
		buf_add_slice(&text, m->mark.before);
		buf_add_slice(&text, value);
		buf_add_slice(&text, m->mark.behind);
	}
	write_copy(m, buf_slice(&text), flags);
	buf_free(&text);
}

/* --- the deletion --- */

static void mover_on_last_look(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, second));

	m->last_ttl = r->status == RESULT_HIT ? r->ttl : 0;
	count_call(m);
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

	m->second.done = mover_on_last_look;
	if (m->join == JOIN_FORMER)
		send_to(m, &m->world->from, (struct call){ .verb = CALL_GET, .want = WANT_TTL },
			&m->second);
	call_then(m, &m->world->from, call, mover_on_deleted);
	if (m->join == JOIN_FORMER && !m->bare)
		read_n(m, ALL);
}

static void mover_on_deleted(struct mover *m)
{
	if (m->status != RESULT_DONE) {
		attempt_again(m);
		return;
	}
	m->moved = true;
	if (m->join != JOIN_FORMER || m->bare) {
		m->there = true;
		m->last_ttl = m->join != JOIN_FORMER ? 0 : m->last_ttl;
		mover_on_touched(m);
	} else {
		mover_on_here(m);
	}
}

static void read_here(struct mover *m)
{
	m->next = mover_on_here;
	read_n(m, ALL);
}

static void mover_on_finished(struct cas *cas, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)cas - offsetof(struct mover, cas));

	if (result_failed(r)) {
		failure_keep(&m->failure, r);
		m->done(m);
	} else if (r->status == RESULT_DONE) {
		m->there = true;
		mover_on_touched(m);
	} else {
		read_here(m);
	}
}

static void mover_on_finish(struct waiter *waiter, const struct result *r)
{
	struct mover *m = (struct mover *)((char *)waiter - offsetof(struct mover, waiter));

	m->pending--;
	mover_on_finished(&m->cas, r);
}

/* Replaces the copy on n by the item. */
static void finish_item(struct mover *m, struct slice value)
{
	struct call call = write_call(m, value, m->mark.flags, m->n.ttl);
	int64_t date = join_date(value);

	m->asked = m->world->calls;
	if (date == DATE_NONE) {
		cas_send(&m->cas, mover_env(&m->world->to), call, m->key, m->n.ttl,
			mover_on_finished);
		return;
	}
	call.exptime = date;
	m->waiter.done = mover_on_finish;
	send_to(m, &m->world->to, call, &m->waiter);
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

	call_then(m, &m->world->to, call, mover_on_dropped);
}

static void mover_on_dropped(struct mover *m)
{
	if (m->status == RESULT_EXISTS)
		attempt_again(m);
	else
		m->done(m);
}

static void mover_on_here(struct mover *m)
{
	struct buf text = BUF_EMPTY;

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
	finish_item(m, buf_slice(&text));
	buf_free(&text);
}

/* Repeats the touch of another client between the copy of the item on o and its deletion. */
static void mover_on_touched(struct mover *m)
{
	int64_t exptime, before = m->o.ttl, now = m->last_ttl;
	bool changed = m->moved && now &&
		(before == TTL_NEVER || now == TTL_NEVER ? now != before
							 : now > before || now + 2 < before);

	m->last_ttl = 0;
	if (changed && ttl_exptime(m->world->env, now, &exptime))
		call_then(m, &m->world->to, (struct call){ .verb = CALL_TOUCH, .exptime = exptime },
			mover_on_touched);
	else
		m->done(m);
}

/* The parts are copied, unless a server has failed. */
static void mover_on_parts(struct mover_parts *parts)
{
	struct mover *m = mover_of(parts);

	if (m->failure.happened)
		m->done(m);
	else
		copy_item(m);
}

static void copy_parts(struct mover *m)
{
	bool both = m->join == JOIN_BOTH;
	bool drops = m->join == JOIN_HERE ||
		(both && join_drops_parts(buf_slice(&m->o.value), buf_slice(&m->here)));

	mover_parts_copy(&m->parts, &m->o.value, both ? &m->here : NULL, drops, mover_on_parts);
}

static void mover_on_clean(struct mover_parts *parts)
{
	struct mover *m = mover_of(parts);

	m->done(m);
}

bool mover_clean(struct mover *m, void (*done)(struct mover *m))
{
	m->done = done;
	return m->moved && mover_parts_delete(&m->parts, mover_on_clean);
}

void mover_fini(struct mover *m)
{
	buf_free(&m->o.value);
	buf_free(&m->n.value);
	buf_free(&m->here);
	buf_free(&m->part);
	mover_parts_fini(&m->parts);
	failure_free(&m->failure);
}
