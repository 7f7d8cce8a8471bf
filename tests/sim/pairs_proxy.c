/*
 * The proxies of pairs.h: lanes, copies and moves under test, and a new generation of them for each
 * configuration.
 */
#include <stdlib.h>

#include "collection/copies/absences.h"
#include "collection/machines.h"
#include "pairs.h"
#include "util/alloc.h"

/* --- tasks --- */

static struct buf *task_reply_buf(struct task *task)
{
	return &((struct pairs_op *)task->owner)->reply;
}

static void task_begin(struct task *task)
{
	task->account = &((struct pairs_op *)task->owner)->account;
}

static void task_ended(struct task *task)
{
	struct pairs_op *op = task->owner;

	task_free(task);
	pairs_answered(op);
}

/* --- clocks --- */

/* When a proxy ends, nothing waits for its calls any more. */
static void set_clock(const struct pairs_proxy *p, struct env *env)
{
	enum { LATER = 1000000 };

	lan_set_env_clock(&p->lan, env);
	env->unix_time += p->lan.dead ? LATER : 0;
	env->now += p->lan.dead ? LATER : 0;
}

void pairs_set_clock(struct lan_proxy *lan)
{
	struct pairs_proxy *p = (struct pairs_proxy *)lan;
	struct pairs_generation *g;

	TAILQ_FOREACH(g, &p->generations, link) {
		set_clock(p, &g->lan.host.env);
		set_clock(p, &g->middle.host.env);
		set_clock(p, &g->inner.host.env);
	}
}

static uint64_t pairs_on_clock(void *arg)
{
	const struct pairs_proxy *p = ((struct pairs_generation *)arg)->proxy;

	if (p->world->mutation == PAIRS_LATE_ACK && p->appends)
		return p->frozen * 1000;
	return (uint64_t)(pairs_now(p->world) + p->lan.skew) * 1000;
}

static int64_t server_time(struct env *env, struct slice key)
{
	const struct pairs_generation *g = ((struct lan_host *)env)->owner;
	const struct lan *lan = g->proxy->lan.lan;
	int server = moving_place(&g->config.ring, key);

	return (int64_t)(lan_ms(lan) + lan->servers[server].ahead) / 1000;
}

static void pairs_on_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct pairs_proxy *p = (struct pairs_proxy *)((struct lan_host *)env)->proxy;
	bool is_lease = ms > ABSENCE_LEASE_MS && ms <= ABSENCE_WAIT_MS;

	p->later(env, waiter, p->world->mutation == PAIRS_NO_LEASE && is_lease ? 1 : ms);
}

/* --- the layers --- */

static void pairs_on_lane_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct pairs_generation *g = ((struct lan_host *)env)->owner;
	struct call changed = *call;

	pairs_mutate_call(g->proxy, &changed);
	copies_call(g->copies, &changed, waiter);
}

static void pairs_on_copies_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct pairs_generation *g = ((struct lan_host *)env)->owner;
	struct call placed = *call;

	if (g->moves) {
		moves_call(g->moves, call, waiter);
		return;
	}
	if (call->server == CALL_ANY_SERVER)
		placed.server = moving_place(&g->config.ring, call->key);
	pairs_send(&g->inner.host.env, &placed, waiter);
}

static int pairs_place(void *arg, struct slice key, int *former)
{
	const struct pairs_generation *g = arg;
	int here = moving_place(&g->config.ring, key);

	*former = g->config.moves ? moving_place(&g->config.former, key) : here;
	return here;
}

static int pairs_copies_place(void *arg, struct slice key, int *former)
{
	const struct pairs_generation *g = arg;
	int here = pairs_place(arg, key, former);

	if (g->proxy->world->mutation == PAIRS_NO_FORMER)
		*former = here;
	return here;
}

static struct slice pairs_server_name(void *arg, int server)
{
	static const struct slice names[PAIRS_SERVERS] = { { "server0", 7 }, { "server1", 7 },
		{ "server2", 7 }, { "server3", 7 }, { "server4", 7 }, { "server5", 7 },
		{ "server6", 7 }, { "server7", 7 }, { "server8", 7 }, { "server9", 7 } };

	(void)arg;
	return names[server];
}

static int64_t pairs_server_started(void *arg, int server)
{
	return ((struct pairs_generation *)arg)->proxy->world->started[server];
}

/* --- generations --- */

static void init_host(struct pairs_generation *g, struct lan_host *host)
{
	struct pairs *w = g->proxy->world;

	lan_init_host(&g->proxy->lan, host);
	host->owner = g;
	host->host.env.server_time = server_time;
	host->host.env.rules = &w->rules;
	host->host.env.options = &w->options;
	set_clock(g->proxy, &host->host.env);
}

struct pairs_generation *pairs_current(const struct pairs_proxy *p)
{
	struct pairs_generation *g, *last = NULL;

	TAILQ_FOREACH(g, &p->generations, link)
		last = g;
	return last;
}

static void enter(struct pairs_proxy *p)
{
	struct pairs *w = p->world;
	struct pairs_generation *g = xcalloc(1, sizeof(*g));
	struct host *host = &g->lan.host;

	g->proxy = p;
	g->config = w->configs[p->config];
	init_host(g, &g->lan);
	init_host(g, &g->middle);
	init_host(g, &g->inner);
	p->later = host->env.later;
	host->env.call = pairs_on_lane_call;
	host->reply = task_reply_buf;
	host->begin = task_begin;
	host->done = task_ended;
	g->middle.host.env.later = pairs_on_later;
	g->middle.host.env.call = pairs_on_copies_call;
	g->inner.host.env.call = pairs_send;
	if (g->config.moves)
		g->moves = moves_create(&(struct moves_options){
			&g->inner.host.env, pairs_place, g, g->config.at, PAIRS_MARGIN });
	g->copies = copies_create(&(struct copies_options){
		.env = &g->middle.host.env,
		.call = pairs_on_copies_call,
		.place = pairs_copies_place,
		.name = pairs_server_name,
		.started = pairs_server_started,
		.clock = pairs_on_clock,
		.arg = g,
		.servers = w->server_count,
		.timeout = w->mutation == PAIRS_EARLY_CLOSE ? 1 : PAIRS_TIMEOUT,
	});
	host->lanes = lanes_create(&host->env, &machines);
	TAILQ_INSERT_TAIL(&p->generations, g, link);
}

static void count(struct pairs *w, const struct pairs_generation *g)
{
	uint64_t incomplete = copies_statistics(g->copies).incomplete;

	w->incomplete += incomplete;
	w->marks[PAIRS_MARK_lost] += incomplete;
	w->marks[PAIRS_MARK_merges] += lanes_statistics(g->lan.host.lanes)->merges;
	if (g->moves)
		w->marks[PAIRS_MARK_moves] += moves_statistics(g->moves)->moved;
}

uint64_t pairs_incomplete(const struct pairs *w)
{
	const struct pairs_generation *g;
	uint64_t count = w->incomplete;

	for (int i = 0; i < PAIRS_PROXIES; i++) {
		TAILQ_FOREACH(g, &w->proxies[i].generations, link)
			count += copies_statistics(g->copies).incomplete;
	}
	return count;
}

static void leave(struct pairs_proxy *p, struct pairs_generation *g)
{
	struct pairs *w = p->world;

	TAILQ_REMOVE(&p->generations, g, link);
	count(w, g);
	if (!lanes_idle(g->lan.host.lanes)) {
		pairs_fail(
			w, "something never ended", "a lane of P%d is still there", p->lan.index);
	} else if (!copies_idle(g->copies)) {
		pairs_fail(w, "something never ended", "a call or repair of P%d is still there",
			p->lan.index);
	} else if (g->moves && !moves_idle(g->moves)) {
		pairs_fail(
			w, "something never ended", "a move of P%d is still there", p->lan.index);
	} else {
		lanes_destroy(g->lan.host.lanes);
		copies_destroy(g->copies);
		if (g->moves)
			moves_destroy(g->moves);
		buf_free(&g->lan.host.spare);
		free(g);
	}
}

/* Some tasks have no lane. Each has a call under way. */
static bool is_idle(const struct pairs_generation *g)
{
	const struct lan *lan = g->proxy->lan.lan;

	return lanes_idle(g->lan.host.lanes) && copies_idle(g->copies) &&
		(!g->moves || moves_idle(g->moves)) && !lan_is_waiting(lan, &g->lan.host.env) &&
		!lan_is_waiting(lan, &g->middle.host.env) &&
		!lan_is_waiting(lan, &g->inner.host.env);
}

void pairs_retire(struct pairs_proxy *p)
{
	struct pairs_generation *g, *next;

	for (g = TAILQ_FIRST(&p->generations); g; g = next) {
		next = TAILQ_NEXT(g, link);
		if (next && is_idle(g))
			leave(p, g);
	}
}

/* Older generations only end what they have begun. */
void pairs_configure(struct pairs_proxy *p, size_t config)
{
	copies_stop(pairs_current(p)->copies);
	p->config = config;
	enter(p);
	pairs_retire(p);
	lan_say(p->lan.lan, "P%d has configuration %zu\n", p->lan.index, config);
}

void pairs_start_proxy(struct pairs *w, int index)
{
	struct pairs_proxy *p = &w->proxies[index];

	lan_init_proxy(&w->lan, &p->lan, index);
	p->lan.skew = p->offset;
	p->world = w;
	TAILQ_INIT(&p->generations);
	enter(p);
}

void pairs_stop_proxy(struct pairs_proxy *p)
{
	struct pairs_generation *g;

	while ((g = TAILQ_FIRST(&p->generations)) && !p->world->violation)
		leave(p, g);
	if (!p->world->violation)
		pool_free(&p->lan.pool);
}

static bool is_half_written(const struct pairs_proxy *p)
{
	const struct lan *lan = p->lan.lan;

	for (size_t i = 0; i < lan->count; i++) {
		const struct message *m = lan->heap[i];
		if (m->proxy == &p->lan && m->server >= 0 && !m->executed && !m->answered &&
			m->call.verb == CALL_APPEND)
			return true;
	}
	return false;
}

/* Its tasks fail. The calls that it has sent may still arrive. */
void pairs_kill_proxy(struct pairs *w, int index)
{
	struct pairs_proxy *p = &w->proxies[index];
	struct pairs_generation *g;

	lan_say(&w->lan, "P%d is killed\n", index);
	w->marks[PAIRS_MARK_half_written] += is_half_written(p);
	p->kill_at = 0;
	TAILQ_FOREACH(g, &p->generations, link)
		copies_stop(g->copies);
	lan_kill(&p->lan);
	pairs_stop_proxy(p);
	if (!w->violation)
		pairs_start_proxy(w, index);
}
