/* The network of pairs.h: timeouts, hung servers and cut connections, over that of lan.h. */
#include <stdlib.h>

#include "collection/copies/copy.h"
#include "collection/text/oplog.h"
#include "pairs.h"
#include "util/alloc.h"

enum { MS = 1000 /* microseconds */ };

/* --- names --- */

struct pairs_name pairs_name(struct slice key)
{
	static const struct slice second = { ".~copy", 6 };
	struct pairs_name name = { .key = -1 };
	struct slice rest;

	if (key.n < 2 || key.p[0] != 's' || key.p[1] < '0' || key.p[1] >= '0' + PAIRS_KEYS)
		return name;
	rest = slice_skip(key, 2);
	if (rest.n && *rest.p != '.')
		return name;
	name.key = key.p[1] - '0';
	name.copy = slice_starts(rest, second);
	name.is_part = rest.n > (name.copy ? second.n : 0);
	return name;
}

struct slice pairs_base_key(int key, unsigned copy)
{
	static const struct slice keys[PAIRS_KEYS][2] = { { { "s0", 2 }, { "s0.~copy", 8 } },
		{ { "s1", 2 }, { "s1.~copy", 8 } } };

	return keys[key][copy];
}

int pairs_server_of(const struct pairs *w, int key, unsigned copy)
{
	return moving_place(&w->configs[w->moves ? 2 : 0].ring, pairs_base_key(key, copy));
}

struct memcached_item *pairs_item(struct pairs *w, int key, unsigned copy)
{
	return memcached_find(&w->lan.servers[pairs_server_of(w, key, copy)],
		pairs_base_key(key, copy), lan_ms(&w->lan));
}

/* --- faults --- */

static bool is_within(const struct pairs *w, int64_t until)
{
	return pairs_now(w) < until;
}

bool pairs_is_cut(const struct pairs *w, int proxy, int server)
{
	return is_within(w, w->proxies[proxy].wires[server].cut_until);
}

bool pairs_is_unreachable(const struct pairs *w, int server)
{
	int cut = 0;

	for (int i = 0; i < PAIRS_PROXIES; i++)
		cut += pairs_is_cut(w, i, server);
	return cut == PAIRS_PROXIES || is_within(w, w->servers[server].dead_until) ||
		is_within(w, w->servers[server].hung_until);
}

bool pairs_has_reached_all(const struct pairs *w, int proxy, int64_t since)
{
	for (int i = 0; i < w->server_count; i++) {
		const struct pairs_wire *wire = &w->proxies[proxy].wires[i];
		if (w->servers[i].dead_until >= since || w->servers[i].hung_until >= since ||
			wire->cut_until >= since || wire->down_until >= since)
			return false;
	}
	return true;
}

void pairs_cut(struct pairs *w, int proxy, int server, int64_t until)
{
	struct pairs_wire *wire = &w->proxies[proxy].wires[server];

	wire->cut_until = until;
	wire->only_answers = pairs_chance(w, 30);
	wire->lost = pairs_chance(w, 70);
	lan_say(&w->lan, "P%d is cut from server %d until %lld\n", proxy, server,
		(long long)pairs_since(w, until));
}

void pairs_kill(struct pairs *w, int server, int64_t until)
{
	lan_say(&w->lan, "server %d is killed until %lld\n", server,
		(long long)pairs_since(w, until));
	w->servers[server] = (struct pairs_server){ .dead_until = until };
	w->started[server] = pairs_now(w) / 1000;
	memcached_restart(&w->lan.servers[server]);
	lan_restart(&w->lan, server);
}

void pairs_hang(struct pairs *w, int server, int64_t until)
{
	lan_say(&w->lan, "server %d hangs until %lld\n", server, (long long)pairs_since(w, until));
	w->servers[server].hung_until = until;
}

void pairs_evict(struct pairs *w, int key, unsigned copy)
{
	struct memcached_item *item = pairs_item(w, key, copy);

	lan_say(&w->lan, "copy %u of set %d is evicted\n", copy, key);
	if (!item)
		return;
	memcached_remove(item);
	w->marks[PAIRS_MARK_evicted_alone] +=
		pairs_is_unreachable(w, pairs_server_of(w, key, 1 - copy));
}

void pairs_heal(struct pairs *w)
{
	for (int server = 0; server < PAIRS_SERVERS; server++) {
		w->servers[server] = (struct pairs_server){ 0 };
		for (int i = 0; i < PAIRS_PROXIES; i++)
			w->proxies[i].wires[server] = (struct pairs_wire){ 0 };
	}
}

/* --- calls, and their timeouts --- */

struct pairs_call {
	struct waiter inner, timer;
	struct pairs_proxy *proxy;
	struct env *env;
	struct waiter *asker;
	struct call call;
	char *bytes;
	int64_t made;
	bool sent, answered, timed_out, has_timer;
};

static void free_call(struct pairs_call *c)
{
	free(c->bytes);
	free(c);
}

static void pairs_on_result(struct waiter *waiter, const struct result *r)
{
	struct pairs_call *c = (struct pairs_call *)waiter;
	struct result result = *r;

	if (c->timed_out && r->status == RESULT_LOST)
		result.status = RESULT_TIMED_OUT;
	c->answered = true;
	c->asker->done(c->asker, &result);
	c->proxy->appends -= c->call.verb == CALL_APPEND;
	if (!c->has_timer)
		free_call(c);
}

static void post(struct pairs_call *c)
{
	c->sent = c->has_timer = true;
	c->proxy->world->made = c->made;
	lan_call(c->env, &c->call, &c->inner);
	c->proxy->later(c->env, &c->timer, PAIRS_TIMEOUT);
}

/* A server that is silent for so long is given up: all calls of the connection have failed. */
static void give_up(struct pairs_call *c)
{
	struct pairs_proxy *p = c->proxy;
	int server = c->call.server;

	c->timed_out = true;
	if (p->world->fails_fast)
		p->wires[server].down_until =
			pairs_now(p->world) + pairs_below(p->world, 2 * PAIRS_TIMEOUT);
	lan_say(&p->world->lan, "P%d gives up server %d\n", p->lan.index, server);
	lan_break(&p->lan, server);
}

static void pairs_on_timer(struct waiter *waiter, const struct result *r)
{
	struct pairs_call *c =
		(struct pairs_call *)((char *)waiter - offsetof(struct pairs_call, timer));

	(void)r;
	c->has_timer = false;
	if (!c->sent)
		post(c);
	else if (c->answered)
		free_call(c);
	else if (!c->proxy->lan.dead)
		give_up(c);
}

/* Some calls are queued for a while, and their timeout begins later. */
void pairs_send(struct env *env, const struct call *call, struct waiter *waiter)
{
	static const unsigned queued[] = { PAIRS_TIMEOUT / 2, PAIRS_TIMEOUT * 5 / 2,
		PAIRS_TIMEOUT * 6 };
	struct pairs_proxy *p = (struct pairs_proxy *)((struct lan_host *)env)->proxy;
	struct pairs_call *c = xcalloc(1, sizeof(*c));

	c->inner.done = pairs_on_result;
	c->timer.done = pairs_on_timer;
	c->proxy = p;
	c->env = env;
	c->asker = waiter;
	c->call = *call;
	c->bytes = memcached_keep_call(&c->call);
	c->inner.key = c->call.key;
	c->made = pairs_now(p->world);
	if (call->verb == CALL_APPEND && p->appends++ == 0)
		p->frozen = (uint64_t)(c->made + p->lan.skew);
	if (p->world->queues && !p->world->ending && pairs_below(p->world, 40) == 0) {
		c->has_timer = true;
		p->later(env, &c->timer, queued[pairs_below(p->world, 3)]);
	} else {
		post(c);
	}
}

/* --- hooks --- */

struct pairs_note *pairs_note(const struct message *m)
{
	return m->note;
}

struct pairs_generation *pairs_generation(const struct message *m)
{
	return m->proxy ? ((struct lan_host *)m->env)->owner : NULL;
}

static struct pairs_wire *wire_of(const struct message *m)
{
	return &((struct pairs_proxy *)m->proxy)->wires[m->server];
}

static uint64_t arrival_of_result(struct pairs *w, const struct message *m)
{
	static const unsigned delays[] = { 1, 2, 20 };
	const struct pairs_wire *wire = wire_of(m);
	uint64_t at = w->lan.now + delays[pairs_below(w, 3)] * MS;

	if (m->answered)
		return w->lan.now + MS;
	if (pairs_note(m)->lost)
		return w->lan.now + (uint64_t)20 * PAIRS_TIMEOUT * MS;
	return is_within(w, wire->cut_until) ? (uint64_t)wire->cut_until * MS + MS : at;
}

static uint64_t arrival(struct lan *lan, const struct message *m, uint64_t last)
{
	static const unsigned delays[] = { 1, 1, 2, 5, 20, 20, 50, PAIRS_TIMEOUT * 3 / 10 },
			      late[] = { 0, 0, PAIRS_SETTLED, 5 * PAIRS_SETTLED };
	struct pairs *w = lan->arg;
	const struct pairs_wire *wire = wire_of(m);
	int64_t hung_until = w->servers[m->server].hung_until;
	uint64_t at = lan->now + delays[pairs_below(w, 8)] * MS, hung;

	(void)last;
	if (m->executed)
		return arrival_of_result(w, m);
	if (is_within(w, wire->cut_until) && !wire->only_answers)
		at = ((uint64_t)wire->cut_until + late[pairs_below(w, 4)]) * MS;
	if (is_within(w, hung_until)) {
		hung = ((uint64_t)hung_until + pairs_below(w, PAIRS_TIMEOUT / 2)) * MS;
		at = hung > at ? hung : at;
	}
	return at;
}

/*
 * The read of a time to live and the following write of the same key are in one packet: nothing is
 * executed between them.
 */
static bool is_in_packet(struct lan *lan, const struct message *last, const struct message *m)
{
	(void)lan;
	if (last->answered || !slice_equal(last->call.key, m->call.key))
		return false;
	return last->call.verb == CALL_STATS ||
		(last->call.verb == CALL_GET && last->call.want == WANT_TTL);
}

static void sent(struct lan *lan, struct message *m)
{
	struct pairs *w = lan->arg;
	struct pairs_wire *wire = wire_of(m);
	struct pairs_name name = pairs_name(m->call.key);

	pairs_note(m)->sent = w->made;
	if (name.key >= 0 && !name.is_part && call_stores(m->call.verb))
		pairs_note_added(w, name.key, m->call.value);
	pairs_mutate_sent(w, m);
	if (!m->proxy || m->proxy->dead)
		return;
	if (is_within(w, w->servers[m->server].dead_until) || is_within(w, wire->down_until) ||
		pairs_mutate_fails(w, m)) {
		m->answered = true;
		m->result = (struct result){ .status = RESULT_UNAVAILABLE };
		m->at = lan->now + MS;
	} else if (is_within(w, wire->cut_until)) {
		pairs_note(m)->lost = wire->lost && !wire->only_answers;
	}
}

/* A new connection, which is cut as well. */
static void broken(struct lan_proxy *p, int server)
{
	struct pairs_wire *wire = &((struct pairs_proxy *)p)->wires[server];

	p->wires[server].there = p->wires[server].back = p->lan->now;
	wire->lost = pairs_chance(p->lan->arg, 70);
}

/* --- marks --- */

static uint64_t horizon_of(struct slice base)
{
	struct copy copy;

	return copy_parse(base, &copy) ? copy.horizon : 0;
}

static bool is_gone(struct slice base)
{
	struct copy copy;

	return copy_parse(base, &copy) && copy.gone;
}

static bool has_late_append(const struct pairs *w, struct slice key)
{
	for (size_t i = 0; i < w->lan.count; i++) {
		const struct message *m = w->lan.heap[i];
		if (!m->gone && !m->executed && !m->answered && m->server >= 0 &&
			m->call.verb == CALL_APPEND && slice_equal(m->call.key, key) &&
			pairs_now(w) - pairs_note(m)->sent > PAIRS_SETTLED)
			return true;
	}
	return false;
}

/* Before a CAS of a base: whether it closes. */
static void mark_close(struct pairs *w, const struct message *m, struct pairs_name name)
{
	const struct memcached_item *item =
		memcached_find(&w->lan.servers[m->server], m->call.key, lan_ms(&w->lan));
	int other = pairs_server_of(w, name.key, 1 - name.copy);

	if (m->call.verb != CALL_CAS || !item || item->cas != m->call.number ||
		is_gone(m->call.value) ||
		horizon_of(m->call.value) <= horizon_of(buf_slice(&item->value)))
		return;
	w->marks[PAIRS_MARK_late_closes] += has_late_append(w, m->call.key);
	if (m->from >= 0 && (pairs_is_cut(w, m->from, other) || pairs_is_unreachable(w, other)))
		w->marks[PAIRS_MARK_settled_alone]++;
}

static bool execute(struct lan *lan, struct message *m)
{
	struct pairs *w = lan->arg;
	struct pairs_name name = pairs_name(m->call.key);

	m->result = (struct result){ .status = RESULT_LOST };
	if (pairs_note(m)->lost || pairs_mutate_execute(w, m))
		return true;
	if (name.key >= 0 && !name.is_part)
		mark_close(w, m, name);
	return false;
}

static void mark_absence(struct pairs *w, const struct message *m)
{
	static const struct slice prefix = { "@absent.server", 14 };
	int server;

	if (!slice_starts(m->call.key, prefix) || m->result.status != RESULT_DONE || m->from < 0)
		return;
	server = m->call.key.p[prefix.n] - '0';
	if (pairs_is_cut(w, m->from, server) && !pairs_is_unreachable(w, server))
		w->marks[PAIRS_MARK_lone_absences]++;
}

static void executed(struct lan *lan, struct message *m)
{
	struct pairs *w = lan->arg;
	struct pairs_name name = pairs_name(m->call.key);
	const struct memcached_item *item;

	if (pairs_note(m)->lost)
		return;
	mark_absence(w, m);
	if (name.key >= 0 && name.is_part)
		w->marks[PAIRS_MARK_tables] += name.copy == 0 && m->call.verb == CALL_ADD &&
			m->result.status == RESULT_DONE && m->call.key.p[3] == OPLOG_TABLE;
	else if (name.key >= 0 && m->call.verb == CALL_APPEND)
		w->marks[PAIRS_MARK_late_words] += m->result.status == RESULT_DONE &&
			pairs_now(w) - pairs_note(m)->sent > PAIRS_SETTLED;
	else if (name.key >= 0 && m->call.verb == CALL_ADD &&
		m->result.status == RESULT_NOT_STORED) {
		item = memcached_find(&w->lan.servers[m->server], m->call.key, lan_ms(&w->lan));
		w->marks[PAIRS_MARK_deleted_refills] +=
			item && is_gone(buf_slice(&item->value)) && !is_gone(m->call.value);
	}
	pairs_mutate_executed(w, m);
}

const struct lan_hooks pairs_hooks = {
	.note_size = sizeof(struct pairs_note),
	.arrival = arrival,
	.set_clock = pairs_set_clock,
	.is_in_packet = is_in_packet,
	.sent = sent,
	.execute = execute,
	.executed = executed,
	.broken = broken,
};
