#include "taking.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "collection/text/part_key.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "wording.h"
#include "world.h"

enum {
	ACTIONS = 200,
	EVENTS_MAX = 400000,
	ITEM_MAX = 1500,
	WIDE_ITEM_MAX = 60000,
	KILL_WITHIN = 150,   /* calls of a proxy */
	LAST_WAIT = 1500,    /* milliseconds that clients wait after the last push */
	STALL_MAX = 4000000, /* microseconds */
	TIMEOUT = 300000     /* microseconds */
};

void taking_fail(struct taking *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

uint64_t taking_random(struct taking *w, uint64_t below)
{
	return lan_random(&w->lan, below);
}

bool taking_chance(struct taking *w, unsigned percent)
{
	return taking_random(w, 100) < percent;
}

uint64_t taking_now(const struct taking *w)
{
	return w->lan.now / 1000;
}

/* --- keys --- */

const char *taking_list_key(int list)
{
	static const char keys[TAKING_LISTS][3] = { "l0", "l1", "l2", "d0", "m0", "m1", "m2", "m3",
		"m4", "m5", "m6", "m7", "m8" };

	return keys[list];
}

int taking_list(struct slice key)
{
	for (int i = 0; i < TAKING_LISTS && key.n == 2; i++) {
		if (memcmp(taking_list_key(i), key.p, 2) == 0)
			return i;
	}
	return -1;
}

int taking_set_number(struct slice key)
{
	if (key.n != 2 || (key.p[0] != 's' && key.p[0] != 't'))
		return -1;
	return key.p[0] == 't' ? TAKING_TARGET : key.p[1] - '0';
}

const struct slice taking_plain = { "x0", 2 };

static const struct slice plain_value = { "nolist", 6 };

bool taking_refuses(struct taking_op *op)
{
	op->is_refused = op->world->has_plain && taking_chance(op->world, 10);
	return op->is_refused;
}

static void store_plain(struct taking *w)
{
	char line[32];

	if (!w->has_plain)
		return;
	snprintf(line, sizeof(line), "set %s 0 0 %zu\r\n%s", taking_plain.p, plain_value.n,
		plain_value.p);
	taking_ask(w, 0, COMMAND_SET, line);
	taking_settle(w);
}

static void check_plain(struct taking *w)
{
	const struct memcached_item *item = w->has_plain ? lan_find(&w->lan, taking_plain) : NULL;

	if (item && !slice_equal(buf_slice(&item->value), plain_value))
		taking_fail(w, "a plain item was changed", "%.*s", (int)buf_size(&item->value),
			item->value.data);
}

static int place(struct slice key)
{
	unsigned behind, sum = 0;
	struct slice base = part_key_place(key, &behind);

	for (size_t i = 0; i < base.n; i++)
		sum += (unsigned char)base.p[i];
	return (int)((sum + behind) % TAKING_SERVERS);
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
	struct taking *w = lan->arg;
	int list = taking_list(m->call.key);

	w->tick++;
	taking_mutate_executed(w, m);
	if (list >= 0)
		taking_list_executed(w, m, list);
}

static const struct lan_hooks hooks = {
	.arrival = arrival,
	.place = place,
	.sent = taking_mutate_sent,
	.execute = taking_mutate_execute,
	.executed = executed,
};

/* --- proxies --- */

static struct buf *task_reply_buf(struct task *task)
{
	return &((struct taking_op *)task->owner)->reply;
}

/* A client sends its next command when it has the reply to the last one, or another client does in its place. */
static void task_begin(struct task *task)
{
	struct taking_op *op = task->owner;

	op->task = task;
	task->account = &op->account;
}

static bool has_gone(const void *owner, bool ask)
{
	const struct taking_op *op = owner;

	if (op->world->mutation == TAKING_GONE_WAITER)
		return false;
	return op->way == TAKING_CLOSES || op->way == TAKING_ENDS ||
		(ask && op->way == TAKING_VANISHES);
}

static void task_ended(struct task *task)
{
	struct taking_op *op = task->owner;

	task_free(task);
	taking_answered(op);
}

static void look(struct waiter *waiter, const struct result *r)
{
	struct taking_proxy *p =
		(struct taking_proxy *)((char *)waiter - offsetof(struct taking_proxy, looks));

	(void)r;
	p->asked_to_look = false;
	waiting_look(p->lan.host.waiting);
}

/* The other workers of its process look soon. */
static void tell_others(struct env *env)
{
	struct taking_proxy *p = (struct taking_proxy *)env;

	for (int i = 0; i < TAKING_WORKERS; i++) {
		struct taking_proxy *other = &p->world->proxies[i];
		if (other == p || other->asked_to_look)
			continue;
		other->asked_to_look = true;
		other->looks.done = look;
		other->lan.host.env.later(&other->lan.host.env, &other->looks, 0);
	}
}

static void pushed(struct env *env, struct slice key)
{
	struct taking_proxy *p = (struct taking_proxy *)env;

	waiting_pushed(p->lan.host.waiting, key);
	if (p->lan.index < TAKING_WORKERS && push_board_note(&p->world->board, key))
		tell_others(env);
}

static void call_late(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct taking_proxy *p = (struct taking_proxy *)env;
	enum { LONGER = 40 };

	p->later(
		env, waiter, p->world->mutation == TAKING_LONG_PAUSES && ms > 1 ? ms * LONGER : ms);
}

static void start_proxy(struct taking *w, int index)
{
	struct taking_proxy *p = &w->proxies[index];
	struct host *host = &p->lan.host;

	lan_init_proxy(&w->lan, &p->lan, index);
	p->world = w;
	p->asked_to_look = false;
	p->later = host->env.later;
	host->env.later = call_late;
	host->env.pushed = pushed;
	host->env.rules = &w->rules;
	host->env.options = w->options;
	host->reply = task_reply_buf;
	host->begin = task_begin;
	host->ended = has_gone;
	host->done = task_ended;
	host->lanes = lanes_create(&host->env, &machines);
	host->waiting =
		waiting_create(&host->env, index < TAKING_WORKERS ? &w->board : &w->own_board,
			w->waiting_max + (w->mutation == TAKING_ONE_MORE ? 1 : 0), 0,
			index < TAKING_WORKERS ? tell_others : NULL);
}

static void stop_proxy(struct taking_proxy *p)
{
	struct host *host = &p->lan.host;

	if (!lanes_idle(host->lanes) || !waiting_idle(host->waiting)) {
		taking_fail(p->world, "something never ended", "proxy %d", p->lan.index);
		return;
	}
	lanes_destroy(host->lanes);
	waiting_destroy(host->waiting);
	buf_free(&host->spare);
	pool_free(&p->lan.pool);
}

bool taking_is_same_process(const struct taking_proxy *a, const struct taking_proxy *b)
{
	return a == b || (a->lan.index < TAKING_WORKERS && b->lan.index < TAKING_WORKERS);
}

static void kill_later(struct taking_proxy *p)
{
	p->kill_at = p->lan.calls + 1 + taking_random(p->world, KILL_WITHIN);
}

/* Its tasks fail. The calls that it has sent may still arrive. */
static void kill_proxy(struct taking_proxy *p)
{
	struct taking *w = p->world;
	int index = p->lan.index;

	lan_say(&w->lan, "P%d is killed\n", index);
	w->kills++;
	w->last_arrival = lan_last_arrival(&p->lan) / 1000;
	p->kill_at = 0;
	p->lan.dead = true;
	waiting_end(p->lan.host.waiting);
	lan_kill(&p->lan);
	stop_proxy(p);
	if (w->violation)
		return;
	start_proxy(w, index);
	if (taking_chance(w, 50))
		kill_later(p);
}

/* --- time --- */

static const uint64_t FOREVER = UINT64_MAX;

static void step(struct taking *w)
{
	lan_step(&w->lan);
	for (int i = 0; i < TAKING_PROXIES && !w->violation; i++) {
		struct taking_proxy *p = &w->proxies[i];
		if (p->kill_at && p->lan.calls >= p->kill_at && !w->ending)
			kill_proxy(p);
	}
	taking_check_waiters(w);
}

void taking_run_until(struct taking *w, uint64_t time)
{
	uint64_t next;

	for (int events = 0;
		(next = lan_next(&w->lan)) != FOREVER && next / 1000 <= time && !w->violation;
		events++) {
		step(w);
		if (events > EVENTS_MAX)
			taking_fail(w, "it does not come to an end", "after %d events", events);
	}
	if (time != FOREVER && taking_now(w) < time)
		w->lan.now = time * 1000;
	for (int i = 0; i < TAKING_PROXIES; i++)
		lan_set_clock(&w->proxies[i].lan);
}

void taking_settle(struct taking *w)
{
	taking_run_until(w, FOREVER);
}

static void trouble(struct taking *w)
{
	if (w->stalls && taking_chance(w, 4)) {
		struct taking_proxy *p = &w->proxies[taking_random(w, TAKING_PROXIES)];
		lan_stall(&p->lan, (int)taking_random(w, TAKING_SERVERS),
			taking_random(w, STALL_MAX), TIMEOUT);
		p->works = taking_now(w) + TIMEOUT / 1000;
	}
	if (w->breaks && taking_chance(w, 2))
		lan_break(&w->proxies[taking_random(w, TAKING_PROXIES)].lan,
			(int)taking_random(w, TAKING_SERVERS));
}

/* Most are sent soon. During a pause, waiting clients poll less and less often. */
static uint64_t pause_before_next(struct taking *w)
{
	return taking_chance(w, 4) ? taking_random(w, 1500) : taking_random(w, 25);
}

static void run_commands(struct taking *w)
{
	for (int i = 0; i < ACTIONS && !w->violation; i++) {
		taking_run_until(w, taking_now(w) + pause_before_next(w));
		if (w->violation)
			return;
		taking_act(w);
		trouble(w);
	}
	if (w->kind == TAKING_WAITERS)
		taking_run_until(w, taking_now(w) + LAST_WAIT);
}

/* --- a history --- */

static void end(struct taking *w)
{
	w->ending = true;
	for (int i = 0; i < TAKING_PROXIES && !w->violation; i++)
		waiting_end(w->proxies[i].lan.host.waiting);
	taking_settle(w);
	if (!w->violation && !TAILQ_EMPTY(&w->ops))
		taking_fail(w, "a command was never answered", "%.*s",
			(int)buf_size(&TAILQ_FIRST(&w->ops)->line) - 2,
			TAILQ_FIRST(&w->ops)->line.data);
	if (w->violation)
		return;
	check_plain(w);
	if (w->violation)
		return;
	if (w->kind >= TAKING_SMOVES)
		taking_check_sets(w);
	else
		taking_check_lists(w);
}

static void tear_down(struct taking *w)
{
	struct taking_op *op;

	for (int i = 0; i < TAKING_PROXIES && !w->violation; i++)
		stop_proxy(&w->proxies[i]);
	while ((op = TAILQ_FIRST(&w->ops)))
		taking_free_op(op);
	lan_fini(&w->lan);
}

/* Members that are moved or stored get dates as those that are added. */
static void add_rules(struct taking *w, uint64_t seed)
{
	static const struct slice prefixes[] = { { "s", 1 }, { "t", 1 } };

	w->expires = seed / 3 % 3 == 1 || w->mutation == TAKING_SMOVE_DATE;
	if (!w->expires)
		return;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		w->own_rules[i] = rules_default_collection;
		w->own_rules[i].prefix = prefixes[i];
		w->own_rules[i].member_ttl = TAKING_LIFE;
	}
	w->rules = (struct rules){ .collections = w->own_rules, .collection_count = 2 };
}

static void run_world(struct taking *w, uint64_t seed, enum taking_mutation mutation, bool verbose)
{
	memset(w, 0, sizeof(*w));
	wording_begin(seed % 4 != 3, "k100", "st", "e1", "ldm");
	lan_init(&w->lan, &hooks, w, TAKING_SERVERS, wording_is_plain() ? ITEM_MAX : WIDE_ITEM_MAX,
		seed);
	w->lan.verbose = verbose;
	w->board.seed = w->own_board.seed = seed;
	w->options = world_sizes(seed);
	w->kind = seed % TAKING_KINDS;
	w->trouble = seed / TAKING_KINDS % 2;
	w->breaks = w->trouble && seed / TAKING_KINDS % 4 == 3;
	w->stalls = w->trouble && seed / TAKING_KINDS % 4 == 1;
	w->waiting_max = w->kind == TAKING_WAITERS && seed / TAKING_KINDS % 5 < 2
		? seed / TAKING_KINDS % 6
		: TAKING_CLIENTS * TAKING_SHARES;
	w->has_plain = seed / TAKING_KINDS % 3 == 1;
	w->mutation = mutation;
	w->lan.gentle = mutation == TAKING_LATE_CALL;
	add_rules(w, seed);
	TAILQ_INIT(&w->ops);
	for (int i = 0; i < TAKING_PROXIES; i++)
		start_proxy(w, i);
	for (int i = 0; i < TAKING_CLIENTS; i++)
		w->clients[i].proxy =
			w->kind == TAKING_WAITERS && seed % 4 < 2 && i % 4 ? 0 : i % TAKING_PROXIES;
	taking_lists_init(w);
	taking_sets_init(w);
	store_plain(w);
	for (int i = 0; i < TAKING_PROXIES && w->trouble; i++)
		kill_later(&w->proxies[i]);
	run_commands(w);
	if (!w->violation)
		end(w);
	tear_down(w);
}

/* --- many of them --- */

static const char *const mutations[TAKING_MUTATIONS] = {
	"none",
#define MUTATION(name, what) what,
#include "takings.def"
#undef MUTATION
};

static struct verdict run(uint64_t seed, int mutation, bool verbose)
{
	static struct taking world;
	struct taking *w = &world;

	run_world(w, seed, (enum taking_mutation)mutation, verbose);
	return (struct verdict){ w->violation, w->detail,
		{ w->commands, w->failures, w->busy, w->kills, w->taken, w->left } };
}

static const char *mutation_name(int mutation)
{
	return mutations[mutation];
}

const struct histories taking_histories = { run,
	{ "commands", "failed", "were busy", "proxies killed", "elements taken", "copies left" },
	mutation_name, TAKING_MUTATIONS };
