/*
 * The connection of each client. A client sends several commands without waiting for replies, and its proxy starts them in
 * that order: each as soon as command/order.h allows.
 */
#include "command/start.h"
#include "wording.h"
#include "world.h"

static void start(struct sim_op *op, struct request *request)
{
	struct host *host = &op->proxy->host;
	struct world *w = op->world;

	lan_say(&w->lan, "P%d client %d asks %.*s", op->proxy->index, op->client,
		(int)buf_size(&op->line), op->line.data);
	/* It may be later than that tick. */
	if (w->expiring)
		truth_begin_tick(&w->truth, world_now(w));
	op->issued = w->truth.tick;
	TAILQ_INSERT_TAIL(&w->ops, op, link);
	if (w->form)
		form_issued(op);
	lan_set_clock(op->proxy);
	expiring_start(op);
	w->starting = true;
	if (!task_start(host, request, op))
		world_fail(w, "a request was refused", "%.*s", (int)buf_size(&op->line),
			op->line.data);
	w->starting = false;
}

/* Returns true if the first queued command was started. */
static bool start_next(struct world *w, struct sim_client *c)
{
	const struct request_limits limits = { 1 << 16, 1 << 16, 100 };
	struct sim_op *op = TAILQ_FIRST(&c->waiting);
	struct request request;
	struct request_progress progress = { 0 };
	struct buf line = BUF_EMPTY;
	bool starts;

	if (!op)
		return false;
	wording_request(buf_slice(&op->line), &line);
	if (request_parse(buf_slice(&line), &limits, &progress, &request) != REQUEST_READY) {
		world_fail(w, "a request was refused", "%.*s", (int)buf_size(&op->line),
			op->line.data);
		return false;
	}
	starts = !order_must_wait(&c->order, &request) || w->mutation == MUTATION_NO_WAIT;
	if (starts) {
		TAILQ_REMOVE(&c->waiting, op, link);
		start(op, &request);
	}
	request_progress_end(&progress);
	buf_free(&line);
	return starts;
}

void pipeline_init(struct world *w)
{
	for (int i = 0; i < SIM_CLIENTS; i++)
		TAILQ_INIT(&w->clients[i].waiting);
}

void pipeline_run(struct world *w)
{
	w->ended = false;
	for (int i = 0; i < SIM_CLIENTS; i++) {
		while (start_next(w, &w->clients[i]))
			;
	}
}

void pipeline_send(struct sim_op *op)
{
	struct sim_client *c = &op->world->clients[op->client];

	TAILQ_INSERT_TAIL(&c->waiting, op, link);
	while (start_next(op->world, c))
		;
}

void pipeline_close(struct world *w, const struct lan_proxy *p)
{
	struct sim_op *op, *next;

	for (int i = 0; i < SIM_CLIENTS; i++) {
		for (op = TAILQ_FIRST(&w->clients[i].waiting); op; op = next) {
			next = TAILQ_NEXT(op, link);
			if (p && op->proxy != p)
				continue;
			TAILQ_REMOVE(&w->clients[i].waiting, op, link);
			proxy_free_op(op);
		}
	}
}
