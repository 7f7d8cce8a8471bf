/* A proxy: the lanes and tasks under test, and the host that they run on. */
#include <stdio.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "lists.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "util/random.h"
#include "world.h"

static void task_begin(struct task *task)
{
	const struct sim_op *op = task->owner;

	order_begin(&op->world->clients[op->client].order, task->order);
}

static struct buf *task_reply_buf(struct task *task)
{
	return &((struct sim_op *)task->owner)->reply;
}

void proxy_free_op(struct sim_op *op)
{
	buf_free(&op->line);
	buf_free(&op->reply);
	buf_free(&op->log);
	if (op->many)
		buf_free(&op->many->keys);
	free(op->many);
	free(op->list);
	free(op);
}

void proxy_forget_op(struct sim_op *op)
{
	TAILQ_REMOVE(&op->world->ops, op, link);
	proxy_free_op(op);
}

static bool may_come_late(command_id command)
{
	return command == COMMAND_SSET || command == COMMAND_SLOAD || command == COMMAND_SFILL ||
		command == COMMAND_LLOAD || command == COMMAND_LFILL;
}

static void task_ended(struct task *task)
{
	struct sim_op *op = task->owner;

	op->world->ended = true;
	order_end(&op->world->clients[op->client].order, task->order);
	if (op->world->verbose)
		printf("%6llu client %d key %d %s -> %.*s", (unsigned long long)op->world->now, op->client, op->key,
			task->command->name.p, (int)buf_size(&op->reply), op->reply.data);
	if (!op->proxy->dead && op->world->form)
		form_reply(op);
	else if (!op->proxy->dead)
		(op->list ? lists_reply : check_reply)(op);
	if (!op->world->form && may_come_late(op->command) &&
		(op->proxy->dead || slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR"))))
		op->ended = true;
	else
		proxy_forget_op(op);
	task_free(task);
}

/* Each command is an owner of its own here, but lanes keep the order of a client. */
static const void *client_of(const void *owner)
{
	const struct sim_op *op = owner;

	return op->world->mutation == MUTATION_LATE_READ ? owner : &op->world->client_proxy[op->client];
}

void proxy_set_clock(struct proxy *p)
{
	p->host.env.now = p->world->now;
	p->host.env.unix_time = (int64_t)(p->world->now / 1000) + p->skew;
}

struct proxy *proxy_create(struct world *w, int index)
{
	struct proxy *p = xcalloc(1, sizeof(*p));

	p->world = w;
	p->index = index;
	p->host = (struct host){
		.env = {
			.call = network_send,
			.later = network_later,
			.is_over = network_is_over,
			.pause = network_pause,
			.random = random_next(&w->random),
			.seed = random_next(&w->random),
			.servers = SIM_SERVERS,
			.rules = &w->rules,
			.options = w->options,
			.pool = &p->pool,
		},
		.begin = task_begin,
		.reply = task_reply_buf,
		.client = client_of,
		.done = task_ended,
	};
	p->slices = p->host.env.seed;
	p->skew = w->skewed ? (index - 1) * (w->form ? 10 : 1) : 0;
	proxy_set_clock(p);
	p->host.lanes = lanes_create(&p->host.env, &machines);
	for (int i = 0; i < SIM_SERVERS; i++)
		p->connections[i].id = 1;
	return p;
}

void proxy_free(struct proxy *p)
{
	const struct lanes_stats *s = lanes_statistics(p->host.lanes);

	p->world->compactions += s->compactions;
	p->world->merges += s->merges;
	p->world->incomplete += s->incomplete_sets;
	if (!lanes_idle(p->host.lanes)) {
		world_fail(p->world, "something never ended", "a lane or a merge is still there");
		return;
	}
	lanes_destroy(p->host.lanes);
	pool_free(&p->pool);
	for (int key = 0; key < SIM_KEYS; key++)
		buf_free(&p->views[key]);
	free(p);
}

/* Its tasks fail. The calls that it has sent may still arrive. */
void proxy_kill(struct world *w, int index)
{
	struct proxy *p = w->proxies[index];
	struct message *m;

	p->dead = true;
	lists_proxy_dies(w, p);
	pipeline_close(w, p);
	for (int i = 0; i < SIM_SERVERS; i++)
		network_break(w, p, i, false);
	for (bool more = true; more;) {
		more = false;
		TAILQ_FOREACH(m, &w->messages, link) {
			if (m->proxy == p) {
				network_deliver(w, m);
				more = true;
				break;
			}
		}
	}
	proxy_free(p);
	w->proxies[index] = proxy_create(w, index);
}
