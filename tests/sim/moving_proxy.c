/* The proxies of moving.h: lanes and moves under test, and a new generation of both for each configuration. */
#include <stdlib.h>

#include "collection/machines.h"
#include "moving.h"
#include "util/alloc.h"

static struct buf *task_reply_buf(struct task *task)
{
	return &((struct moving_op *)task->owner)->reply;
}

static void task_begin(struct task *task)
{
	struct moving_op *op = task->owner;

	task->account = op->client >= 0 ? &op->world->clients[op->client].account : &op->account;
}

static void task_ended(struct task *task)
{
	struct moving_op *op = task->owner;

	task_free(task);
	moving_answered(op);
}

/* When a proxy ends, nothing waits for its calls any more. */
static void set_clock(const struct lan_proxy *p, struct env *env)
{
	enum { LATER = 1000000 };

	lan_set_env_clock(p, env);
	env->unix_time += p->dead ? LATER : 0;
}

void moving_set_clock(struct lan_proxy *p)
{
	struct moving_generation *g;

	TAILQ_FOREACH(g, &((struct moving_proxy *)p)->generations, link) {
		set_clock(p, &g->lan.host.env);
		set_clock(p, &g->inner.host.env);
	}
}

struct moving_generation *moving_current(const struct moving_proxy *p)
{
	struct moving_generation *g, *last = NULL;

	TAILQ_FOREACH(g, &p->generations, link)
		last = g;
	return last;
}

static int place(void *arg, struct slice key, int *former)
{
	const struct moving_generation *g = arg;

	*former = moving_place(&g->config.former, key);
	return moving_place(&g->config.ring, key);
}

static int servers_of(const struct moving_ring *ring)
{
	int count = 0;

	for (int i = 0; i < ring->count; i++) {
		int same = 0;
		while (ring->servers[same] != ring->servers[i])
			same++;
		count += same == i;
	}
	return count;
}

static void init_host(struct moving_generation *g, struct lan_host *host)
{
	struct moving_proxy *p = g->proxy;

	lan_init_host(&p->lan, host);
	host->owner = g;
	host->host.env.servers = servers_of(&g->config.ring);
	host->host.env.rules = &p->world->rules;
	host->host.env.options = &p->world->options;
	set_clock(&p->lan, &host->host.env);
}

static void enter(struct moving_proxy *p)
{
	struct moving *w = p->world;
	struct moving_generation *g = xcalloc(1, sizeof(*g));
	struct host *host = &g->lan.host;

	g->proxy = p;
	g->config = w->configs[p->config];
	init_host(g, &g->lan);
	init_host(g, &g->inner);
	host->env.call = moving_call;
	host->reply = task_reply_buf;
	host->begin = task_begin;
	host->done = task_ended;
	if (g->config.moves)
		g->moves = moves_create(&(struct moves_options){ &g->inner.host.env, place, g,
			g->config.at, w->mutation == MOVING_NO_WAIT ? 0 : MOVING_MARGIN });
	host->lanes = lanes_create(&host->env, &machines);
	TAILQ_INSERT_TAIL(&p->generations, g, link);
}

static void leave(struct moving_proxy *p, struct moving_generation *g)
{
	struct moving *w = p->world;

	TAILQ_REMOVE(&p->generations, g, link);
	if (g->moves) {
		w->moved += moves_statistics(g->moves)->moved;
		w->merged += moves_statistics(g->moves)->merged;
		w->waited += moves_statistics(g->moves)->waited;
		if (!moves_idle(g->moves))
			moving_fail(w, "something never ended", "a move is still there");
		else
			moves_destroy(g->moves);
	}
	if (!lanes_idle(g->lan.host.lanes))
		moving_fail(w, "something never ended", "a lane is still there");
	else
		lanes_destroy(g->lan.host.lanes);
	buf_free(&g->lan.host.spare);
	free(g);
}

/* Some tasks have no lane. Each has a call under way. */
static bool is_idle(const struct moving_generation *g)
{
	const struct lan *lan = &g->proxy->world->lan;

	return lanes_idle(g->lan.host.lanes) && (!g->moves || moves_idle(g->moves)) &&
		!lan_is_waiting(lan, &g->lan.host.env) && !lan_is_waiting(lan, &g->inner.host.env);
}

void moving_retire(struct moving_proxy *p)
{
	struct moving_generation *g, *next;

	for (g = TAILQ_FIRST(&p->generations); g; g = next) {
		next = TAILQ_NEXT(g, link);
		if (next && is_idle(g))
			leave(p, g);
	}
}

void moving_configure(struct moving_proxy *p, size_t config)
{
	p->config = config;
	enter(p);
	moving_retire(p);
	lan_say(&p->world->lan, "P%d has configuration %zu\n", p->lan.index, config);
}

void moving_start_proxy(struct moving *w, int index)
{
	struct moving_proxy *p = &w->proxies[index];
	int64_t skew = p->lan.skew;

	lan_init_proxy(&w->lan, &p->lan, index);
	p->lan.skew = skew;
	p->world = w;
	TAILQ_INIT(&p->generations);
	enter(p);
}

void moving_stop_proxy(struct moving_proxy *p)
{
	struct moving_generation *g;

	while ((g = TAILQ_FIRST(&p->generations)))
		leave(p, g);
	pool_free(&p->lan.pool);
}

/* Its tasks fail. The calls that it has sent may still arrive. */
void moving_kill(struct moving *w, int index)
{
	struct moving_proxy *p = &w->proxies[index];

	lan_say(&w->lan, "P%d is killed\n", index);
	lan_kill(&p->lan);
	moving_stop_proxy(p);
	moving_start_proxy(w, index);
}
