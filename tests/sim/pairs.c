/* Histories of pairs.h: their faults, and their end. */
#include "pairs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/commands.h"
#include "util/random.h"
#include "wording.h"
#include "world.h"

enum {
	EVENTS_MAX = 400000,
	ITEM_MAX = 60000,
	COMMANDS = 60,
	SERVERS = 5,
	KILL_WITHIN = 120, /* calls of a proxy */
	QUIET = 20 * PAIRS_SETTLED,
	HOUR = 3600 * 1000,
	ROUNDS = 4
};

/* --- helpers --- */

void pairs_fail(struct pairs *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

unsigned pairs_below(struct pairs *w, unsigned n)
{
	return (unsigned)lan_random(&w->lan, n);
}

bool pairs_chance(struct pairs *w, unsigned percent)
{
	return pairs_below(w, 100) < percent;
}

int64_t pairs_now(const struct pairs *w)
{
	return (int64_t)lan_ms(&w->lan);
}

int64_t pairs_since(const struct pairs *w, int64_t time)
{
	return time - w->start;
}

struct pairs_event *pairs_at(struct pairs *w, int64_t at,
	void (*run)(struct pairs *, const struct pairs_event *), int a, int b)
{
	struct pairs_event *e;
	int i = w->event_count++;

	if (i == PAIRS_EVENTS)
		abort();
	for (; i && w->events[i - 1].at > at; i--)
		w->events[i] = w->events[i - 1];
	e = &w->events[i];
	*e = (struct pairs_event){ .at = at, .run = run, .a = a, .b = b };
	return e;
}

/* --- time --- */

static void check_losses(struct pairs *w)
{
	uint64_t losses = pairs_incomplete(w);

	if (losses > w->losses && !pairs_is_expiring(w))
		pairs_fail(w, "a set was lost", "although servers were killed in turn");
	w->losses = losses;
}

static void step(struct pairs *w)
{
	lan_step(&w->lan);
	if (w->faults == PAIRS_FAULTS_TURNS && !w->ending)
		check_losses(w);
	for (int i = 0; i < PAIRS_PROXIES && !w->violation; i++) {
		struct pairs_proxy *p = &w->proxies[i];
		if (p->kill_at && p->lan.calls >= p->kill_at && !w->ending)
			pairs_kill_proxy(w, i);
	}
}

static void run_until(struct pairs *w, int64_t time)
{
	uint64_t next;

	for (int events = 0; (next = lan_next(&w->lan)) != UINT64_MAX &&
		(int64_t)(next / 1000) <= time && !w->violation;
		events++) {
		step(w);
		if (events > EVENTS_MAX)
			pairs_fail(w, "it does not come to an end", "after %d events", events);
	}
	if (pairs_now(w) < time)
		w->lan.now = (uint64_t)time * 1000;
	for (int i = 0; i < PAIRS_PROXIES && !w->violation; i++) {
		lan_set_clock(&w->proxies[i].lan);
		pairs_retire(&w->proxies[i]);
	}
}

/* Runs all events until this time. Loads add more of them. */
static void run_events(struct pairs *w, int64_t until)
{
	while (w->event_count && w->events[0].at <= until && !w->violation) {
		struct pairs_event e = w->events[0];
		run_until(w, e.at);
		for (int i = 1; i < w->event_count; i++)
			w->events[i - 1] = w->events[i];
		w->event_count--;
		if (!w->violation)
			e.run(w, &e);
	}
	if (!w->violation)
		run_until(w, until);
}

/* --- commands --- */

static void pairs_on_command(struct pairs *w, const struct pairs_event *e)
{
	pairs_act(w, e->a, e->b);
}

static int64_t add_commands(struct pairs *w)
{
	static const unsigned pauses[] = { 10, 50, PAIRS_TIMEOUT / 3, PAIRS_TIMEOUT,
		2 * PAIRS_TIMEOUT, 3 * PAIRS_TIMEOUT };
	int64_t at = pairs_now(w);

	for (int i = 0; i < COMMANDS; i++) {
		at += pauses[pairs_below(w, 6)];
		pairs_at(w, at, pairs_on_command, (int)pairs_below(w, PAIRS_PROXIES),
			pairs_chance(w, w->mutation == PAIRS_AWAY_ONE ? 100 : 75) ? 0 : 1);
	}
	return at;
}

/* --- faults --- */

static void pairs_on_kill(struct pairs *w, const struct pairs_event *e)
{
	pairs_kill(w, e->a, e->until);
}

static void pairs_on_hang(struct pairs *w, const struct pairs_event *e)
{
	pairs_hang(w, e->a, e->until);
}

static void pairs_on_evict(struct pairs *w, const struct pairs_event *e)
{
	pairs_evict(w, e->a, (unsigned)e->b);
}

static void pairs_on_cut(struct pairs *w, const struct pairs_event *e)
{
	pairs_cut(w, e->a, e->b, e->until);
}

/* It is killed at one of its next calls. */
static void pairs_on_proxy_kill(struct pairs *w, const struct pairs_event *e)
{
	struct pairs_proxy *p = &w->proxies[e->a];

	p->kill_at = p->lan.calls + 1 + pairs_below(w, 20);
}

static void pairs_on_clock(struct pairs *w, const struct pairs_event *e)
{
	struct pairs_proxy *p = &w->proxies[e->a];

	p->offset -= e->b;
	p->lan.skew = p->offset;
}

static void pairs_on_configure(struct pairs *w, const struct pairs_event *e)
{
	if (w->proxies[e->a].config < (size_t)e->b)
		pairs_configure(&w->proxies[e->a], (size_t)e->b);
}

static void at_server(struct pairs *w, int64_t at, int64_t until,
	void (*run)(struct pairs *, const struct pairs_event *), int server)
{
	pairs_at(w, at, run, server, 0)->until = until;
}

static void cut(struct pairs *w, int proxy, int server, int64_t at, int64_t until)
{
	pairs_at(w, at, pairs_on_cut, proxy, server)->until = until;
}

static void pairs_on_read(struct pairs *w, const struct pairs_event *e)
{
	pairs_ask(w, e->a, e->b, COMMAND_SMEMBERS);
}

/* Reads often, so that some are between a write and what other proxies know of its absence. */
static void read_often(struct pairs *w, int64_t at, int64_t until)
{
	enum { TIMES = 30, PAUSE = PAIRS_TIMEOUT / 10 };

	for (int i = 0; i < TIMES && at + i * PAUSE < until; i++)
		pairs_at(w, at + i * PAUSE, pairs_on_read, (int)pairs_below(w, PAIRS_PROXIES), 0);
}

/*
 * The copy is evicted several times, while the set is being repaired and used. Returns the time of
 * the last one.
 */
static int64_t evict_again(struct pairs *w, int64_t at, int copy)
{
	enum { TIMES = 12, COMMANDS_BETWEEN = 2, PAUSE = PAIRS_TIMEOUT / 3 };

	for (int i = 0; i < TIMES; i++) {
		unsigned pause = 1 + pairs_below(w, PAUSE);
		for (int n = 0; n < COMMANDS_BETWEEN; n++)
			pairs_at(w, at + pairs_below(w, pause), pairs_on_command,
				(int)pairs_below(w, PAIRS_PROXIES), 0);
		at += pause;
		pairs_at(w, at, pairs_on_evict, 0, copy);
	}
	return at + 1;
}

/*
 * Each proxy sees one of the servers. If all of them see the same one, before the other one was
 * repaired, words that only that has are lost.
 */
static void add_sides(struct pairs *w, int64_t at, int64_t until)
{
	unsigned copies = 0;

	for (int i = 0; i < PAIRS_PROXIES; i++) {
		unsigned copy = pairs_below(w, 2);
		cut(w, i, pairs_server_of(w, 0, copy), at, until);
		copies |= 1u << copy;
	}
	if (w->mutation == PAIRS_NO_LEASE || pairs_below(w, 8) == 0)
		read_often(w, at, until);
	w->sides[w->side_count++] = (struct pairs_sides){ at, until, copies != 3 };
	for (int i = 0; i < w->side_count; i++) {
		for (int k = 0; k < w->side_count; k++) {
			const struct pairs_sides *a = &w->sides[i], *b = &w->sides[k];
			w->overlaps |= i != k && a->same && b->at <= a->until &&
				b->until + PAIRS_REPAIRED >= a->at;
		}
	}
}

/*
 * Each proxy sees one of the servers, or one copy is evicted while the other is unreachable. Returns
 * the end of it.
 */
static int64_t add_aimed_fault(struct pairs *w, int64_t at, int64_t until)
{
	int copy = (int)pairs_below(w, 2);

	if (w->faults == PAIRS_FAULTS_SIDES) {
		add_sides(w, at, until);
		return until;
	}
	pairs_at(w, at, pairs_on_evict, 0, copy);
	if (w->mutation == PAIRS_NO_F || pairs_below(w, 4) == 0) {
		until -= at;
		at = evict_again(w, at, copy);
		until += at;
	}
	if (pairs_below(w, 2)) {
		at_server(
			w, at - 1, until, pairs_on_hang, pairs_server_of(w, 0, 1 - (unsigned)copy));
		return until;
	}
	for (int i = 0; i < PAIRS_PROXIES; i++)
		cut(w, i, pairs_server_of(w, 0, 1 - (unsigned)copy), at - 1, until);
	return until;
}

static void add_fault(struct pairs *w, int server, int64_t at, int64_t until)
{
	unsigned kind = pairs_below(w, 6), cuts;

	/* Moves require that no call is later than their margin. */
	if (w->moves && (kind == 1 || kind == 2))
		kind = 0;
	switch (kind) {
	case 0:
		at_server(w, at, until, pairs_on_kill, server);
		break;
	case 1:
		at_server(w, at, until, pairs_on_hang, server);
		break;
	case 2:
		cuts = 1 + pairs_below(w, 6);
		w->unsteady = true;
		for (int i = 0; i < PAIRS_PROXIES; i++) {
			if (cuts & 1u << i)
				cut(w, i, server, at, until);
		}
		break;
	case 3:
		for (int copy = 0; copy < 2; copy++) {
			if (server == pairs_server_of(w, 0, (unsigned)copy))
				pairs_at(w, at, pairs_on_evict, 0, copy);
		}
		break;
	case 4:
		pairs_at(w, at, pairs_on_proxy_kill, (int)pairs_below(w, PAIRS_PROXIES), 0);
		break;
	default:
		pairs_at(w, at, pairs_on_clock, (int)pairs_below(w, PAIRS_PROXIES),
			w->mutation == PAIRS_CLOCK_BEHIND ? 3600000
				: w->apart                ? PAIRS_SKEW / 2
							  : 0);
	}
}

/* Returns the end of the last one. */
static int64_t add_faults(struct pairs *w, int64_t end)
{
	static const unsigned durations[] = { PAIRS_TIMEOUT * 2 / 5, PAIRS_TIMEOUT * 3 / 2,
		PAIRS_TIMEOUT * 5, PAIRS_TIMEOUT * 15 };
	unsigned count = w->faults == PAIRS_FAULTS_NONE ? 0 : 1 + pairs_below(w, 3);
	int64_t last = end;

	while (count--) {
		int64_t at = pairs_now(w) + 1 + pairs_below(w, (unsigned)(end - pairs_now(w)));
		int64_t until = at + durations[pairs_below(w, 4)];
		int server = w->faults == PAIRS_FAULTS_ANY
			? (int)pairs_below(w, (unsigned)w->server_count)
			: w->faulty;
		if (w->faults == PAIRS_FAULTS_SIDES || w->faults == PAIRS_FAULTS_EVICT)
			until = add_aimed_fault(w, at, until);
		else
			add_fault(w, server, at, until);
		if (w->mutation == PAIRS_AWAY_ONE)
			at_server(w, at + PAIRS_TIMEOUT * 3 / 2, at + PAIRS_TIMEOUT * 3 / 2 + 10,
				pairs_on_kill, (server + 2) % w->server_count);
		last = until > last ? until : last;
	}
	return last;
}

/* --- servers that are killed in turn --- */

/*
 * Each key is used while the server is down, and read within the hour after that. A copy that was
 * put back may be believed S later, so sets are not created just before.
 */
static void add_turn(struct pairs *w, int server, int64_t at)
{
	enum { AROUND = 12, WITHIN = 8 * PAIRS_TIMEOUT, BEFORE = 4 * PAIRS_SETTLED };
	int64_t until = at + PAIRS_TIMEOUT + pairs_below(w, 15 * PAIRS_TIMEOUT);

	at_server(w, at, until, pairs_on_kill, server);
	for (int key = 0; key < PAIRS_KEYS; key++)
		pairs_at(w, at + 1 + pairs_below(w, PAIRS_TIMEOUT), pairs_on_command,
			(int)pairs_below(w, PAIRS_PROXIES), key);
	for (int i = 0; i < AROUND; i++)
		pairs_at(w, at + pairs_below(w, WITHIN) - (int64_t)pairs_below(w, 2) * BEFORE,
			pairs_on_command, (int)pairs_below(w, PAIRS_PROXIES),
			pairs_chance(w, 75) ? 0 : 1);
	for (int key = 0; key < PAIRS_KEYS; key++)
		pairs_at(w, until + 2 * PAIRS_SETTLED + pairs_below(w, HOUR / 2), pairs_on_read,
			(int)pairs_below(w, PAIRS_PROXIES), key);
}

static int64_t add_turns(struct pairs *w)
{
	unsigned first = pairs_below(w, PAIRS_SERVERS);
	int64_t at = pairs_now(w) + HOUR;

	for (unsigned i = 0; i < PAIRS_SERVERS; i++, at += HOUR)
		add_turn(w, (int)((first + i) % PAIRS_SERVERS), at);
	return at;
}

/* --- rings --- */

static struct moving_ring make_ring(struct pairs *w)
{
	enum { LEAST = 3 };
	struct moving_ring ring = { .hash = random_next(&w->lan.random) };
	unsigned count = (unsigned)w->server_count;
	int first = (int)pairs_below(w, count);

	ring.count = w->faults == PAIRS_FAULTS_TURNS
		? w->server_count
		: LEAST + (int)pairs_below(w, count - LEAST + 1);
	for (int i = 0; i < ring.count; i++)
		ring.servers[i] = (first + i) % w->server_count;
	return ring;
}

static void plan_ring(struct pairs *w)
{
	w->configs[0].ring = make_ring(w);
	if (!w->moves)
		return;
	w->configs[1].former = w->configs[0].ring;
	w->configs[1].ring = w->configs[2].ring = make_ring(w);
	w->configs[1].moves = true;
}

/* Each proxy gets the two rings before their time, and the last one alone after it. */
static int64_t add_move(struct pairs *w, int64_t end)
{
	enum {
		RELOADS = 6000,
		BEFORE = 20000 /* what a proxy has begun before a reload is over */
	};
	int64_t start = pairs_now(w) + (end - pairs_now(w)) / 4;

	if (!w->moves)
		return end;
	w->configs[1].at = (start + BEFORE) / 1000;
	for (int i = 0; i < PAIRS_PROXIES; i++)
		pairs_at(w, start + pairs_below(w, RELOADS), pairs_on_configure, i, 1);
	return end;
}

/* --- the end --- */

/* All sets are used, and so moved, loaded and repaired. */
static void use_all(struct pairs *w)
{
	for (int key = 0; key < PAIRS_KEYS && !w->violation; key++) {
		pairs_ask(w, (int)pairs_below(w, PAIRS_PROXIES), key, COMMAND_SMEMBERS);
		run_events(w, pairs_now(w) + 3 * PAIRS_TIMEOUT);
		if (!w->violation)
			pairs_ask(w, (int)pairs_below(w, PAIRS_PROXIES), key, COMMAND_SCOMPACT);
		run_events(w, pairs_now(w) + 3 * PAIRS_TIMEOUT);
	}
}

static void settle(struct pairs *w)
{
	w->ending = true;
	pairs_heal(w);
	for (int i = 0; i < PAIRS_PROXIES; i++)
		w->proxies[i].kill_at = 0;
	run_events(w, pairs_now(w) + QUIET);
	for (int i = 0; i < PAIRS_PROXIES && w->moves && !w->violation; i++)
		pairs_configure(&w->proxies[i], 1);
	for (int round = 0; round < ROUNDS && !w->violation; round++) {
		run_events(w, pairs_now(w) + 3 * PAIRS_SETTLED);
		use_all(w);
	}
}

static void read_closing(struct pairs *w, int proxy, int key)
{
	pairs_ask(w, proxy, key, COMMAND_SMEMBERS);
	run_events(w, pairs_now(w) + 3 * PAIRS_TIMEOUT);
	if (!w->violation && !TAILQ_EMPTY(&w->ops))
		pairs_fail(w, "a command was never answered", "%.*s",
			(int)buf_size(&TAILQ_FIRST(&w->ops)->line) - 2,
			TAILQ_FIRST(&w->ops)->line.data);
}

/* A new proxy reads the same while either server is down. */
static void check_alone(struct pairs *w, int key, unsigned copy)
{
	int server = pairs_server_of(w, key, copy);
	uint64_t members;
	bool exists;

	read_closing(w, 1, key);
	members = w->last_read;
	exists = w->last_exists;
	if (w->violation)
		return;
	lan_say(&w->lan, "only copy %u of set %d\n", 1 - copy, key);
	w->servers[server].dead_until = INT64_MAX;
	pairs_kill_proxy(w, 0);
	if (!w->violation)
		read_closing(w, 0, key);
	if (!w->violation && (w->last_exists != exists || w->last_read != members))
		pairs_fail(w, "one copy alone is not enough",
			"s%d without server %d: %d %llx, not %d %llx", key, server, w->last_exists,
			(unsigned long long)w->last_read, exists, (unsigned long long)members);
	pairs_heal(w);
	if (w->violation)
		return;
	run_events(w, pairs_now(w) + QUIET);
	use_all(w);
}

static void check_end(struct pairs *w)
{
	for (int i = 0; i < PAIRS_PROXIES && w->moves && !w->violation; i++)
		pairs_configure(&w->proxies[i], 2);
	for (int key = 0; key < PAIRS_KEYS; key++) {
		for (int i = 0; i < PAIRS_PROXIES && !w->violation; i++)
			read_closing(w, i, key);
	}
	if (!w->violation)
		pairs_check_equal(w);
	for (unsigned copy = 0; copy < 2; copy++) {
		for (int key = 0; key < PAIRS_KEYS && !w->violation; key++)
			check_alone(w, key, copy);
	}
	if (!w->violation)
		pairs_check_reads(w);
	if (!w->violation)
		pairs_check_taken(w);
}

/* --- a history --- */

/* The application has loaded its sets. */
static void load_all(struct pairs *w)
{
	for (int key = 0; key < PAIRS_KEYS && !w->owned && !w->violation; key++) {
		pairs_load(w, 0, key);
		run_events(w, pairs_now(w) + 10 * PAIRS_TIMEOUT);
	}
}

static void run_history(struct pairs *w)
{
	int64_t end, last;

	for (int i = 0; i < PAIRS_PROXIES; i++)
		pairs_start_proxy(w, i);
	load_all(w);
	if (w->violation)
		return;
	if (w->faults == PAIRS_FAULTS_TURNS) {
		last = add_turns(w);
	} else {
		end = add_move(w, add_commands(w));
		last = add_faults(w, end);
	}
	run_events(w, last + PAIRS_TIMEOUT);
	if (!w->violation)
		settle(w);
	if (!w->violation)
		check_end(w);
}

static void tear_down(struct pairs *w)
{
	struct pairs_generation *g;
	struct pairs_op *op;

	for (int i = 0; i < PAIRS_PROXIES && !w->violation; i++) {
		TAILQ_FOREACH(g, &w->proxies[i].generations, link)
			copies_stop(g->copies);
		lan_kill(&w->proxies[i].lan);
		pairs_stop_proxy(&w->proxies[i]);
	}
	while ((op = TAILQ_FIRST(&w->ops)))
		pairs_free_op(op);
	lan_fini(&w->lan);
}

/* Some bugs matter only in histories of one kind. */
static void choose_kind(struct pairs *w)
{
	switch (w->mutation) {
	case PAIRS_MISS_ALONE:
		w->owned = true;
		w->faults = PAIRS_FAULTS_SIDES;
		break;
	case PAIRS_NO_TABLE:
		w->faults = PAIRS_FAULTS_TURNS;
		break;
	case PAIRS_NO_F:
		w->faults = PAIRS_FAULTS_EVICT;
		break;
	case PAIRS_VOID_WORDS:
		w->faults = PAIRS_FAULTS_SIDES;
		w->queues = true;
		break;
	case PAIRS_SOFT_MISS:
		w->faults = PAIRS_FAULTS_SIDES;
		break;
	case PAIRS_NO_LEASE:
		w->faults = PAIRS_FAULTS_SIDES;
		w->apart = false;
		break;
	case PAIRS_PLAIN_DELETE:
		w->owned = w->queues = true;
		break;
	case PAIRS_FOREIGN_TABLE:
	case PAIRS_AWAY_ONE:
	case PAIRS_CLAIM_THERE:
	case PAIRS_CLAIM_ONE:
		w->owned = true;
		w->faults = PAIRS_FAULTS_ONE;
		break;
	case PAIRS_SPOP_HERE:
		w->owned = true;
		w->faults = PAIRS_FAULTS_NONE;
		break;
	case PAIRS_LATE_DELETE:
		w->faults = PAIRS_FAULTS_NONE;
		w->owned = w->apart = true;
		break;
	case PAIRS_NO_MARGIN:
	case PAIRS_SHRINKING:
		w->owned = false;
		w->apart = true;
		break;
	case PAIRS_LATE_CREATE:
		w->faults = PAIRS_FAULTS_SIDES;
		w->owned = w->queues = true;
		break;
	case PAIRS_LONG_REFILL:
		w->owned = true;
		w->faults = PAIRS_FAULTS_ONE;
		break;
	case PAIRS_NO_FORMER:
		w->moves = true;
		w->faults = PAIRS_FAULTS_ONE;
		break;
	default:
		break;
	}
}

static void choose(struct pairs *w, uint64_t seed)
{
	w->owned = pairs_below(w, 2);
	w->apart = pairs_below(w, 3) == 0;
	w->queues = pairs_below(w, 2);
	w->fails_fast = pairs_below(w, 2);
	w->faults = (enum pairs_faults)pairs_below(w, PAIRS_FAULTS);
	w->moves = w->faults <= PAIRS_FAULTS_ONE && pairs_below(w, 3) == 0;
	choose_kind(w);
	w->queues &= !w->moves && w->faults != PAIRS_FAULTS_TURNS;
	w->server_count = w->faults == PAIRS_FAULTS_TURNS ? PAIRS_SERVERS : SERVERS;
	w->unsteady = w->queues;
	w->lossy = w->faults == PAIRS_FAULTS_ANY || w->faults == PAIRS_FAULTS_EVICT;
	w->options = *world_sizes(seed);
	w->rule = rules_default_collection;
	w->rule.prefix = SLICE("s");
	w->rule.copies = 2;
	w->rule.spread = w->mutation == PAIRS_AWAY_ONE ? 1 : 1 + pairs_below(w, 3);
	w->rules = (struct rules){ .collections = &w->rule, .collection_count = 1, .copies = true };
	plan_ring(w);
	w->faulty = pairs_server_of(w, 0, pairs_below(w, 2));
	for (int i = 0; i < PAIRS_SERVERS && w->apart; i++)
		w->lan.servers[i].ahead = pairs_below(w, PAIRS_AHEAD);
	for (int i = 0; i < PAIRS_PROXIES && w->apart; i++)
		w->proxies[i].offset = (int64_t)pairs_below(w, 2 * PAIRS_SKEW + 1) - PAIRS_SKEW;
	if (w->mutation == PAIRS_CLOCK_AHEAD)
		w->proxies[0].offset += 86400000;
}

static void run_world(struct pairs *w, uint64_t seed, enum pairs_mutation mutation, bool verbose)
{
	memset(w, 0, sizeof(*w));
	w->mutation = mutation;
	memset(w->heads, -1, sizeof(w->heads));
	wording_begin(seed % 4 != 3, "m00", "s", "e1", "l");
	lan_init(&w->lan, &pairs_hooks, w, PAIRS_SERVERS, ITEM_MAX, seed);
	w->lan.verbose = verbose;
	w->start = pairs_now(w);
	TAILQ_INIT(&w->ops);
	for (int i = 0; i < PAIRS_SERVERS; i++)
		w->started[i] = 1;
	choose(w, seed);
	lan_say(&w->lan, "%s, faults %d, server %d%s%s%s\n", w->owned ? "owned" : "cache",
		(int)w->faults, w->faulty, w->moves ? ", moves" : "", w->apart ? ", apart" : "",
		w->queues ? ", queues" : "");
	run_history(w);
	tear_down(w);
}

/* --- many of them --- */

static const char *mutation_name(int mutation)
{
	static const char *const names[] = {
		NULL,
#define MUTATION(name, what) what,
#include "pairs.def"
	};

	return names[mutation];
}

static struct verdict run(uint64_t seed, int mutation, bool verbose)
{
	static struct pairs world;
	struct pairs *w = &world;
	struct verdict v;

	run_world(w, seed, (enum pairs_mutation)mutation, verbose);
	v = (struct verdict){ w->violation, w->detail,
		{ w->acknowledged, w->answered, w->missing, w->errors } };
	for (int i = 0; i < PAIRS_MARKS; i++)
		v.totals[4 + i] = w->marks[i];
	return v;
}

const struct histories pairs_histories = { run,
	{
		"acknowledged",
		"read",
		"missing",
		"errors",
#define MARK(name, what) what,
#include "pairs.def"
	},
	mutation_name, PAIRS_MUTATIONS };
