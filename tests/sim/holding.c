#include "holding.h"

#include <stdarg.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "collection/text/part_key.h"
#include "wording.h"
#include "world.h"

enum {
	ACTIONS = 250,
	EVENTS_MAX = 400000,
	ITEM_MAX = 4000,
	WIDE_ITEM_MAX = 60000,
	KILL_WITHIN = 150, /* calls of a proxy */
	APART = 5000,      /* milliseconds between the clocks of two proxies */
	AHEAD = 3000       /* the same of two servers */
};

void holding_fail(struct holding *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

bool holding_chance(struct holding *w, unsigned percent)
{
	return lan_random(&w->lan, 100) < percent;
}

uint64_t holding_now(const struct holding *w)
{
	return lan_ms(&w->lan);
}

/* --- keys --- */

const char *holding_key(int list)
{
	static const char keys[HOLDING_LISTS][3] = { "j0", "j1", "d0" };

	return keys[list];
}

int holding_list(struct slice key)
{
	for (int i = 0; i < HOLDING_LISTS && key.n == 2; i++) {
		if (memcmp(holding_key(i), key.p, 2) == 0)
			return i;
	}
	return -1;
}

/* j1 and d0 are on different servers. */
static int place(struct slice key)
{
	unsigned behind, sum = 0;
	struct slice base = part_key_place(key, &behind);

	for (size_t i = 0; i < base.n; i++)
		sum += (unsigned char)base.p[i];
	return (int)((sum + behind) % HOLDING_SERVERS);
}

int64_t holding_clock(struct holding *w, int list)
{
	int server = place(slice_of(holding_key(list), 2));

	return (int64_t)((holding_now(w) + w->lan.servers[server].ahead) / 1000);
}

/* --- the network --- */

static uint64_t arrival(struct lan *lan, const struct message *m, uint64_t last)
{
	(void)last;
	if (!m->executed && lan_random(lan, 100) < 5)
		return lan->now + lan_random(lan, 40000);
	return lan->now + lan_random(lan, 3000);
}

static void executed(struct lan *lan, struct message *m)
{
	struct holding *w = lan->arg;
	int list = holding_list(m->call.key);

	if (list >= 0)
		holding_executed(w, m, list);
	holding_mutate_executed(w, m);
}

static const struct lan_hooks hooks = {
	.arrival = arrival,
	.place = place,
	.sent = holding_mutate_sent,
	.executed = executed,
};

/* --- proxies --- */

static struct buf *holding_reply(struct task *task)
{
	return &((struct holding_op *)task->owner)->reply;
}

static void holding_begin(struct task *task)
{
	struct holding_op *op = task->owner;

	op->task = task;
	task->account = &op->account;
}

static void holding_ended(struct task *task)
{
	struct holding_op *op = task->owner;

	task_free(task);
	holding_replied(op);
}

static void holding_pushed(struct env *env, struct slice key)
{
	struct holding_proxy *p = (struct holding_proxy *)env;

	waiting_pushed(p->lan.host.waiting, key);
}

static void holding_due(struct env *env, struct slice key, int64_t seconds)
{
	struct holding_proxy *p = (struct holding_proxy *)env;

	if (p->world->mutation != HOLDING_NOT_DUE)
		waiting_due(p->lan.host.waiting, key, (uint64_t)seconds * 1000);
}

static void start_proxy(struct holding *w, int index)
{
	struct holding_proxy *p = &w->proxies[index];
	struct host *host = &p->lan.host;

	lan_init_proxy(&w->lan, &p->lan, index);
	p->world = w;
	p->lan.skew = (index - 1) * APART;
	p->lan.lacks_clock = w->mutation == HOLDING_OWN_CLOCK;
	lan_set_clock(&p->lan);
	host->env.pushed = holding_pushed;
	host->env.due = holding_due;
	host->env.rules = &w->rules;
	host->env.options = w->options;
	host->reply = holding_reply;
	host->begin = holding_begin;
	host->done = holding_ended;
	host->lanes = lanes_create(&host->env, &machines);
	host->waiting = waiting_create(&host->env, &w->boards[index], HOLDING_CLIENTS, 0, NULL);
}

static void stop_proxy(struct holding_proxy *p)
{
	struct host *host = &p->lan.host;

	if (!lanes_idle(host->lanes) || !waiting_idle(host->waiting)) {
		holding_fail(p->world, "something never ended", "proxy %d", p->lan.index);
		return;
	}
	lanes_destroy(host->lanes);
	waiting_destroy(host->waiting);
	buf_free(&host->spare);
	pool_free(&p->lan.pool);
}

static void kill_later(struct holding_proxy *p)
{
	p->kill_at = p->lan.calls + 1 + lan_random(&p->world->lan, KILL_WITHIN);
}

/* Its tasks fail. The calls that it has sent may still arrive. */
static void kill_proxy(struct holding_proxy *p)
{
	struct holding *w = p->world;
	int index = p->lan.index;

	lan_say(&w->lan, "P%d is killed\n", index);
	w->kills++;
	p->kill_at = 0;
	p->lan.dead = true;
	waiting_end(p->lan.host.waiting);
	lan_kill(&p->lan);
	stop_proxy(p);
	if (w->violation)
		return;
	start_proxy(w, index);
	if (holding_chance(w, 50))
		kill_later(p);
}

static void restart(struct holding *w, int server)
{
	lan_say(&w->lan, "S%d restarts\n", server);
	lan_restart(&w->lan, server);
	memcached_restart(&w->lan.servers[server]);
	for (int list = 0; list < HOLDING_LISTS; list++) {
		if (place(slice_of(holding_key(list), 2)) == server)
			holding_lost(w, list);
	}
}

/* --- time --- */

static const uint64_t FOREVER = UINT64_MAX;

static void run_until(struct holding *w, uint64_t time)
{
	uint64_t next;

	for (int events = 0;
		(next = lan_next(&w->lan)) != FOREVER && next / 1000 <= time && !w->violation;
		events++) {
		lan_step(&w->lan);
		for (int i = 0; i < HOLDING_PROXIES && !w->violation; i++) {
			struct holding_proxy *p = &w->proxies[i];
			if (p->kill_at && p->lan.calls >= p->kill_at && !w->ending)
				kill_proxy(p);
		}
		holding_check_waiters(w);
		if (events > EVENTS_MAX)
			holding_fail(w, "it does not come to an end", "after %d events", events);
	}
	if (time != FOREVER && holding_now(w) < time)
		w->lan.now = time * 1000;
	for (int i = 0; i < HOLDING_PROXIES; i++)
		lan_set_clock(&w->proxies[i].lan);
}

void holding_settle(struct holding *w)
{
	run_until(w, FOREVER);
}

static void trouble(struct holding *w)
{
	if (w->trouble && holding_chance(w, 2))
		lan_break(&w->proxies[lan_random(&w->lan, HOLDING_PROXIES)].lan,
			(int)lan_random(&w->lan, HOLDING_SERVERS));
	if (w->restarts && holding_chance(w, 1))
		restart(w, (int)lan_random(&w->lan, HOLDING_SERVERS));
}

/* Most are sent soon; during a longer pause, held jobs become due. */
static uint64_t pause_before_next(struct holding *w)
{
	return holding_chance(w, 5) ? lan_random(&w->lan, 8000) : lan_random(&w->lan, 40);
}

/* --- a history --- */

static void end(struct holding *w)
{
	enum { LATER = (HOLDING_DEAD_SECONDS + 5) * 1000 };

	run_until(w, holding_now(w) + HOLDING_BESIDE * 2);
	w->ending = true;
	for (int i = 0; i < HOLDING_PROXIES && !w->violation; i++)
		waiting_end(w->proxies[i].lan.host.waiting);
	holding_settle(w);
	run_until(w, holding_now(w) + LATER);
	if (!w->violation)
		holding_drain(w);
	if (!w->violation && !TAILQ_EMPTY(&w->ops))
		holding_fail(w, "a command was never answered", "%.*s",
			(int)buf_size(&TAILQ_FIRST(&w->ops)->line) - 2,
			TAILQ_FIRST(&w->ops)->line.data);
	if (!w->violation)
		holding_check_end(w);
}

static void tear_down(struct holding *w)
{
	struct holding_op *op;

	for (int i = 0; i < HOLDING_PROXIES && !w->violation; i++)
		stop_proxy(&w->proxies[i]);
	while ((op = TAILQ_FIRST(&w->ops)))
		holding_free_op(op);
	lan_fini(&w->lan);
}

static void run_world(struct holding *w, uint64_t seed, enum holding_mutation m, bool verbose)
{
	static const struct collection_rule rules[] = {
		{ .prefix = { "j1", 2 },
			.type = COLLECTION_LIST,
			.compact_waste = 0.5,
			.dead = { "d0", 2 },
			.dead_after = HOLDING_AFTER },
		{ .prefix = { "j", 1 }, .type = COLLECTION_LIST, .compact_waste = 0.5 },
	};

	memset(w, 0, sizeof(*w));
	wording_begin(seed % 4 != 3, "k100", "st", "e1", "jd");
	lan_init(&w->lan, &hooks, w, HOLDING_SERVERS, wording_is_plain() ? ITEM_MAX : WIDE_ITEM_MAX,
		seed);
	w->lan.verbose = verbose;
	w->rules = (struct rules){ .collections = rules, .collection_count = 2 };
	w->options = world_sizes(seed);
	w->mutation = m;
	w->trouble = seed % 3 == 0;
	w->restarts = seed % 9 == 6;
	w->scarce = seed % 2;
	TAILQ_INIT(&w->ops);
	for (int i = 0; i < HOLDING_SERVERS; i++)
		w->lan.servers[i].ahead = (uint64_t)(1 + i) * AHEAD;
	for (int i = 0; i < HOLDING_LISTS; i++)
		holding_lost(w, i);
	for (int i = 0; i < HOLDING_CLIENTS; i++)
		w->clients[i].job = -1;
	for (int i = 0; i < HOLDING_PROXIES; i++)
		start_proxy(w, i);
	for (int i = 0; i < HOLDING_PROXIES && w->trouble; i++)
		kill_later(&w->proxies[i]);
	for (int i = 0; i < ACTIONS && !w->violation; i++) {
		run_until(w, holding_now(w) + pause_before_next(w));
		if (!w->violation) {
			holding_act(w);
			trouble(w);
		}
	}
	if (!w->violation)
		end(w);
	tear_down(w);
}

/* --- many of them --- */

static const char *const mutations[HOLDING_MUTATIONS] = {
	"none",
#define MUTATION(name, what) what,
#include "holdings.def"
#undef MUTATION
};

static struct verdict run(uint64_t seed, int mutation, bool verbose)
{
	static struct holding world;
	struct holding *w = &world;

	run_world(w, seed, (enum holding_mutation)mutation, verbose);
	return (struct verdict){ w->violation, w->detail,
		{ w->commands, w->failures, w->kills, w->held, w->returned, w->dead } };
}

static const char *mutation_name(int mutation)
{
	return mutations[mutation];
}

const struct histories holding_histories = { run,
	{ "commands", "failed", "proxies killed", "jobs held", "given back", "dead" },
	mutation_name, HOLDING_MUTATIONS };
