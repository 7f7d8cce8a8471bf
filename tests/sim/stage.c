#include "stage.h"

#include <stdlib.h>

#include "collection/machines.h"
#include "collection/text/part_key.h"
#include "util/alloc.h"
#include "util/num.h"
#include "wording.h"
#include "world.h"

enum {
	EVENTS_MAX = 400000,
	WIDE_ITEM_MAX = 60000,
	KILL_WITHIN = 150 /* calls of a proxy */
};

void stage_fail(struct stage *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

uint64_t stage_random(struct stage *w, uint64_t below)
{
	return lan_random(&w->lan, below);
}

bool stage_chance(struct stage *w, unsigned percent)
{
	return stage_random(w, 100) < percent;
}

uint64_t stage_now(const struct stage *w)
{
	return lan_ms(&w->lan);
}

/* --- the network --- */

uint64_t stage_arrival(struct lan *lan, const struct message *m, uint64_t last)
{
	(void)last;
	if (!m->executed && lan_random(lan, 100) < 5)
		return lan->now + lan_random(lan, 40000);
	return lan->now + lan_random(lan, 3000);
}

int stage_place(struct slice key, unsigned turn, unsigned servers)
{
	unsigned behind, sum = 0;
	struct slice base = part_key_place(key, &behind);

	for (size_t i = 0; i < base.n; i++)
		sum += (unsigned char)base.p[i];
	return (int)((sum + behind + turn) % servers);
}

int stage_find_key(const char (*keys)[3], int count, struct slice key)
{
	for (int i = 0; i < count && key.n == 2; i++) {
		if (memcmp(keys[i], key.p, 2) == 0)
			return i;
	}
	return -1;
}

/* --- commands --- */

void *stage_new_op(struct stage *w, size_t size, int client, int proxy)
{
	struct stage_op *op = xcalloc(1, size);

	op->proxy = w->proxies[proxy];
	op->client = client;
	op->issued = stage_now(w);
	op->deadline = UINT64_MAX;
	TAILQ_INSERT_TAIL(&w->ops, op, link);
	return op;
}

void stage_free_op(struct stage_op *op)
{
	TAILQ_REMOVE(&op->proxy->world->ops, op, link);
	buf_free(&op->line);
	buf_free(&op->reply);
	free(op);
}

void stage_send(struct stage_op *op)
{
	struct stage *w = op->proxy->world;

	w->commands++;
	BUF_ADD(&op->line, "\r\n");
	if (!lan_ask(&op->proxy->lan.first, op->client, buf_slice(&op->line), op))
		stage_fail(w, "a request was refused", "%.*s", (int)buf_size(&op->line),
			op->line.data);
}

struct slice stage_value(struct slice reply)
{
	struct slice rest = reply, line;
	uint64_t size = 0;

	if (!slice_starts(reply, SLICE("VALUE ")))
		return slice_of("", 0);
	line = slice_cut(&rest, '\n');
	line.n--;
	for (int i = 0; i < 3; i++)
		(void)slice_token(&line);
	(void)num_parse_u64(slice_token(&line), &size);
	return slice_of(rest.p, size < rest.n ? (size_t)size : rest.n);
}

bool stage_has_failed(const struct stage_op *op)
{
	return op->proxy->lan.dead || slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR"));
}

/* --- proxies --- */

static struct buf *stage_reply(struct task *task)
{
	return &((struct stage_op *)task->owner)->reply;
}

static void stage_task_begin(struct task *task)
{
	struct stage_op *op = task->owner;

	op->task = task;
	task->account = &op->account;
}

static void stage_task_ended(struct task *task)
{
	struct stage_op *op = task->owner;

	task_free(task);
	wording_reply(&op->reply, false);
	lan_say(&op->proxy->world->lan, "client %d%s %.*s: %.*s", op->client,
		op->proxy->lan.dead ? " (killed)" : "", (int)buf_size(&op->line) - 2, op->line.data,
		(int)buf_size(&op->reply), op->reply.data);
	op->proxy->world->hooks->answered(op);
	stage_free_op(op);
}

static void start_proxy(struct stage *w, int index)
{
	struct stage_proxy *p = w->proxies[index];
	struct host *host = &p->lan.host;

	lan_init_proxy(&w->lan, &p->lan, index);
	p->world = w;
	host->env.rules = &w->rules;
	host->env.options = w->options;
	host->reply = stage_reply;
	host->begin = stage_task_begin;
	host->done = stage_task_ended;
	w->hooks->start(p);
	host->lanes = lanes_create(&host->env, &machines);
}

static void stop_proxy(struct stage_proxy *p)
{
	const struct stage_hooks *hooks = p->world->hooks;
	struct host *host = &p->lan.host;

	if (!lanes_idle(host->lanes) || !waiting_idle(host->waiting) ||
		(hooks->stop && !hooks->stop(p))) {
		stage_fail(p->world, "something never ended", "proxy %d", p->lan.index);
		return;
	}
	lanes_destroy(host->lanes);
	waiting_destroy(host->waiting);
	buf_free(&host->spare);
	pool_free(&p->lan.pool);
}

static void kill_later(struct stage_proxy *p)
{
	p->kill_at = p->lan.calls + 1 + stage_random(p->world, KILL_WITHIN);
}

/* Its tasks fail. The calls that it has sent may still arrive. */
static void kill_proxy(struct stage_proxy *p)
{
	struct stage *w = p->world;

	lan_say(&w->lan, "P%d is killed\n", p->lan.index);
	w->kills++;
	w->last_arrival = lan_last_arrival(&p->lan) / 1000;
	p->kill_at = 0;
	p->lan.dead = true;
	waiting_end(p->lan.host.waiting);
	lan_kill(&p->lan);
	stop_proxy(p);
	if (w->violation)
		return;
	start_proxy(w, p->lan.index);
	if (stage_chance(w, 50))
		kill_later(p);
}

void stage_break(struct stage *w)
{
	lan_break(&w->proxies[stage_random(w, STAGE_PROXIES)]->lan,
		(int)stage_random(w, (uint64_t)w->lan.server_count));
}

/* --- time --- */

static const uint64_t FOREVER = UINT64_MAX;

static void step(struct stage *w)
{
	lan_step(&w->lan);
	for (int i = 0; i < STAGE_PROXIES && !w->violation; i++) {
		struct stage_proxy *p = w->proxies[i];
		if (p->kill_at && p->lan.calls >= p->kill_at && !w->ending)
			kill_proxy(p);
	}
	w->hooks->check(w);
}

void stage_run_until(struct stage *w, uint64_t time)
{
	uint64_t next;

	for (int events = 0;
		(next = lan_next(&w->lan)) != FOREVER && next / 1000 <= time && !w->violation;
		events++) {
		step(w);
		if (events > EVENTS_MAX)
			stage_fail(w, "it does not come to an end", "after %d events", events);
	}
	if (time != FOREVER && stage_now(w) < time)
		w->lan.now = time * 1000;
	for (int i = 0; i < STAGE_PROXIES; i++)
		lan_set_clock(&w->proxies[i]->lan);
}

void stage_settle(struct stage *w)
{
	stage_run_until(w, FOREVER);
}

/* --- a history --- */

void stage_begin(struct stage *w, const struct stage_hooks *hooks,
	const struct lan_hooks *lan_hooks, int servers, size_t item_max, const char *lists,
	uint64_t seed, bool verbose)
{
	wording_begin(seed % 4 != 3, "k100", "st", "e1", lists);
	lan_init(&w->lan, lan_hooks, w, servers, wording_is_plain() ? item_max : WIDE_ITEM_MAX,
		seed);
	w->lan.verbose = verbose;
	w->hooks = hooks;
	w->options = world_sizes(seed);
	TAILQ_INIT(&w->ops);
}

void stage_start(struct stage *w)
{
	for (int i = 0; i < STAGE_PROXIES; i++)
		start_proxy(w, i);
}

void stage_kill_later(struct stage *w)
{
	for (int i = 0; i < STAGE_PROXIES && w->trouble; i++)
		kill_later(w->proxies[i]);
}

void stage_end(struct stage *w)
{
	const struct stage_op *op;

	w->ending = true;
	for (int i = 0; i < STAGE_PROXIES && !w->violation; i++)
		waiting_end(w->proxies[i]->lan.host.waiting);
	stage_settle(w);
	op = TAILQ_FIRST(&w->ops);
	if (!w->violation && op)
		stage_fail(w, "a command was never answered", "%.*s", (int)buf_size(&op->line) - 2,
			op->line.data);
}

void stage_tear_down(struct stage *w)
{
	for (int i = 0; i < STAGE_PROXIES && !w->violation; i++)
		stop_proxy(w->proxies[i]);
	while (!TAILQ_EMPTY(&w->ops))
		stage_free_op(TAILQ_FIRST(&w->ops));
	lan_fini(&w->lan);
}
