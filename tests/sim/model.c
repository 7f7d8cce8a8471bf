/* Histories of model.h: their faults, and what is checked. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct model_world world;

/* --- helpers --- */

void model_fail(struct model_world *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

void model_trace(struct model_world *w, const char *format, ...)
{
	va_list ap;

	if (!w->verbose)
		return;
	va_start(ap, format);
	printf("%6lld ", (long long)w->now - MODEL_START);
	vprintf(format, ap);
	printf("\n");
	va_end(ap);
}

unsigned model_below(struct model_world *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((w->random >> 33) % n);
}

/* Memory of a history: abandoned programs need not free anything. */
void *model_alloc(struct model_world *w, size_t size)
{
	void *p = w->arena + w->used;

	w->used += (size + 15) & ~(size_t)15;
	if (w->used > MODEL_ARENA)
		abort();
	memset(p, 0, size);
	return p;
}

struct slice model_keep(struct model_world *w, struct slice s)
{
	char *p = model_alloc(w, s.n + 1);

	slice_write(p, s);
	return slice_of(p, s.n);
}

/* --- commands --- */

static void model_on_word(struct model_world *w, struct model_event *event)
{
	struct model_op *op = model_start(w, event->a, NULL, model_do_word);

	op->member = event->b / 2;
	op->adds = event->b % 2;
}

static void model_on_read(struct model_world *w, struct model_event *event)
{
	model_start(w, event->a, NULL, model_do_read);
}

static void model_on_repair(struct model_world *w, struct model_event *event)
{
	model_start(w, event->a, NULL, model_do_repair);
}

static void model_on_delete(struct model_world *w, struct model_event *event)
{
	model_start(w, event->a, NULL, model_do_delete);
}

static void model_on_take(struct model_world *w, struct model_event *event)
{
	model_start(w, event->a, NULL, model_do_take)->claims = event->b;
}

/* Chooses the commands. Returns the time of the last one. */
static int64_t add_commands(struct model_world *w)
{
	static const unsigned pauses[] = { 3, 15, 60, 130, 300 };
	enum { COMMANDS = 26 };
	int64_t at = w->now;

	for (int i = 0; i < COMMANDS; i++) {
		int proxy = (int)model_below(w, MODEL_PROXIES);
		unsigned kind = model_below(w, 100);
		int word = (int)model_below(w, 2 * (MODEL_MEMBERS - 1));
		at += pauses[model_below(w, 5)];
		if (kind < (w->owned ? 35 : 50))
			model_at(w, at, model_on_word, proxy, word);
		else if (kind < (w->owned ? 65 : 85))
			model_at(w, at, model_on_read, proxy, 0);
		else if (!w->owned || kind < 80)
			model_at(w, at, model_on_repair, proxy, 0);
		else if (kind < 84)
			model_at(w, at, model_on_delete, proxy, 0);
		else
			model_at(w, at, model_on_take, proxy, kind < 92);
	}
	return at;
}

/* --- faults --- */

static void model_on_kill(struct model_world *w, struct model_event *event)
{
	model_kill(w, event->a);
}

static void model_on_hang(struct model_world *w, struct model_event *event)
{
	model_hang(w, event->a);
}

static void model_on_up(struct model_world *w, struct model_event *event)
{
	model_up(w, event->a);
}

static void model_on_evict(struct model_world *w, struct model_event *event)
{
	model_evict(w, event->a);
}

static void model_on_cut(struct model_world *w, struct model_event *event)
{
	model_trace(w, "proxy %d is cut from server %d", event->a, event->b);
	w->proxies[event->a].cut[event->b] = true;
}

static void model_on_join(struct model_world *w, struct model_event *event)
{
	model_trace(w, "proxy %d reaches server %d", event->a, event->b);
	w->proxies[event->a].cut[event->b] = false;
}

static void model_on_proxy_kill(struct model_world *w, struct model_event *event)
{
	model_kill_proxy(w, event->a);
}

static void model_on_clock(struct model_world *w, struct model_event *event)
{
	w->proxies[event->a].offset -= event->b;
}

static void cut(struct model_world *w, int proxy, int server, int64_t at, int64_t until)
{
	model_at(w, at, model_on_cut, proxy, server);
	model_at(w, until, model_on_join, proxy, server);
}

/* Each proxy sees one of the servers, or one copy is evicted while the other is unreachable. */
static void add_aimed_fault(struct model_world *w, int64_t at, int64_t until)
{
	if (w->faults == FAULTS_SIDES) {
		for (int i = 0; i < MODEL_PROXIES; i++)
			cut(w, i, (int)model_below(w, 2), at, until);
		return;
	}
	model_at(w, at, model_on_evict, 1 - w->faulty, 0);
	if (model_below(w, 2)) {
		model_at(w, at - 1, model_on_hang, w->faulty, 0);
		model_at(w, until, model_on_up, w->faulty, 0);
		return;
	}
	for (int i = 0; i < MODEL_PROXIES; i++)
		cut(w, i, w->faulty, at - 1, until);
	w->cut_until = until;
}

static void add_fault(struct model_world *w, int server, int64_t at, int64_t until)
{
	unsigned cuts;

	switch (model_below(w, 6)) {
	case 0:
		model_at(w, at, model_on_kill, server, 0);
		model_at(w, until, model_on_up, server, 0);
		break;
	case 1:
		model_at(w, at, model_on_hang, server, 0);
		model_at(w, until, model_on_up, server, 0);
		break;
	case 2:
		cuts = 1 + model_below(w, 6);
		w->unsteady = true;
		for (int i = 0; i < MODEL_PROXIES; i++) {
			if (cuts & 1u << i)
				cut(w, i, server, at, until);
		}
		break;
	case 3:
		if (server < 2)
			model_at(w, at, model_on_evict, server, 0);
		break;
	case 4:
		model_at(w, at, model_on_proxy_kill, (int)model_below(w, MODEL_PROXIES), 0);
		break;
	default:
		model_at(w, at, model_on_clock, (int)model_below(w, MODEL_PROXIES),
			w->mutation == MODEL_CLOCK_BEHIND ? 3600000
				: w->apart                ? MODEL_SKEW / 2
							  : 0);
	}
}

static int64_t add_faults(struct model_world *w, int64_t end)
{
	static const unsigned durations[] = { 40, 150, 500, 1500 };
	unsigned count = w->faults == FAULTS_NONE ? 0 : 1 + model_below(w, 3);
	int64_t last = end;

	while (count--) {
		int64_t at = w->now + 1 + model_below(w, (unsigned)(end - w->now));
		int64_t until = at + durations[model_below(w, 4)];
		int server =
			w->faults == FAULTS_ANY ? (int)model_below(w, MODEL_SERVERS) : w->faulty;
		if (w->faults == FAULTS_SIDES || w->faults == FAULTS_EVICT)
			add_aimed_fault(w, at, until);
		else
			add_fault(w, server, at, until);
		if (w->mutation == MODEL_AWAY_ONE) {
			model_at(w, at + 100, model_on_kill, 2, 0);
			model_at(w, at + 101, model_on_up, 2, 0);
		}
		last = until > last ? until : last;
	}
	return last;
}

/* --- the end --- */

static void settle(struct model_world *w)
{
	for (int i = 0; i < MODEL_PROXIES; i++)
		memset(w->proxies[i].cut, 0, sizeof(w->proxies[i].cut));
	for (int y = 0; y < MODEL_SERVERS; y++)
		model_up(w, y);
	model_run(w);
	for (int round = 0; round < 5 && !w->violation; round++) {
		w->now += 3 * MODEL_SETTLED;
		model_start(w, 0, NULL, model_do_repair);
		model_run(w);
	}
	model_start(w, 1, NULL, model_do_read);
	model_run(w);
}

static void run_history(struct model_world *w)
{
	int64_t end;

	for (int i = 0; i < MODEL_PROXIES; i++)
		w->proxies[i].offset =
			w->apart ? (int64_t)model_below(w, 2 * MODEL_SKEW + 1) - MODEL_SKEW : 0;
	if (w->mutation == MODEL_CLOCK_AHEAD)
		w->proxies[0].offset += 86400000;
	if (!w->owned) {
		struct slice base = model_base(
			w, stamp_at(MODEL_START - 10000), 0, -1, 0, (struct slice){ NULL, 0 });
		for (int y = 0; y < 2; y++)
			w->servers[y].base = base;
	}
	end = add_commands(w);
	add_faults(w, end);
	model_run(w);
	w->now += 20 * MODEL_SETTLED;
	settle(w);
	model_check(w);
}

/* Some bugs matter only in histories of one kind. */
static void choose_kind(struct model_world *w)
{
	switch (w->mutation) {
	case MODEL_MISS_ALONE:
		w->owned = true;
		w->faults = FAULTS_SIDES;
		break;
	case MODEL_CLAIM_THERE:
	case MODEL_SPOP_HERE:
		w->owned = true;
		w->faults = w->mutation == MODEL_SPOP_HERE ? FAULTS_NONE : FAULTS_ONE;
		w->faulty = 0;
		break;
	case MODEL_NO_MARGIN:
	case MODEL_SHRINKING:
		w->owned = false;
		w->apart = true;
		break;
	case MODEL_LATE_CREATE:
		w->faults = FAULTS_SIDES;
		/* fall through */
	case MODEL_SLOW_CLOSE:
		w->owned = w->queues = w->unsteady = true;
		break;
	default:
		break;
	}
}

static void begin(struct model_world *w, uint64_t seed, int mutation, bool verbose)
{
	char *arena = w->arena ? w->arena : malloc(MODEL_ARENA);

	*w = (struct model_world){ .seed = seed, .verbose = verbose, .arena = arena };
	w->random = seed * 0x9e3779b97f4a7c15u;
	model_below(w, 2);
	w->mutation = (enum model_mutation)mutation;
	w->now = MODEL_START;
	w->owned = model_below(w, 2);
	w->alone = model_below(w, 2);
	w->apart = model_below(w, 3) == 0;
	w->queues = w->unsteady = model_below(w, 2);
	w->faults = (enum model_faults)model_below(w, FAULTS_KINDS);
	w->faulty = (int)model_below(w, 2);
	choose_kind(w);
	w->lossy = w->faults == FAULTS_ANY || w->faults == FAULTS_EVICT;
}

static struct verdict run(uint64_t seed, int mutation, bool verbose)
{
	struct model_world *w = &world;
	struct verdict v;

	begin(w, seed, mutation, verbose);
	run_history(w);
	v = (struct verdict){ w->violation, w->detail,
		{ w->acknowledged, w->answered, w->missing, w->errors } };
	for (int i = 0; i < MODEL_MARKS; i++)
		v.totals[4 + i] = w->marks[i];
	return v;
}

static const char *mutation_name(int mutation)
{
	static const char *const names[] = {
		NULL,
#define MUTATION(name, what) what,
#include "model.def"
	};

	return names[mutation];
}

const struct histories model_histories = { run,
	{
		"acknowledged",
		"read",
		"missing",
		"errors",
#define MARK(name, what) what,
#include "model.def"
	},
	mutation_name, MODEL_MUTATIONS };
