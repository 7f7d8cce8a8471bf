#include "lan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "command/start.h"
#include "util/alloc.h"
#include "util/random.h"
#include "wording.h"

static const uint64_t START =
	1700000000000000; /* microseconds since 1970: a date is more than 30 days */

uint64_t lan_random(struct lan *lan, uint64_t below)
{
	return random_next(&lan->random) % below;
}

uint64_t lan_ms(const struct lan *lan)
{
	return lan->now / 1000;
}

void lan_say(const struct lan *lan, const char *format, ...)
{
	uint64_t since = lan->now - lan->start;
	va_list ap;

	if (!lan->verbose)
		return;
	printf("%7llu.%03llu ", (unsigned long long)since / 1000, (unsigned long long)since % 1000);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
}

/* --- messages, the earliest first --- */

static bool is_before(const struct message *a, const struct message *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void swap(struct lan *lan, size_t a, size_t b)
{
	struct message *m = lan->heap[a];

	lan->heap[a] = lan->heap[b];
	lan->heap[b] = m;
}

static void put(struct lan *lan, struct message *m, uint64_t at)
{
	size_t i = lan->count;

	if (lan->count == lan->capacity) {
		lan->capacity = lan->capacity ? 2 * lan->capacity : 1024;
		lan->heap = xrealloc(lan->heap, lan->capacity * sizeof(*lan->heap));
	}
	m->at = at;
	lan->heap[lan->count++] = m;
	for (; i && is_before(lan->heap[i], lan->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(lan, i, (i - 1) / 2);
}

static struct message *take(struct lan *lan)
{
	struct message *first = lan->heap[0];
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

static struct message *create(
	struct lan *lan, struct lan_proxy *p, struct env *env, struct waiter *waiter, int server)
{
	struct message *m = xcalloc(1, sizeof(*m) + lan->hooks->note_size);

	*m = (struct message){ .number = lan->number++,
		.proxy = p,
		.env = env,
		.waiter = waiter,
		.server = server,
		.from = p ? p->index : -1,
		.note = m + 1 };
	return m;
}

static void forget(struct message *m)
{
	free(m->bytes);
	buf_free(&m->value);
	free(m);
}

/* It stays in the heap, where lan_next() finds it. */
static void drop(struct message *m)
{
	m->proxy = NULL;
	m->gone = true;
}

/* --- sending --- */

static struct lan_proxy *proxy_of(struct env *env)
{
	return ((struct lan_host *)env)->proxy;
}

/* A message never overtakes an earlier one on its connection. */
static uint64_t arrival(struct lan *lan, uint64_t *last, const struct message *m)
{
	uint64_t at = lan->hooks->arrival(lan, m, *last);

	*last = at > *last ? at : *last;
	return *last;
}

static bool is_in_packet(struct lan *lan, const struct message *m)
{
	const struct message *last = lan->last;

	return last && last->proxy == m->proxy && last->server == m->server &&
		lan->hooks->is_in_packet && lan->hooks->is_in_packet(lan, last, m);
}

/* As the daemon's upstream does, refuses a cas id that was read on another connection. */
static bool is_stale(const struct lan_proxy *p, const struct call *call, int server)
{
	return call->verb == CALL_CAS && call->connection &&
		call->connection != p->wires[server].id;
}

void lan_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct lan_proxy *p = proxy_of(env);
	struct lan *lan = p->lan;
	int server = lan->hooks->place ? lan->hooks->place(call->key) : call->server;
	struct message *m = create(lan, p, env, waiter, server);

	assert(server >= 0 && server < lan->server_count);
	m->call = *call;
	m->bytes = memcached_keep_call(&m->call);
	p->calls++;
	m->at = is_in_packet(lan, m) ? lan->last->at : arrival(lan, &p->wires[server].there, m);
	m->answered = p->dead || is_stale(p, call, server);
	if (m->answered)
		m->result.status = p->dead ? RESULT_UNAVAILABLE : RESULT_EXISTS;
	if (lan->hooks->sent)
		lan->hooks->sent(lan, m);
	put(lan, m, m->at);
	lan->last = m;
}

void lan_call_lost(struct lan *lan, const struct call *call)
{
	struct message *m = create(lan, NULL, NULL, NULL, lan->hooks->place(call->key));

	m->call = *call;
	m->bytes = memcached_keep_call(&m->call);
	put(lan, m, lan->now);
}

void lan_acknowledge(struct lan *lan, struct message *m, uint64_t later)
{
	struct message *ack;

	if (m->answered)
		return;
	ack = create(lan, m->proxy, m->env, m->waiter, m->server);
	ack->answered = true;
	ack->result.status = RESULT_DONE;
	put(lan, ack, m->at);
	m->proxy = NULL;
	m->late = true;
	m->later = later;
}

static void wake(struct env *env, struct waiter *waiter, uint64_t after)
{
	struct lan_proxy *p = proxy_of(env);
	struct message *m = create(p->lan, p, env, waiter, -1);

	m->executed = true;
	put(p->lan, m, p->lan->now + after + 1);
}

static void call_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	wake(env, waiter, (uint64_t)ms * 1000);
}

/*
 * Slices and the pauses between them have random lengths, so that anything may happen between any
 * two steps.
 */
static bool is_over(struct env *env)
{
	struct lan_proxy *p = proxy_of(env);

	env->grain = random_next(&p->slices) % 64;
	return random_next(&p->slices) % 2;
}

/* Without hooks that choose a server, all have the same clock. */
static int clock_of(const struct lan_proxy *p, struct slice key)
{
	const struct lan_hooks *hooks = p->lan->hooks;

	if (hooks->clock)
		return hooks->clock(p, key);
	return hooks->place ? hooks->place(key) : 0;
}

static int64_t server_time(struct env *env, struct slice key)
{
	const struct lan_proxy *p = proxy_of(env);
	const struct lan *lan = p->lan;
	int server = clock_of(p, key);
	int64_t error = lan->hooks->clock_error ? lan->hooks->clock_error(p, server) : 0;

	if (p->lacks_clock)
		return 0;
	return ((int64_t)(lan_ms(lan) + lan->servers[server].ahead) + error) / 1000;
}

static void pause_work(struct env *env, struct waiter *waiter, const struct account *account)
{
	(void)account;
	wake(env, waiter, random_next(&proxy_of(env)->slices) % 1000);
}

/* --- proxies --- */

void lan_set_env_clock(const struct lan_proxy *p, struct env *env)
{
	env->now = lan_ms(p->lan);
	env->unix_time = ((int64_t)lan_ms(p->lan) + p->skew) / 1000;
	env->connects = p->connects;
}

void lan_set_clock(struct lan_proxy *p)
{
	if (p->lan->hooks->set_clock)
		p->lan->hooks->set_clock(p);
	else
		lan_set_env_clock(p, &p->host.env);
}

void lan_init_host(struct lan_proxy *p, struct lan_host *host)
{
	*host = (struct lan_host){ .proxy = p };
	host->host.env = (struct env){
		.call = lan_call,
		.later = call_later,
		.is_over = is_over,
		.pause = pause_work,
		.server_time = server_time,
		.random = random_next(&p->lan->random),
		.seed = random_next(&p->lan->random),
		.servers = p->lan->server_count,
		.pool = &p->pool,
	};
	lan_set_env_clock(p, &host->host.env);
}

void lan_init_proxy(struct lan *lan, struct lan_proxy *p, int index)
{
	*p = (struct lan_proxy){ .lan = lan, .index = index, .slices = random_next(&lan->random) };
	lan_init_host(p, &p->first);
	for (int i = 0; i < lan->server_count; i++)
		p->wires[i].id = ++lan->connection;
	TAILQ_INSERT_TAIL(&lan->proxies, p, link);
}

bool lan_ask(struct lan_host *host, int client, struct slice line, void *owner)
{
	const struct request_limits limits = { 1 << 16, 1 << 16, 300 };
	struct request_progress progress = { 0 };
	struct request request;
	struct buf worded = BUF_EMPTY;
	bool good;

	lan_say(host->proxy->lan, "P%d client %d asks %.*s", host->proxy->index, client,
		(int)line.n, line.p);
	lan_set_clock(host->proxy);
	wording_request(line, &worded);
	good = request_parse(buf_slice(&worded), &limits, &progress, &request) == REQUEST_READY &&
		task_start(&host->host, &request, owner);
	request_progress_end(&progress);
	buf_free(&worded);
	return good;
}

/* --- arrivals --- */

struct memcached_item *lan_find(struct lan *lan, struct slice key)
{
	return memcached_find(&lan->servers[lan->hooks->place(key)], key, lan_ms(lan));
}

struct memcached_item *lan_any_item(struct lan *lan)
{
	struct memcached_item *items =
		lan->servers[lan_random(lan, (uint64_t)lan->server_count)].items;
	size_t at = lan_random(lan, MEMCACHED_ITEMS), seen;

	for (seen = 0; seen < MEMCACHED_ITEMS && !items[at].used; seen++)
		at = (at + 1) % MEMCACHED_ITEMS;
	return items[at].used ? &items[at] : NULL;
}

static void show(const struct lan *lan, const struct message *m)
{
	const struct call *c = &m->call;
	struct slice got = buf_size(&m->value) ? buf_slice(&m->value) : m->result.value;

	lan_say(lan,
		"P%d%s server %d verb %d want %u exp %lld cas %llu %.*s | %.*s | -> %d cas %llu "
		"ttl %lld %.*s\n",
		m->from, m->proxy ? "" : " (lost)", m->server, (int)c->verb, c->want,
		(long long)c->exptime, (unsigned long long)c->number, (int)c->key.n, c->key.p,
		(int)c->value.n, c->value.p, (int)m->result.status,
		(unsigned long long)m->result.cas, (long long)m->result.ttl, (int)got.n, got.p);
}

static void execute(struct lan *lan, struct message *m)
{
	if (call_stores(m->call.verb))
		wording_count(m->call.value);
	if (!lan->hooks->execute || !lan->hooks->execute(lan, m))
		m->result = memcached_call(&lan->servers[m->server], &m->call, lan_ms(lan));
	if (lan->hooks->executed)
		lan->hooks->executed(lan, m);
	show(lan, m);
	if (!buf_size(&m->value))
		buf_add_slice(&m->value, m->result.value);
}

static void send_back(struct lan *lan, struct message *m)
{
	m->executed = true;
	if (m->proxy)
		put(lan, m, arrival(lan, &m->proxy->wires[m->server].back, m));
	else
		forget(m);
}

/* The message is in the heap no more. */
static void deliver(struct message *m)
{
	struct lan_proxy *p = m->proxy;

	if (buf_size(&m->value))
		m->result.value = m->result.line = buf_slice(&m->value);
	m->result.server = "sim";
	if (m->server >= 0)
		m->result.connection = p->wires[m->server].id;
	lan_set_clock(p);
	p->lan->delivered = m;
	m->waiter->done(m->waiter, &m->result);
	p->lan->delivered = NULL;
	forget(m);
}

uint64_t lan_next(struct lan *lan)
{
	while (lan->count && lan->heap[0]->gone) {
		lan->last = NULL;
		forget(take(lan));
	}
	return lan->count ? lan->heap[0]->at : UINT64_MAX;
}

void lan_step(struct lan *lan)
{
	uint64_t at = lan_next(lan), later;
	struct message *m = take(lan);

	lan->now = at > lan->now ? at : lan->now;
	lan->last = NULL;
	if (m->later) {
		later = m->later;
		m->later = 0;
		put(lan, m, lan->now + later);
	} else if (m->executed) {
		deliver(m);
	} else {
		if (!m->answered)
			execute(lan, m);
		send_back(lan, m);
	}
}

/* --- failures --- */

static int compare_numbers(const void *a, const void *b)
{
	const struct message *first = *(struct message *const *)a,
			     *second = *(struct message *const *)b;

	return first->number < second->number ? -1 : first->number > second->number;
}

/* Returns the pending messages of a proxy: from this server. The caller frees the list. */
static struct message **waiting_for(
	const struct lan *lan, const struct lan_proxy *p, int server, size_t *count)
{
	struct message **list = xmalloc((lan->count + 1) * sizeof(*list));

	*count = 0;
	for (size_t i = 0; i < lan->count; i++) {
		struct message *m = lan->heap[i];
		if (m->proxy == p && m->server == server)
			list[(*count)++] = m;
	}
	qsort(list, *count, sizeof(*list), compare_numbers);
	return list;
}

/* The proxy gets this result, and none of the message. */
static struct message *part_with(struct lan *lan, struct message *m, enum result_status status)
{
	struct message *copy = create(lan, m->proxy, m->env, m->waiter, m->server);

	copy->result.status = status;
	m->proxy = NULL;
	return copy;
}

/* An abort discards calls that have not left the proxy's kernel. A killed proxy aborts nothing. */
static bool is_discarded(
	const struct lan_proxy *p, const struct lan_wire *wire, const struct message *m)
{
	return wire->recovers && m->number >= wire->stuck && !p->dead && !p->lan->gentle;
}

static void break_wire(struct lan_proxy *p, int server, bool restarts)
{
	struct lan *lan = p->lan;
	struct lan_wire *wire = &p->wires[server];
	struct message **lost;
	size_t count, kept = 0;
	bool sent = true;

	wire->id = ++lan->connection;
	p->connects++;
	lan->last = NULL;
	if (lan->hooks->broken)
		lan->hooks->broken(p, server);
	lost = waiting_for(lan, p, server, &count);
	for (size_t i = 0; i < count; i++) {
		struct message *m = lost[i];
		bool has_result = m->executed || m->answered;
		if (restarts && !has_result && lan->hooks->sent_again &&
			lan->hooks->sent_again(lan, m))
			continue;
		sent = sent && lan_random(lan, 100) < 70;
		lost[kept++] =
			part_with(lan, m, sent || has_result ? RESULT_LOST : RESULT_UNAVAILABLE);
		if (!sent || has_result || restarts || is_discarded(p, wire, m) ||
			lan_random(lan, 2))
			drop(m);
	}
	if (wire->recovers) {
		wire->recovers = 0;
		wire->there = wire->back = lan->now;
	}
	for (size_t i = 0; i < kept; i++)
		deliver(lost[i]);
	free(lost);
}

void lan_break(struct lan_proxy *p, int server)
{
	break_wire(p, server, false);
}

void lan_restart(struct lan *lan, int server)
{
	struct lan_proxy *p;

	TAILQ_FOREACH(p, &lan->proxies, link)
		break_wire(p, server, true);
	for (size_t i = 0; i < lan->count; i++) {
		if (!lan->heap[i]->proxy && lan->heap[i]->server == server)
			drop(lan->heap[i]);
	}
}

static void wait_while_stuck(struct lan_proxy *p, struct lan_wire *wire);

static void look_if_stuck(struct waiter *waiter, const struct result *r)
{
	struct lan_wire *wire =
		(struct lan_wire *)((char *)waiter - offsetof(struct lan_wire, clock));
	struct lan_proxy *p = wire->proxy;
	int server = (int)(wire - p->wires);
	size_t count;

	(void)r;
	if (p->dead || !wire->recovers)
		return;
	free(waiting_for(p->lan, p, server, &count));
	if (p->lan->now >= wire->recovers)
		wire->recovers = 0;
	else if (count)
		break_wire(p, server, false);
	else
		wait_while_stuck(p, wire);
}

static void wait_while_stuck(struct lan_proxy *p, struct lan_wire *wire)
{
	struct lan *lan = p->lan;
	struct message *m = create(lan, p, NULL, &wire->clock, -1);
	uint64_t at = lan->now + wire->timeout;

	m->executed = true;
	put(lan, m, at < wire->recovers ? at : wire->recovers);
}

void lan_stall(struct lan_proxy *p, int server, uint64_t length, uint64_t timeout)
{
	struct lan_wire *wire = &p->wires[server];
	struct lan *lan = p->lan;

	if (wire->recovers)
		return;
	lan_say(lan, "P%d server %d: is stalled for %llu us\n", p->index, server,
		(unsigned long long)length);
	wire->stuck = lan->number;
	wire->recovers = lan->now + length;
	wire->there = wire->recovers > wire->there ? wire->recovers : wire->there;
	wire->back = wire->recovers > wire->back ? wire->recovers : wire->back;
	wire->timeout = timeout;
	wire->clock.done = look_if_stuck;
	wire->proxy = p;
	wait_while_stuck(p, wire);
}

uint64_t lan_last_arrival(const struct lan_proxy *p)
{
	uint64_t last = p->lan->now;

	for (int i = 0; i < p->lan->server_count; i++)
		last = p->wires[i].there > last ? p->wires[i].there : last;
	return last;
}

/* Returns the first message that a proxy waits for. */
static struct message *first_of(const struct lan *lan, const struct lan_proxy *p)
{
	struct message *first = NULL;

	for (size_t i = 0; i < lan->count; i++) {
		struct message *m = lan->heap[i];
		if (m->proxy == p && (!first || m->number < first->number))
			first = m;
	}
	return first;
}

void lan_kill(struct lan_proxy *p)
{
	struct lan *lan = p->lan;
	struct message *m, *copy;

	p->dead = true;
	for (size_t i = 0; i < lan->count; i++) {
		if (lan->heap[i]->late && lan->heap[i]->from == p->index)
			drop(lan->heap[i]);
	}
	for (int i = 0; i < lan->server_count; i++)
		lan_break(p, i);
	while ((m = first_of(lan, p))) {
		copy = part_with(lan, m, m->result.status);
		drop(m);
		deliver(copy);
	}
	TAILQ_REMOVE(&lan->proxies, p, link);
}

/* --- calls in flight --- */

const struct message *lan_last_call(
	const struct lan *lan, const struct lan_proxy *p, struct slice key)
{
	const struct message *last = NULL;

	for (size_t i = 0; i < lan->count; i++) {
		const struct message *m = lan->heap[i];
		if (m->proxy == p && (!last || m->number > last->number) &&
			slice_equal(m->call.key, key))
			last = m;
	}
	return last;
}

bool lan_is_waiting(const struct lan *lan, const struct env *env)
{
	for (size_t i = 0; i < lan->count; i++) {
		if (lan->heap[i]->proxy && lan->heap[i]->env == env)
			return true;
	}
	return false;
}

void lan_init(struct lan *lan, const struct lan_hooks *hooks, void *arg, int servers,
	size_t item_max, uint64_t seed)
{
	lan->hooks = hooks;
	lan->arg = arg;
	lan->server_count = servers;
	lan->servers = xcalloc((size_t)servers, sizeof(*lan->servers));
	lan->start = lan->now = START;
	lan->random = seed;
	TAILQ_INIT(&lan->proxies);
	for (int i = 0; i < servers; i++)
		lan->servers[i].item_max = item_max;
}

void lan_fini(struct lan *lan)
{
	while (lan->count)
		forget(take(lan));
	free(lan->heap);
	for (int i = 0; i < lan->server_count; i++)
		memcached_restart(&lan->servers[i]);
	free(lan->servers);
}
