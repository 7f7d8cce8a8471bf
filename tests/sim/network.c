/* The network: what proxies send to servers, what comes back, and what breaks. */
#include <stdio.h>
#include <stdlib.h>

#include "util/alloc.h"
#include "util/random.h"
#include "world.h"

/* The key of a part of oplog is that of the base, a dot, a letter, the place, and ten bytes or more. */
static bool is_part(struct slice key)
{
	return key.n >= SIM_KEY_SIZE + 13 && key.p[SIM_KEY_SIZE] == '.';
}

/* How many servers behind that of its base it lies. */
static int place_of(struct slice key)
{
	return is_part(key) ? key.p[SIM_KEY_SIZE + 2] - '0' : 0;
}

int world_server(struct slice key)
{
	int sum = place_of(key);

	for (size_t i = 0; i < (is_part(key) ? SIM_KEY_SIZE : key.n); i++)
		sum += (unsigned char)key.p[i];
	return sum % SIM_SERVERS;
}

/* A proxy with another list of servers looks for what lies behind the base in the wrong place. */
static bool looks_elsewhere(const struct world *w, const struct message *m)
{
	return m->proxy && m->proxy->index == w->stray && m->call.verb == CALL_GET && is_part(m->call.key) &&
		(place_of(m->call.key) || w->mutation == MUTATION_PLACE);
}

bool network_excuses(const struct sim_op *op)
{
	const struct world *w = op->world;

	return op->proxy->index == w->stray && (op->many || check_says(op, "END") || check_says(op, "NOT_FOUND"));
}

int world_set(struct slice key)
{
	return key.n == SIM_KEY_SIZE && key.p[0] == 's' ? key.p[1] - '0' : -1;
}

struct memcached_item *world_find(struct world *w, struct slice key)
{
	return memcached_find(&w->servers[world_server(key)], key, w->now);
}

/* As the daemon's upstream does, refuses a cas id that was read on another connection. */
static bool is_stale(const struct proxy *p, const struct call *call, int server)
{
	return call->verb == CALL_CAS && call->connection && call->connection != p->connections[server].id;
}

/* The milliseconds until a call arrives. When a restart is to hit a CAS, the CAS is slow. */
static uint64_t delay(struct world *w, const struct call *call)
{
	if (w->mutation == MUTATION_STALE_CAS && call->verb == CALL_CAS)
		return world_random(w, 60);
	if (w->slow && world_chance(w, 2))
		return world_random(w, 3000);
	return world_chance(w, 5) ? world_random(w, 40) : world_random(w, 3);
}

/*
 * A rewrite reads the time to live, and of a date the server's clock, right before its CAS and its touch. These calls are in one
 * packet, so that nothing comes between them here. A touch that did would be lost.
 */
static bool is_in_packet(const struct world *w, const struct message *m)
{
	const struct message *last = TAILQ_LAST(&w->messages, message_list);

	if (w->mutation == MUTATION_STALE_CAS || !last || last->proxy != m->proxy ||
		!slice_equal(last->call.key, m->call.key))
		return false;
	if (last->call.verb == CALL_STATS)
		return m->call.verb == CALL_CAS || m->call.verb == CALL_TOUCH;
	return last->call.verb == CALL_GET && last->call.want == WANT_TTL &&
		(m->call.verb == CALL_CAS || m->call.verb == CALL_TOUCH || m->call.verb == CALL_STATS);
}

void network_send(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct proxy *p = (struct proxy *)env;
	struct world *w = p->world;
	struct message *m = xcalloc(1, sizeof(*m));
	struct connection *c;

	m->proxy = p;
	m->waiter = waiter;
	m->call = *call;
	m->server = world_server(call->key);
	m->bytes = memcached_keep_call(&m->call);
	c = &p->connections[m->server];
	m->at = (c->last > w->now ? c->last : w->now) + delay(w, call);
	if (is_in_packet(w, m))
		m->at = c->last;
	c->last = m->at;
	if (p->dead || is_stale(p, call, m->server)) {
		m->executed = true;
		m->result = (struct result){ .status = p->dead ? RESULT_UNAVAILABLE : RESULT_EXISTS, .server = "sim" };
	}
	if (w->form)
		form_sent(w, m);
	else
		lives_sent(w, m);
	mutate_sent(w, m);
	TAILQ_INSERT_TAIL(&w->messages, m, link);
}

void network_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct proxy *p = (struct proxy *)env;
	struct message *m = xcalloc(1, sizeof(*m));

	*m = (struct message){ .proxy = p, .waiter = waiter, .server = -1, .at = p->world->now + ms, .executed = true };
	TAILQ_INSERT_TAIL(&p->world->messages, m, link);
}

/* Slices are of random lengths, so that anything may come between any two steps. */
bool network_is_over(struct env *env)
{
	struct proxy *p = (struct proxy *)env;

	env->grain = random_next(&p->slices) % 64;
	return random_next(&p->slices) % 2;
}

void network_pause(struct env *env, struct waiter *waiter, const void *client)
{
	(void)client;
	network_later(env, waiter, 0);
}

void network_forget(struct world *w, struct message *m)
{
	TAILQ_REMOVE(&w->messages, m, link);
	free(m->bytes);
	buf_free(&m->value);
	buf_free(&m->part);
	free(m);
}

void network_deliver(struct world *w, struct message *m)
{
	struct waiter *waiter = m->waiter;
	struct result r = m->result;
	struct buf value = m->value;

	m->value = BUF_EMPTY;
	if (buf_size(&value))
		r.value = r.line = buf_slice(&value);
	r.server = "sim";
	if (!m->proxy) {
		network_forget(w, m);
		return;
	}
	if (m->server >= 0)
		r.connection = m->proxy->connections[m->server].id;
	proxy_set_clock(m->proxy);
	network_forget(w, m);
	waiter->done(waiter, &r);
	buf_free(&value);
}

/* The proxy gets the acknowledgement of a write that is still under way, and that may fail. */
static void acknowledge_early(struct world *w, struct message *m)
{
	struct message *ack;

	if (!mutate_acks_early(w, m))
		return;
	ack = xcalloc(1, sizeof(*ack));
	*ack = (struct message){
		.proxy = m->proxy, .waiter = m->waiter, .server = m->server, .at = w->now, .executed = true
	};
	ack->result.status = RESULT_DONE;
	m->proxy = NULL;
	m->at += 5 + world_random(w, 20);
	m->fails = world_chance(w, 20);
	TAILQ_INSERT_TAIL(&w->messages, ack, link);
}

static void execute(struct world *w, struct message *m)
{
	if (m->fails) {
		network_forget(w, m);
		return;
	}
	mutate_execute(w, m);
	if (w->form)
		form_execute(w, m);
	else
		check_execute(w, m);
	mutate_executed(w, m);
	if (looks_elsewhere(w, m))
		m->result = (struct result){ .status = RESULT_MISS };
	if (w->verbose)
		printf("%6llu P%d server %d verb %d want %u exp %lld ttl %lld %.*s value %.*s -> %d\n",
			(unsigned long long)w->now, m->proxy ? m->proxy->index : -1, m->server, (int)m->call.verb,
			m->call.want, (long long)m->call.exptime, (long long)m->result.ttl, (int)m->call.key.n,
			m->call.key.p, (int)(m->call.value.n + m->result.value.n),
			m->result.value.n ? m->result.value.p : m->call.value.p, (int)m->result.status);
	m->executed = true;
	buf_add_slice(&m->value, m->result.value);
	if (!m->proxy) {
		network_forget(w, m);
		return;
	}
	m->at = w->now + world_random(w, 3);
}

static struct message *next_message(const struct world *w)
{
	struct message *m, *first = NULL;

	TAILQ_FOREACH(m, &w->messages, link) {
		if (!first || m->at < first->at)
			first = m;
	}
	return first;
}

/* Whether an earlier message of the same connection is still under way. */
static bool overtakes(const struct world *w, const struct message *m)
{
	const struct message *other;

	TAILQ_FOREACH(other, &w->messages, link) {
		if (other == m)
			return false;
		if (other->proxy && other->proxy == m->proxy && other->server == m->server)
			return true;
	}
	return false;
}

/* A CAS that waited while its server was down is sent again with its old id. */
static bool sent_again(struct world *w, struct message *m, bool restarted)
{
	if (w->mutation != MUTATION_STALE_CAS || m->call.verb != CALL_CAS || m->executed || !restarted)
		return false;
	m->at += world_random(w, 200);
	return true;
}

void network_break(struct world *w, struct proxy *p, int server, bool restarted)
{
	bool sent = true;
	struct message *m, *next;
	TAILQ_HEAD(, message) lost = TAILQ_HEAD_INITIALIZER(lost);

	p->connections[server].id++;
	p->host.env.connects++;
	if (w->form)
		dates_broken(w);
	else
		lives_break(w, p, server);
	for (m = TAILQ_FIRST(&w->messages); m; m = next) {
		struct message *copy;
		next = TAILQ_NEXT(m, link);
		if (m->proxy != p || m->server != server || sent_again(w, m, restarted))
			continue;
		copy = xcalloc(1, sizeof(*copy));
		copy->waiter = m->waiter;
		sent = sent && world_chance(w, 70);
		copy->result.status = sent || m->executed ? RESULT_LOST : RESULT_UNAVAILABLE;
		TAILQ_INSERT_TAIL(&lost, copy, link);
		m->proxy = NULL;
		if (!sent || m->executed || restarted || world_chance(w, 50))
			network_forget(w, m);
	}
	while ((m = TAILQ_FIRST(&lost))) {
		struct result r = m->result;
		struct waiter *waiter = m->waiter;
		TAILQ_REMOVE(&lost, m, link);
		free(m);
		r.server = "sim";
		waiter->done(waiter, &r);
	}
}

void network_restart(struct world *w, int server)
{
	struct message *m, *next;

	for (int i = 0; i < SIM_PROXIES; i++)
		network_break(w, w->proxies[i], server, true);
	for (m = TAILQ_FIRST(&w->messages); m; m = next) {
		next = TAILQ_NEXT(m, link);
		if (!m->proxy && m->server == server && !m->executed)
			network_forget(w, m);
	}
}

void network_step(struct world *w)
{
	struct message *m = next_message(w);

	if (m->at > w->now)
		w->now = m->at;
	if (!m->executed) {
		acknowledge_early(w, m);
		if (m->at <= w->now)
			execute(w, m);
	} else if (overtakes(w, m)) {
		m->at = w->now + 1;
	} else {
		network_deliver(w, m);
	}
	if (w->ended)
		pipeline_run(w);
}
