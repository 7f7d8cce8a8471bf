/* The proxies of moving.h: lanes and moves under test, and a new generation of both for each configuration. */
#include <stdio.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "moving.h"
#include "util/alloc.h"
#include "util/random.h"

static void task_begin(struct task *task)
{
	(void)task;
}

static struct buf *task_reply_buf(struct task *task)
{
	return &((struct moving_op *)task->owner)->reply;
}

static const void *client_of(const void *owner)
{
	const struct moving_op *op = owner;

	return op->client >= 0 ? &op->world->clients[op->client] : owner;
}

static void task_ended(struct task *task)
{
	struct moving_op *op = task->owner;

	task_free(task);
	moving_answered(op);
}

/* Slices are of random lengths, so that anything may come between any two steps. */
static bool is_over(struct env *env)
{
	struct moving_generation *g =
		(struct moving_generation *)((char *)env - offsetof(struct moving_generation, host));

	env->grain = random_next(&g->proxy->slices) % 64;
	return random_next(&g->proxy->slices) % 2;
}

static void pause_work(struct env *env, struct waiter *waiter, const void *client)
{
	(void)client;
	moving_later(env, waiter, 0);
}

/* For a proxy that ends nothing waits any more. */
static void set_clock(struct env *env, const struct moving_proxy *p)
{
	enum { LATER = 1000000 };

	env->now = p->world->now;
	env->unix_time = ((int64_t)p->world->now + p->skew) / 1000 + (p->dead ? LATER : 0);
	env->connects = p->world->connection;
}

void moving_set_clock(struct moving_proxy *p)
{
	struct moving_generation *g;

	TAILQ_FOREACH(g, &p->generations, link) {
		set_clock(&g->host.env, p);
		set_clock(&g->inner.env, p);
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

static void make_env(struct moving_generation *g, struct env *env)
{
	struct moving_proxy *p = g->proxy;

	*env = (struct env){
		.random = random_next(&p->world->random),
		.seed = random_next(&p->world->random),
		.servers = servers_of(&g->config.ring),
		.rules = &p->world->rules,
		.options = p->world->options,
		.pool = &p->pool,
	};
	set_clock(env, p);
}

static void enter(struct moving_proxy *p)
{
	struct moving *w = p->world;
	struct moving_generation *g = xcalloc(1, sizeof(*g));

	g->proxy = p;
	g->config = w->configs[p->config];
	g->host =
		(struct host){ .begin = task_begin, .reply = task_reply_buf, .client = client_of, .done = task_ended };
	make_env(g, &g->host.env);
	g->host.env.call = moving_send_placed;
	g->host.env.later = moving_later;
	g->host.env.is_over = is_over;
	g->host.env.pause = pause_work;
	make_env(g, &g->inner.env);
	g->inner.generation = g;
	g->inner.env.call = moving_send;
	g->inner.env.later = moving_inner_later;
	if (g->config.moves)
		g->moves = moves_create(&(struct moves_options){
			&g->inner.env, place, g, g->config.at, w->mutation == MOVING_NO_WAIT ? 0 : MOVING_MARGIN });
	g->host.lanes = lanes_create(&g->host.env, &machines);
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
	if (!lanes_idle(g->host.lanes))
		moving_fail(w, "something never ended", "a lane is still there");
	else
		lanes_destroy(g->host.lanes);
	buf_free(&g->host.spare);
	free(g);
}

/* Some tasks have no lane. Each has a call under way. */
static bool is_idle(const struct moving_generation *g)
{
	const struct moving_message *m;

	if (!lanes_idle(g->host.lanes) || (g->moves && !moves_idle(g->moves)))
		return false;
	TAILQ_FOREACH(m, &g->proxy->world->messages, link) {
		if (m->generation == g)
			return false;
	}
	return true;
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
	if (p->world->verbose)
		printf("%8llu P%d has configuration %zu\n", (unsigned long long)p->world->now % 10000000, p->index,
			config);
}

void moving_start_proxy(struct moving *w, int index)
{
	struct moving_proxy *p = &w->proxies[index];

	p->world = w;
	p->index = index;
	p->dead = false;
	p->slices = random_next(&w->random);
	TAILQ_INIT(&p->generations);
	for (int i = 0; i < MOVING_SERVERS; i++)
		p->connections[i] = (struct moving_connection){ .id = ++w->connection };
	enter(p);
}

void moving_stop_proxy(struct moving_proxy *p)
{
	struct moving_generation *g;

	while ((g = TAILQ_FIRST(&p->generations)))
		leave(p, g);
	pool_free(&p->pool);
}

/* Its tasks fail. The calls that it has sent may still arrive. */
void moving_kill(struct moving *w, int index)
{
	struct moving_proxy *p = &w->proxies[index];
	struct moving_message *m;

	if (w->verbose)
		printf("%8llu P%d is killed\n", (unsigned long long)w->now % 10000000, index);
	p->dead = true;
	for (int i = 0; i < MOVING_SERVERS; i++)
		moving_break(w, p, i);
	do {
		TAILQ_FOREACH(m, &w->messages, link) {
			if (m->generation && m->proxy == index)
				break;
		}
		if (m)
			moving_deliver(w, m);
	} while (m);
	moving_stop_proxy(p);
	moving_start_proxy(w, index);
}
