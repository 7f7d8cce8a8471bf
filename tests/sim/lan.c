#include "lan.h"

#include <stdlib.h>

#include "util/alloc.h"
#include "util/random.h"

uint64_t lan_random(struct lan *lan, uint64_t below)
{
	return random_next(&lan->random) % below;
}

/* --- messages, the earliest first --- */

static bool is_before(const struct lan_message *a, const struct lan_message *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void swap(struct lan *lan, size_t a, size_t b)
{
	struct lan_message *m = lan->heap[a];

	lan->heap[a] = lan->heap[b];
	lan->heap[b] = m;
}

static void put(struct lan *lan, struct lan_message *m, uint64_t at)
{
	size_t i = lan->count;

	if (lan->count == lan->capacity) {
		lan->capacity = lan->capacity ? 2 * lan->capacity : 1024;
		lan->heap = xrealloc(lan->heap, lan->capacity * sizeof(*lan->heap));
	}
	m->at = at;
	m->number = lan->number++;
	lan->heap[lan->count++] = m;
	for (; i && is_before(lan->heap[i], lan->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(lan, i, (i - 1) / 2);
}

static struct lan_message *take(struct lan *lan)
{
	struct lan_message *first = lan->heap[0];
	size_t i = 0, child;

	lan->heap[0] = lan->heap[--lan->count];
	while ((child = 2 * i + 1) < lan->count) {
		if (child + 1 < lan->count && is_before(lan->heap[child + 1], lan->heap[child]))
			child++;
		if (!is_before(lan->heap[child], lan->heap[i]))
			break;
		swap(lan, i, child);
		i = child;
	}
	return first;
}

static void forget(struct lan_message *m)
{
	free(m->bytes);
	buf_free(&m->value);
	free(m);
}

/* --- what proxies send --- */

/* Nothing overtakes what was on this wire before. */
static uint64_t arrival(struct lan *lan, uint64_t *last, const struct call *call)
{
	uint64_t at = lan->now + lan->delay(lan, call);

	*last = at > *last ? at : *last;
	return *last;
}

/* As the daemon's upstream does, refuses a cas id that was read on another connection. */
static bool is_stale(const struct lan_proxy *p, const struct call *call, int server)
{
	return call->verb == CALL_CAS && call->connection && call->connection != p->wires[server].id;
}

static void send_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct lan_proxy *p = (struct lan_proxy *)env;
	struct lan *lan = p->lan;
	struct lan_message *m = xcalloc(1, sizeof(*m));
	int server = lan->place(call->key);

	*m = (struct lan_message){ .proxy = p, .waiter = waiter, .call = *call, .server = server, .from = p->index };
	m->bytes = memcached_keep_call(&m->call);
	p->calls++;
	if (p->dead || is_stale(p, call, server)) {
		m->executed = true;
		m->result.status = p->dead ? RESULT_UNAVAILABLE : RESULT_EXISTS;
	} else if (lan->sent) {
		lan->sent(lan, m);
	}
	put(lan, m, m->late ? m->at : arrival(lan, &p->wires[server].there, call));
}

static void call_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct lan_proxy *p = (struct lan_proxy *)env;
	struct lan_message *m = xcalloc(1, sizeof(*m));

	*m = (struct lan_message){ .proxy = p, .waiter = waiter, .server = -1, .from = p->index, .executed = true };
	put(p->lan, m, p->lan->now + ms * 1000 + 1);
}

/* Slices are of random lengths, so that anything may come between any two steps. */
static bool is_over(struct env *env)
{
	struct lan_proxy *p = (struct lan_proxy *)env;

	env->grain = random_next(&p->slices) % 64;
	return random_next(&p->slices) % 2;
}

static void pause_work(struct env *env, struct waiter *waiter, const void *client)
{
	(void)client;
	call_later(env, waiter, 0);
}

void lan_set_clock(struct lan_proxy *p)
{
	p->host.env.now = p->lan->now / 1000;
	p->host.env.unix_time = (int64_t)(p->lan->now / 1000000);
}

void lan_init_proxy(struct lan *lan, struct lan_proxy *p, int index)
{
	*p = (struct lan_proxy){ .lan = lan, .index = index, .slices = random_next(&lan->random) };
	p->host.env = (struct env){
		.call = send_call,
		.later = call_later,
		.is_over = is_over,
		.pause = pause_work,
		.random = random_next(&lan->random),
		.seed = random_next(&lan->random),
		.servers = LAN_SERVERS,
		.pool = &p->pool,
	};
	for (int i = 0; i < LAN_SERVERS; i++)
		p->wires[i].id = ++lan->connection;
	lan_set_clock(p);
}

void lan_acknowledge(struct lan *lan, struct lan_message *m, uint64_t later)
{
	struct lan_message *ack = xcalloc(1, sizeof(*ack));
	struct lan_proxy *p = m->proxy;

	*ack = (struct lan_message){
		.proxy = p, .waiter = m->waiter, .server = m->server, .from = m->from, .executed = true
	};
	ack->result.status = RESULT_DONE;
	put(lan, ack, arrival(lan, &p->wires[m->server].there, &m->call));
	m->proxy = NULL;
	m->late = true;
	m->at = ack->at + later;
}

/* --- what arrives --- */

struct memcached_item *lan_find(struct lan *lan, struct slice key)
{
	return memcached_find(&lan->servers[lan->place(key)], key, lan->now / 1000);
}

static void execute(struct lan *lan, struct lan_message *m)
{
	if (!lan->execute || !lan->execute(lan, m))
		m->result = memcached_call(&lan->servers[m->server], &m->call, lan->now / 1000);
	if (lan->executed)
		lan->executed(lan, m);
	m->executed = true;
	buf_add_slice(&m->value, m->result.value);
	if (m->proxy)
		put(lan, m, arrival(lan, &m->proxy->wires[m->server].back, NULL));
	else
		forget(m);
}

/* The message may be on its way no more. */
static void deliver(struct lan_message *m)
{
	struct lan_proxy *p = m->proxy;

	if (buf_size(&m->value))
		m->result.value = m->result.line = buf_slice(&m->value);
	m->result.server = "sim";
	if (m->server >= 0)
		m->result.connection = p->wires[m->server].id;
	lan_set_clock(p);
	m->waiter->done(m->waiter, &m->result);
	forget(m);
}

uint64_t lan_next(const struct lan *lan)
{
	return lan->count ? lan->heap[0]->at : UINT64_MAX;
}

void lan_step(struct lan *lan)
{
	struct lan_message *m = take(lan);

	lan->now = m->at > lan->now ? m->at : lan->now;
	if (m->dropped || (m->executed && !m->proxy))
		forget(m);
	else if (m->executed)
		deliver(m);
	else
		execute(lan, m);
}

/* --- what breaks --- */

/* The first that the proxy has sent and that it waits for: to this server, or a timer. */
static struct lan_message *first_of(const struct lan *lan, const struct lan_proxy *p, int server)
{
	struct lan_message *first = NULL;

	for (size_t i = 0; i < lan->count; i++) {
		struct lan_message *m = lan->heap[i];
		if (m->proxy == p && m->server == server && (!first || m->number < first->number))
			first = m;
	}
	return first;
}

/* Its proxy is told something else. */
static struct lan_message *part_with(struct lan_message *m, enum result_status status)
{
	struct lan_message *copy = xcalloc(1, sizeof(*copy));

	*copy = (struct lan_message){ .proxy = m->proxy, .waiter = m->waiter, .server = m->server, .executed = true };
	copy->result.status = status;
	m->proxy = NULL;
	return copy;
}

void lan_break(struct lan_proxy *p, int server)
{
	struct lan *lan = p->lan;
	struct lan_message *m, **lost = NULL;
	size_t count = 0;
	bool sent = true;

	p->wires[server].id = ++lan->connection;
	p->host.env.connects++;
	while ((m = first_of(lan, p, server))) {
		sent = sent && lan_random(lan, 100) < 70;
		lost = xrealloc(lost, (count + 1) * sizeof(*lost));
		lost[count++] = part_with(m, sent || m->executed ? RESULT_LOST : RESULT_UNAVAILABLE);
		m->dropped = !sent || m->executed || lan_random(lan, 2);
	}
	for (size_t i = 0; i < count; i++)
		deliver(lost[i]);
	free(lost);
}

void lan_kill(struct lan_proxy *p)
{
	struct lan *lan = p->lan;
	struct lan_message *m;

	p->dead = true;
	for (size_t i = 0; i < lan->count; i++)
		lan->heap[i]->dropped |= lan->heap[i]->late && lan->heap[i]->from == p->index;
	for (int i = 0; i < LAN_SERVERS; i++)
		lan_break(p, i);
	for (bool more = true; more;) {
		more = false;
		for (int i = -1; i < LAN_SERVERS; i++) {
			m = first_of(lan, p, i);
			if (m)
				deliver(part_with(m, m->result.status));
			more |= m != NULL;
		}
	}
}

void lan_fini(struct lan *lan)
{
	while (lan->count)
		forget(take(lan));
	free(lan->heap);
	for (int i = 0; i < LAN_SERVERS; i++)
		memcached_restart(&lan->servers[i]);
}
