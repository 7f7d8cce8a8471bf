/* The network of moving.h: calls that are late, replies that are lost, connections that break, servers that restart. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "collection/text/part_key.h"
#include "moving.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/random.h"

/* Milliseconds. No call is later than the margin leaves it. */
enum { LATE = MOVING_MARGIN * 1000 - 2 * MOVING_APART - 100 };

/* --- where items lie --- */

int moving_place(const struct moving_ring *ring, struct slice key)
{
	unsigned behind, found = 0;
	struct slice base = part_key_place(key, &behind);
	size_t first = hash_slice(base, ring->hash) % (size_t)ring->count;
	int list[MOVING_RING];

	for (int i = 0; i < ring->count; i++) {
		int server = ring->servers[(first + (size_t)i) % (size_t)ring->count];
		unsigned seen = 0;
		while (seen < found && list[seen] != server)
			seen++;
		if (seen == found)
			list[found++] = server;
	}
	return list[behind % found];
}

struct slice moving_base(struct slice key, bool *is_part)
{
	struct slice base = part_key_base(key);

	*is_part = base.n > 0;
	return base.n ? base : key;
}

/* --- sending --- */

static uint64_t delay(struct moving *w)
{
	if (moving_chance(w, 2))
		return moving_random(w, LATE);
	return moving_chance(w, 6) ? moving_random(w, 40) : moving_random(w, 3);
}

/* A read of a time to live and the write behind it, of one key, are in one packet: nothing comes between them. */
static bool is_in_packet(struct moving *w, const struct moving_message *m)
{
	const struct moving_message *last = TAILQ_LAST(&w->messages, moving_messages);

	if (!last || last->generation != m->generation || last->server != m->server || last->sent != w->now ||
		last->executed || !slice_equal(last->call.key, m->call.key))
		return false;
	return last->call.verb == CALL_STATS || (last->call.verb == CALL_GET && last->call.want == WANT_TTL) ||
		moving_chance(w, 50);
}

/* A cas id that was read on another connection is refused, as upstream/server.c does. */
static bool is_stale(const struct call *call, const struct moving_connection *c)
{
	return call->verb == CALL_CAS && call->connection && call->connection != c->id;
}

static void send_to(struct moving_generation *g, const struct call *call, struct waiter *waiter, int server)
{
	struct moving *w = g->proxy->world;
	struct moving_connection *c = &g->proxy->connections[server];
	struct moving_message *m = xcalloc(1, sizeof(*m));

	*m = (struct moving_message){ .generation = g,
		.waiter = waiter,
		.call = *call,
		.server = server,
		.proxy = g->proxy->index,
		.sent = w->now };
	m->bytes = memcached_keep_call(&m->call);
	m->former = g->config.moves ? moving_place(&g->config.former, m->call.key) : -1;
	m->at = (c->last > w->now ? c->last : w->now) + delay(w);
	if (m->at > w->now + LATE)
		m->at = w->now + LATE;
	if (is_in_packet(w, m))
		m->at = c->last;
	c->last = m->at;
	if (g->proxy->dead || is_stale(call, c)) {
		m->executed = true;
		m->result.status = g->proxy->dead ? RESULT_UNAVAILABLE : RESULT_EXISTS;
	}
	moving_mutate_sent(w, m);
	TAILQ_INSERT_TAIL(&w->messages, m, link);
}

void moving_send(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct moving_generation *g = ((struct moving_inner *)env)->generation;

	if (call->server < 0 || call->server >= MOVING_SERVERS)
		abort();
	send_to(g, call, waiter, call->server);
}

static struct moving_generation *generation_of(struct env *env)
{
	return (struct moving_generation *)((char *)env - offsetof(struct moving_generation, host));
}

void moving_send_placed(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct moving_generation *g = generation_of(env);

	if (g->moves)
		moves_call(g->moves, call, waiter);
	else
		send_to(g, call, waiter, moving_place(&g->config.ring, call->key));
}

static void wake(struct moving_generation *g, struct waiter *waiter, unsigned ms)
{
	struct moving *w = g->proxy->world;
	struct moving_message *m = xcalloc(1, sizeof(*m));

	*m = (struct moving_message){ .generation = g,
		.waiter = waiter,
		.server = -1,
		.proxy = g->proxy->index,
		.at = w->now + ms,
		.sent = w->now,
		.executed = true };
	TAILQ_INSERT_TAIL(&w->messages, m, link);
}

void moving_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	wake(generation_of(env), waiter, ms);
}

void moving_inner_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	wake(((struct moving_inner *)env)->generation, waiter, ms);
}

void moving_forget(struct moving *w, struct moving_message *m)
{
	TAILQ_REMOVE(&w->messages, m, link);
	free(m->bytes);
	buf_free(&m->value);
	free(m);
}

/* --- what arrives --- */

void moving_deliver(struct moving *w, struct moving_message *m)
{
	struct moving_generation *g = m->generation;
	struct waiter *waiter = m->waiter;
	struct result r = m->result;
	struct buf value = m->value;

	m->value = BUF_EMPTY;
	if (buf_size(&value))
		r.value = r.line = buf_slice(&value);
	r.server = "sim";
	if (m->server >= 0)
		r.connection = g->proxy->connections[m->server].id;
	moving_set_clock(g->proxy);
	moving_forget(w, m);
	waiter->done(waiter, &r);
	buf_free(&value);
}

static void tell(const struct moving *w, const struct moving_message *m)
{
	printf("%8llu P%d%s server %d verb %d want %u exp %lld cas %llu %.*s | %.*s | -> %d %.*s\n",
		(unsigned long long)w->now % 10000000, m->proxy, m->generation ? "" : " (lost)", m->server,
		(int)m->call.verb, m->call.want, (long long)m->call.exptime, (unsigned long long)m->call.number,
		(int)m->call.key.n, m->call.key.p, (int)m->call.value.n, m->call.value.p, (int)m->result.status,
		(int)m->result.value.n, m->result.value.p);
}

/* Counts claims that come so late that another proxy has moved the item, and a client has deleted it. */
static void look_at_claim(struct moving *w, const struct moving_message *m)
{
	int key = moving_find_key(w, m->call.key);

	if (key >= 0 && m->former >= 0 && m->call.verb == CALL_ADD && m->result.status == RESULT_DONE &&
		slice_starts(m->call.value, SLICE("@claim.")) &&
		!memcached_find(&w->servers[m->former], m->call.key, w->now))
		w->keys[key].claimed = true;
}

static void execute(struct moving *w, struct moving_message *m)
{
	w->tick++;
	moving_lose_to_claim(w, m);
	if (!moving_mutate_execute(w, m))
		m->result = memcached_call(&w->servers[m->server], &m->call, w->now);
	look_at_claim(w, m);
	moving_follow_life(w, m);
	moving_mutate_executed(w, m);
	if (w->verbose)
		tell(w, m);
	m->executed = true;
	buf_add_slice(&m->value, m->result.value);
	if (m->generation)
		m->at = w->now + delay(w) / 4;
	else
		moving_forget(w, m);
}

static struct moving_message *next_message(const struct moving *w)
{
	struct moving_message *m, *first = NULL;

	TAILQ_FOREACH(m, &w->messages, link) {
		if (!first || m->at < first->at)
			first = m;
	}
	return first;
}

/* Whether an earlier message of the same connection is still under way. */
static bool overtakes(const struct moving *w, const struct moving_message *m)
{
	const struct moving_message *other;

	if (m->server < 0)
		return false;
	TAILQ_FOREACH(other, &w->messages, link) {
		if (other == m)
			return false;
		if (other->generation && other->proxy == m->proxy && other->server == m->server)
			return true;
	}
	return false;
}

uint64_t moving_next(const struct moving *w)
{
	const struct moving_message *m = next_message(w);

	return m ? m->at : UINT64_MAX;
}

void moving_step(struct moving *w)
{
	struct moving_message *m = next_message(w);

	w->now = m->at > w->now ? m->at : w->now;
	if (!m->executed)
		execute(w, m);
	else if (overtakes(w, m))
		m->at = w->now + 1;
	else
		moving_deliver(w, m);
}

/* --- what breaks --- */

void moving_break(struct moving *w, struct moving_proxy *p, int server)
{
	bool sent = true;
	struct moving_message *m, *next;
	struct moving_messages lost = TAILQ_HEAD_INITIALIZER(lost);

	p->connections[server].id = ++w->connection;
	for (m = TAILQ_FIRST(&w->messages); m; m = next) {
		struct moving_message *copy;
		next = TAILQ_NEXT(m, link);
		if (!m->generation || m->proxy != p->index || m->server != server)
			continue;
		copy = xcalloc(1, sizeof(*copy));
		copy->waiter = m->waiter;
		sent = sent && moving_chance(w, 70);
		copy->result.status = sent || m->executed ? RESULT_LOST : RESULT_UNAVAILABLE;
		TAILQ_INSERT_TAIL(&lost, copy, link);
		m->generation = NULL;
		if (!sent || m->executed || moving_chance(w, 50))
			moving_forget(w, m);
	}
	moving_set_clock(p);
	while ((m = TAILQ_FIRST(&lost))) {
		struct result r = m->result;
		struct waiter *waiter = m->waiter;
		TAILQ_REMOVE(&lost, m, link);
		free(m);
		r.server = "sim";
		waiter->done(waiter, &r);
	}
}

/* Its cas ids go on, since clients cannot tell them apart. */
void moving_restart(struct moving *w, int server)
{
	struct moving_message *m, *next;
	uint64_t cas = w->servers[server].cas;

	for (m = TAILQ_FIRST(&w->messages); m; m = next) {
		next = TAILQ_NEXT(m, link);
		if (!m->generation && m->server == server)
			moving_forget(w, m);
	}
	memcached_restart(&w->servers[server]);
	w->servers[server].cas = cas;
	for (int i = 0; i < MOVING_PROXIES; i++)
		moving_break(w, &w->proxies[i], server);
	for (m = TAILQ_FIRST(&w->messages); m; m = next) {
		next = TAILQ_NEXT(m, link);
		if (!m->generation && m->server == server)
			moving_forget(w, m);
	}
}
