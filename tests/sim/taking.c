#include "taking.h"

#include <stdio.h>

#include "protocol/commands.h"

enum {
	ACTIONS = 200,
	ITEM_MAX = 1500,
	LAST_WAIT = 1500,    /* milliseconds that clients wait after the last push */
	STALL_MAX = 4000000, /* microseconds */
	TIMEOUT = 300000     /* microseconds */
};

/* --- keys --- */

static const char keys[TAKING_LISTS][3] = { "l0", "l1", "l2", "d0", "m0", "m1", "m2", "m3", "m4",
	"m5", "m6", "m7", "m8" };

const char *taking_list_key(int list)
{
	return keys[list];
}

int taking_list(struct slice key)
{
	return stage_find_key(keys, TAKING_LISTS, key);
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
	op->is_refused = op->world->has_plain && stage_chance(&op->world->stage, 10);
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
	stage_settle(&w->stage);
}

static void check_plain(struct taking *w)
{
	const struct memcached_item *item =
		w->has_plain ? lan_find(&w->stage.lan, taking_plain) : NULL;

	if (item && !slice_equal(buf_slice(&item->value), plain_value))
		stage_fail(&w->stage, "a plain item was changed", "%.*s",
			(int)buf_size(&item->value), item->value.data);
}

static int place(struct slice key)
{
	return stage_place(key, 0, TAKING_SERVERS);
}

/* --- the network --- */

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
	.arrival = stage_arrival,
	.place = place,
	.sent = taking_mutate_sent,
	.execute = taking_mutate_execute,
	.executed = executed,
};

/* --- proxies --- */

static struct taking *world_of(const struct taking_proxy *p)
{
	return (struct taking *)p->stage.world;
}

static bool has_gone(const void *owner, bool ask)
{
	const struct taking_op *op = owner;

	if (op->world->mutation == TAKING_GONE_WAITER)
		return false;
	return op->way == TAKING_CLOSES || op->way == TAKING_ENDS ||
		(ask && op->way == TAKING_VANISHES);
}

static void taking_look(struct waiter *waiter, const struct result *r)
{
	struct taking_proxy *p =
		(struct taking_proxy *)((char *)waiter - offsetof(struct taking_proxy, looks));

	(void)r;
	p->asked_to_look = false;
	waiting_look(p->stage.lan.host.waiting);
}

/* The other workers of its process look soon. */
static void tell_others(struct env *env)
{
	struct taking_proxy *p = (struct taking_proxy *)env;

	for (int i = 0; i < TAKING_WORKERS; i++) {
		struct taking_proxy *other = &world_of(p)->proxies[i];
		if (other == p || other->asked_to_look)
			continue;
		other->asked_to_look = true;
		other->looks.done = taking_look;
		other->stage.lan.host.env.later(&other->stage.lan.host.env, &other->looks, 0);
	}
}

static void pushed(struct env *env, struct slice key)
{
	struct taking_proxy *p = (struct taking_proxy *)env;

	waiting_pushed(p->stage.lan.host.waiting, key);
	if (p->stage.lan.index < TAKING_WORKERS && push_board_note(&world_of(p)->board, key))
		tell_others(env);
}

static void call_late(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct taking_proxy *p = (struct taking_proxy *)env;
	enum { LONGER = 40 };

	p->later(env, waiter,
		world_of(p)->mutation == TAKING_LONG_PAUSES && ms > 1 ? ms * LONGER : ms);
}

static void taking_start(struct stage_proxy *started)
{
	struct taking_proxy *p = (struct taking_proxy *)started;
	struct taking *w = world_of(p);
	struct host *host = &p->stage.lan.host;
	bool worker = p->stage.lan.index < TAKING_WORKERS;

	p->asked_to_look = false;
	p->later = host->env.later;
	host->env.later = call_late;
	host->env.pushed = pushed;
	host->ended = has_gone;
	host->waiting = waiting_create(&host->env, worker ? &w->board : &w->own_board,
		w->waiting_max + (w->mutation == TAKING_ONE_MORE ? 1 : 0), 0,
		worker ? tell_others : NULL);
}

static void taking_check(struct stage *w)
{
	taking_check_waiters((struct taking *)w);
}

static const struct stage_hooks stage_hooks = {
	.start = taking_start,
	.answered = taking_answered,
	.check = taking_check,
};

bool taking_is_same_process(const struct stage_proxy *a, const struct stage_proxy *b)
{
	return a == b || (a->lan.index < TAKING_WORKERS && b->lan.index < TAKING_WORKERS);
}

/* --- a history --- */

static void trouble(struct taking *w)
{
	if (w->stalls && stage_chance(&w->stage, 4)) {
		struct taking_proxy *p = &w->proxies[stage_random(&w->stage, STAGE_PROXIES)];
		lan_stall(&p->stage.lan, (int)stage_random(&w->stage, TAKING_SERVERS),
			stage_random(&w->stage, STALL_MAX), TIMEOUT);
		p->works = stage_now(&w->stage) + TIMEOUT / 1000;
	}
	if (w->breaks && stage_chance(&w->stage, 2))
		stage_break(&w->stage);
}

/* Most are sent soon. During a pause, waiting clients poll less and less often. */
static uint64_t pause_before_next(struct taking *w)
{
	return stage_chance(&w->stage, 4) ? stage_random(&w->stage, 1500)
					  : stage_random(&w->stage, 25);
}

static void run_commands(struct taking *w)
{
	for (int i = 0; i < ACTIONS && !w->stage.violation; i++) {
		stage_run_until(&w->stage, stage_now(&w->stage) + pause_before_next(w));
		if (w->stage.violation)
			return;
		taking_act(w);
		trouble(w);
	}
	if (w->kind == TAKING_WAITERS)
		stage_run_until(&w->stage, stage_now(&w->stage) + LAST_WAIT);
}

static void end(struct taking *w)
{
	stage_end(&w->stage);
	if (w->stage.violation)
		return;
	check_plain(w);
	if (w->stage.violation)
		return;
	if (w->kind >= TAKING_SMOVES)
		taking_check_sets(w);
	else
		taking_check_lists(w);
}

/* Members that are moved or stored get dates as those that are added. */
static void add_rules(struct taking *w, uint64_t seed)
{
	static const struct slice prefixes[] = { { "s", 1 }, { "t", 1 } };

	bool expired = w->mutation == TAKING_SEES_EXPIRED;

	if (seed / 3 % 3 != 1 && w->mutation != TAKING_SMOVE_DATE && !expired)
		return;
	w->life = w->kind == TAKING_SMOVES && (seed % 2 || expired) ? TAKING_SHORT : TAKING_LIFE;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		w->own_rules[i] = rules_default_collection;
		w->own_rules[i].prefix = prefixes[i];
		w->own_rules[i].member_ttl = (int64_t)w->life;
	}
	w->stage.rules = (struct rules){ .collections = w->own_rules, .collection_count = 2 };
}

static void run_world(struct taking *w, uint64_t seed, enum taking_mutation mutation, bool verbose)
{
	memset(w, 0, sizeof(*w));
	stage_begin(
		&w->stage, &stage_hooks, &hooks, TAKING_SERVERS, ITEM_MAX, "ldm", seed, verbose);
	w->board.seed = w->own_board.seed = seed;
	w->kind = seed % TAKING_KINDS;
	w->stage.trouble = seed / TAKING_KINDS % 2;
	w->breaks = w->stage.trouble && seed / TAKING_KINDS % 4 == 3;
	w->stalls = w->stage.trouble && seed / TAKING_KINDS % 4 == 1;
	w->waiting_max = w->kind == TAKING_WAITERS && seed / TAKING_KINDS % 5 < 2
		? seed / TAKING_KINDS % 6
		: TAKING_CLIENTS * TAKING_SHARES;
	w->has_plain = seed / TAKING_KINDS % 3 == 1;
	w->mutation = mutation;
	w->stage.lan.gentle = mutation == TAKING_LATE_CALL;
	add_rules(w, seed);
	for (int i = 0; i < STAGE_PROXIES; i++)
		w->stage.proxies[i] = &w->proxies[i].stage;
	stage_start(&w->stage);
	for (int i = 0; i < TAKING_CLIENTS; i++)
		w->clients[i].proxy =
			w->kind == TAKING_WAITERS && seed % 4 < 2 && i % 4 ? 0 : i % STAGE_PROXIES;
	taking_lists_init(w);
	taking_sets_init(w);
	store_plain(w);
	stage_kill_later(&w->stage);
	run_commands(w);
	if (!w->stage.violation)
		end(w);
	stage_tear_down(&w->stage);
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
	return (struct verdict){ w->stage.violation, w->stage.detail,
		{ w->stage.commands, w->stage.failures, w->busy, w->stage.kills, w->taken,
			w->left } };
}

static const char *mutation_name(int mutation)
{
	return mutations[mutation];
}

const struct histories taking_histories = { run,
	{ "commands", "failed", "were busy", "proxies killed", "elements taken", "copies left" },
	mutation_name, TAKING_MUTATIONS };
