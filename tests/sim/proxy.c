/* A proxy: the lanes and tasks under test, and the host that they run on. */
#include <stdlib.h>

#include "collection/machines.h"
#include "lists.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "wording.h"
#include "world.h"

/* Each command is a separate owner here, but lanes keep the order of a client. */
static void task_begin(struct task *task)
{
	struct sim_op *op = task->owner;
	struct sim_client *client = &op->world->clients[op->client];

	task->account = op->world->mutation == MUTATION_LATE_READ ? &op->account : &client->account;
	order_begin(&client->order, task->order);
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
	return command == COMMAND_SSET || command == COMMAND_STAKE || command == COMMAND_SLOAD ||
		command == COMMAND_SFILL || command == COMMAND_LLOAD || command == COMMAND_LFILL;
}

static void task_ended(struct task *task)
{
	struct sim_op *op = task->owner;

	op->world->ended = true;
	order_end(&op->world->clients[op->client].order, task->order);
	wording_reply(&op->reply, op->command == COMMAND_SPOP);
	lan_say(&op->world->lan, "client %d key %d %s -> %.*s", op->client, op->key,
		task->command->name.p, (int)buf_size(&op->reply), op->reply.data);
	if (op->command == COMMAND_STAKE && !op->world->form)
		stakes_reply(op);
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

struct lan_proxy *proxy_create(struct world *w, int index)
{
	struct lan_proxy *p = xcalloc(1, sizeof(*p));
	struct host *host = &p->host;

	lan_init_proxy(&w->lan, p, index);
	p->skew = w->skewed ? (index - 1) * (w->form ? 10000 : 1000) : 0;
	p->lacks_clock = w->mutation == MUTATION_NO_CLOCK;
	host->env.rules = &w->rules;
	host->env.options = w->options;
	host->begin = task_begin;
	host->reply = task_reply_buf;
	host->done = task_ended;
	host->lanes = lanes_create(&host->env, &machines);
	return p;
}

void proxy_free(struct lan_proxy *p)
{
	struct world *w = p->lan->arg;
	const struct lanes_stats *s = lanes_statistics(p->host.lanes);

	w->compactions += s->compactions;
	w->merges += s->merges;
	w->incomplete += s->incomplete_sets;
	if (!lanes_idle(p->host.lanes)) {
		world_fail(w, "something never ended", "a lane or a merge is still there");
		return;
	}
	lanes_destroy(p->host.lanes);
	pool_free(&p->pool);
	for (int key = 0; key < SIM_KEYS; key++) {
		buf_free(&w->views[p->index][key]);
		w->pointers[p->index][key] = (struct seen_pointer){ .cas = 0 };
	}
	free(p);
}

/* Its tasks fail. The calls that it has sent may still arrive. */
void proxy_kill(struct world *w, int index)
{
	struct lan_proxy *p = w->proxies[index];

	lists_proxy_dies(w, p);
	pipeline_close(w, p);
	lan_kill(p);
	proxy_free(p);
	w->proxies[index] = proxy_create(w, index);
}
