#include "holding.h"

#include "collection/move/moves.h"

enum {
	ACTIONS = 250,
	ITEM_MAX = 4000,
	APART = 5000,       /* milliseconds between the clocks of two proxies */
	MOVING_APART = 500, /* the same if lists move: less than the margin */
	AHEAD = 3000        /* the same of two servers */
};

/* --- keys --- */

static const char keys[HOLDING_LISTS][3] = { "j0", "j1", "d0" };

const char *holding_key(int list)
{
	return keys[list];
}

int holding_list(struct slice key)
{
	return stage_find_key(keys, HOLDING_LISTS, key);
}

/* j1 and d0 are on different servers, and all lists change theirs. */
static int place(struct slice key)
{
	return stage_place(key, 0, HOLDING_FORMER);
}

static int place_on(const struct holding *w, struct slice key, bool former)
{
	return former || !w->at ? place(key) : stage_place(key, w->turn, HOLDING_SERVERS);
}

const struct memcached_item *holding_item(struct holding *w, struct slice key, bool former)
{
	return memcached_find(
		&w->stage.lan.servers[place_on(w, key, former)], key, stage_now(&w->stage));
}

static int64_t clock_of(const struct holding *w, int list, bool former)
{
	int server = place_on(w, slice_of(holding_key(list), 2), former);

	return (int64_t)((stage_now(&w->stage) + w->stage.lan.servers[server].ahead) / 1000);
}

static bool has_moved(const struct holding *w)
{
	return stage_now(&w->stage) >= (uint64_t)w->at * 1000;
}

int64_t holding_least(const struct holding *w, int list)
{
	int64_t former = clock_of(w, list, true), new = clock_of(w, list, false);

	return former < new && !has_moved(w) ? former : new;
}

int64_t holding_most(const struct holding *w, int list)
{
	int64_t former = clock_of(w, list, true), new = clock_of(w, list, false);

	return former > new && !has_moved(w) ? former : new;
}

/* --- the network --- */

static void executed(struct lan *lan, struct message *m)
{
	struct holding *w = lan->arg;
	int list = holding_list(m->call.key);

	if (list >= 0)
		holding_executed(w, m, list);
	holding_mutate_executed(w, m);
}

static const struct lan_hooks hooks = {
	.arrival = stage_arrival,
	.place = place,
	.sent = holding_mutate_sent,
	.executed = executed,
};

/* --- moves --- */

static int holding_clock(const struct lan_proxy *p, struct slice key)
{
	const struct holding *w = p->lan->arg;

	return place_on(w, key, stage_now(&w->stage) < w->reloads[p->index]);
}

/* When a proxy ends, nothing waits for its calls any more. */
static void holding_set_clock(struct lan_proxy *p)
{
	enum { LATER = 1000000 };
	struct env *envs[] = { &p->host.env, &((struct holding_proxy *)p)->inner.host.env };

	for (int i = 0; i < 2; i++) {
		lan_set_env_clock(p, envs[i]);
		envs[i]->unix_time += p->dead ? LATER : 0;
	}
}

static const struct lan_hooks moving_hooks = {
	.arrival = stage_arrival,
	.clock = holding_clock,
	.set_clock = holding_set_clock,
	.sent = holding_mutate_sent,
	.executed = executed,
};

static int holding_place(void *arg, struct slice key, int *former)
{
	*former = place(key);
	return place_on(arg, key, false);
}

static void holding_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	moves_call(((struct holding_proxy *)env)->moves, call, waiter);
}

static void start_moves(struct holding_proxy *p)
{
	struct holding *w = (struct holding *)p->stage.world;
	struct env *env = &p->inner.host.env;

	lan_init_host(&p->stage.lan, &p->inner);
	env->rules = &w->stage.rules;
	env->options = w->stage.options;
	p->moves = moves_create(
		&(struct moves_options){ env, holding_place, w, w->at, HOLDING_MARGIN });
	p->stage.lan.host.env.call = holding_call;
}

static void plan_move(struct holding *w, uint64_t seed)
{
	enum { SOON = 8, SPAN = 25, BEFORE = 1 };
	uint64_t now = stage_now(&w->stage);

	w->turn = (unsigned)(seed / 5 % 2);
	w->at = (int64_t)(now / 1000 + SOON + stage_random(&w->stage, SPAN));
	for (int i = 0; i < STAGE_PROXIES; i++)
		w->reloads[i] = now +
			stage_random(&w->stage,
				((uint64_t)w->at - HOLDING_MARGIN - BEFORE) * 1000 - now);
}

static bool moves_lists(const struct holding *w, uint64_t seed)
{
	return seed % 5 > 2 || w->mutation == HOLDING_MOVE_LOSES ||
		w->mutation == HOLDING_MOVE_TWICE || w->mutation == HOLDING_MOVE_COUNTS;
}

/* --- proxies --- */

static void holding_pushed(struct env *env, struct slice key)
{
	waiting_pushed(((struct stage_proxy *)env)->lan.host.waiting, key);
}

static void holding_due(struct env *env, struct slice key, int64_t seconds)
{
	struct stage_proxy *p = (struct stage_proxy *)env;

	if (((struct holding *)p->world)->mutation != HOLDING_NOT_DUE)
		waiting_due(p->lan.host.waiting, key, (uint64_t)seconds * 1000);
}

static void holding_start(struct stage_proxy *p)
{
	struct holding *w = (struct holding *)p->world;
	struct env *env = &p->lan.host.env;

	p->lan.skew = (p->lan.index - 1) * (w->at ? MOVING_APART : APART);
	if (w->at)
		start_moves((struct holding_proxy *)p);
	p->lan.lacks_clock = w->mutation == HOLDING_OWN_CLOCK;
	lan_set_clock(&p->lan);
	env->pushed = holding_pushed;
	env->due = holding_due;
	p->lan.host.waiting =
		waiting_create(env, &w->boards[p->lan.index], HOLDING_CLIENTS, 0, NULL);
}

static bool holding_stop(struct stage_proxy *stopped)
{
	struct holding_proxy *p = (struct holding_proxy *)stopped;

	if (!p->moves)
		return true;
	if (!moves_idle(p->moves))
		return false;
	((struct holding *)stopped->world)->moved += moves_statistics(p->moves)->moved;
	moves_destroy(p->moves);
	return true;
}

static void holding_check(struct stage *w)
{
	holding_check_waiters((struct holding *)w);
}

static const struct stage_hooks stage_hooks = {
	.start = holding_start,
	.stop = holding_stop,
	.answered = holding_answered,
	.check = holding_check,
};

static void restart(struct holding *w, int server)
{
	lan_say(&w->stage.lan, "S%d restarts\n", server);
	lan_restart(&w->stage.lan, server);
	memcached_restart(&w->stage.lan.servers[server]);
	for (int list = 0; list < HOLDING_LISTS; list++) {
		if (place(slice_of(holding_key(list), 2)) == server)
			holding_lost(w, list);
	}
}

/* --- a history --- */

static void trouble(struct holding *w)
{
	if (w->stage.trouble && stage_chance(&w->stage, 2))
		stage_break(&w->stage);
	if (w->restarts && stage_chance(&w->stage, 1))
		restart(w, (int)stage_random(&w->stage, HOLDING_FORMER));
}

/* Most are sent soon; during a longer pause, held jobs become due. */
static uint64_t pause_before_next(struct holding *w)
{
	return stage_chance(&w->stage, 5) ? stage_random(&w->stage, 8000)
					  : stage_random(&w->stage, 40);
}

static void end(struct holding *w)
{
	enum { LATER = (HOLDING_DEAD_SECONDS + 5) * 1000 };

	stage_run_until(&w->stage, stage_now(&w->stage) + HOLDING_BESIDE * 2);
	stage_end(&w->stage);
	stage_run_until(&w->stage, stage_now(&w->stage) + LATER);
	if (!w->stage.violation)
		holding_drain(w);
	if (!w->stage.violation)
		holding_check_end(w);
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
	w->mutation = m;
	stage_begin(&w->stage, &stage_hooks, moves_lists(w, seed) ? &moving_hooks : &hooks,
		HOLDING_SERVERS, ITEM_MAX, "jd", seed, verbose);
	if (moves_lists(w, seed))
		plan_move(w, seed);
	w->stage.rules = (struct rules){ .collections = rules, .collection_count = 2 };
	w->stage.trouble = seed % 3 == 0;
	w->restarts = seed % 9 == 6 && !w->at;
	w->scarce = seed % 2;
	for (int i = 0; i < HOLDING_SERVERS; i++)
		w->stage.lan.servers[i].ahead = (uint64_t)(1 + i) * AHEAD;
	for (int i = 0; i < HOLDING_LISTS; i++)
		holding_lost(w, i);
	for (int i = 0; i < HOLDING_CLIENTS; i++)
		w->clients[i].job = -1;
	for (int i = 0; i < STAGE_PROXIES; i++)
		w->stage.proxies[i] = &w->proxies[i].stage;
	stage_start(&w->stage);
	stage_kill_later(&w->stage);
	for (int i = 0; i < ACTIONS && !w->stage.violation; i++) {
		stage_run_until(&w->stage, stage_now(&w->stage) + pause_before_next(w));
		if (!w->stage.violation) {
			holding_act(w);
			trouble(w);
		}
	}
	if (!w->stage.violation)
		end(w);
	stage_tear_down(&w->stage);
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
	return (struct verdict){ w->stage.violation, w->stage.detail,
		{ w->stage.commands, w->stage.failures, w->stage.kills, w->held, w->returned,
			w->dead, w->moved } };
}

static const char *mutation_name(int mutation)
{
	return mutations[mutation];
}

const struct histories holding_histories = { run,
	{ "commands", "failed", "proxies killed", "jobs held", "given back", "dead",
		"lists moved" },
	mutation_name, HOLDING_MUTATIONS };
