/* Histories of copies.h: their faults, and what is checked. */
#include "copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct copies_world world;

/* --- helpers --- */

void copies_fail(struct copies_world *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

void copies_trace(struct copies_world *w, const char *format, ...)
{
	va_list ap;

	if (!w->verbose)
		return;
	va_start(ap, format);
	printf("%6lld ", (long long)w->now - COPIES_START);
	vprintf(format, ap);
	printf("\n");
	va_end(ap);
}

unsigned copies_below(struct copies_world *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((w->random >> 33) % n);
}

/* Memory of a history: abandoned programs need not free anything. */
void *copies_alloc(struct copies_world *w, size_t size)
{
	void *p = w->arena + w->used;

	w->used += (size + 15) & ~(size_t)15;
	if (w->used > COPIES_ARENA)
		abort();
	memset(p, 0, size);
	return p;
}

struct slice copies_keep(struct copies_world *w, struct slice s)
{
	char *p = copies_alloc(w, s.n + 1);

	slice_write(p, s);
	return slice_of(p, s.n);
}

/* --- commands --- */

static void copies_on_word(struct copies_world *w, struct copies_event *event)
{
	struct copies_op *op = copies_start(w, event->a, NULL, copies_do_word);

	op->member = event->b / 2;
	op->adds = event->b % 2;
}

static void copies_on_read(struct copies_world *w, struct copies_event *event)
{
	copies_start(w, event->a, NULL, copies_do_read);
}

static void copies_on_repair(struct copies_world *w, struct copies_event *event)
{
	copies_start(w, event->a, NULL, copies_do_repair);
}

static void copies_on_delete(struct copies_world *w, struct copies_event *event)
{
	copies_start(w, event->a, NULL, copies_do_delete);
}

static void copies_on_take(struct copies_world *w, struct copies_event *event)
{
	copies_start(w, event->a, NULL, copies_do_take)->claims = event->b;
}

/* Chooses the commands. Returns the time of the last one. */
static int64_t add_commands(struct copies_world *w)
{
	static const unsigned pauses[] = { 3, 15, 60, 130, 300 };
	enum { COMMANDS = 26 };
	int64_t at = w->now;

	for (int i = 0; i < COMMANDS; i++) {
		int proxy = (int)copies_below(w, COPIES_PROXIES);
		unsigned kind = copies_below(w, 100);
		int word = (int)copies_below(w, 2 * (COPIES_MEMBERS - 1));
		at += pauses[copies_below(w, 5)];
		if (kind < (w->owned ? 35 : 50))
			copies_at(w, at, copies_on_word, proxy, word);
		else if (kind < (w->owned ? 65 : 85))
			copies_at(w, at, copies_on_read, proxy, 0);
		else if (!w->owned || kind < 80)
			copies_at(w, at, copies_on_repair, proxy, 0);
		else if (kind < 84)
			copies_at(w, at, copies_on_delete, proxy, 0);
		else
			copies_at(w, at, copies_on_take, proxy, kind < 92);
	}
	return at;
}

/* --- faults --- */

static void copies_on_kill(struct copies_world *w, struct copies_event *event)
{
	copies_kill(w, event->a);
}

static void copies_on_hang(struct copies_world *w, struct copies_event *event)
{
	copies_hang(w, event->a);
}

static void copies_on_up(struct copies_world *w, struct copies_event *event)
{
	copies_up(w, event->a);
}

static void copies_on_evict(struct copies_world *w, struct copies_event *event)
{
	copies_evict(w, event->a);
}

static void copies_on_cut(struct copies_world *w, struct copies_event *event)
{
	copies_trace(w, "proxy %d is cut from server %d", event->a, event->b);
	w->proxies[event->a].cut[event->b] = true;
}

static void copies_on_join(struct copies_world *w, struct copies_event *event)
{
	copies_trace(w, "proxy %d reaches server %d", event->a, event->b);
	w->proxies[event->a].cut[event->b] = false;
}

static void copies_on_proxy_kill(struct copies_world *w, struct copies_event *event)
{
	copies_kill_proxy(w, event->a);
}

static void copies_on_clock(struct copies_world *w, struct copies_event *event)
{
	w->proxies[event->a].offset -= event->b;
}

static void cut(struct copies_world *w, int proxy, int server, int64_t at, int64_t until)
{
	copies_at(w, at, copies_on_cut, proxy, server);
	copies_at(w, until, copies_on_join, proxy, server);
}

/* Each proxy sees one of the servers, or one copy is evicted while the other is unreachable. */
static void add_aimed_fault(struct copies_world *w, int64_t at, int64_t until)
{
	if (w->faults == FAULTS_SIDES) {
		for (int i = 0; i < COPIES_PROXIES; i++)
			cut(w, i, (int)copies_below(w, 2), at, until);
		return;
	}
	copies_at(w, at, copies_on_evict, 1 - w->faulty, 0);
	if (copies_below(w, 2)) {
		copies_at(w, at - 1, copies_on_hang, w->faulty, 0);
		copies_at(w, until, copies_on_up, w->faulty, 0);
		return;
	}
	for (int i = 0; i < COPIES_PROXIES; i++)
		cut(w, i, w->faulty, at - 1, until);
	w->cut_until = until;
}

static void add_fault(struct copies_world *w, int server, int64_t at, int64_t until)
{
	unsigned cuts;

	switch (copies_below(w, 6)) {
	case 0:
		copies_at(w, at, copies_on_kill, server, 0);
		copies_at(w, until, copies_on_up, server, 0);
		break;
	case 1:
		copies_at(w, at, copies_on_hang, server, 0);
		copies_at(w, until, copies_on_up, server, 0);
		break;
	case 2:
		cuts = 1 + copies_below(w, 6);
		w->unsteady = true;
		for (int i = 0; i < COPIES_PROXIES; i++) {
			if (cuts & 1u << i)
				cut(w, i, server, at, until);
		}
		break;
	case 3:
		if (server < 2)
			copies_at(w, at, copies_on_evict, server, 0);
		break;
	case 4:
		copies_at(w, at, copies_on_proxy_kill, (int)copies_below(w, COPIES_PROXIES), 0);
		break;
	default:
		copies_at(w, at, copies_on_clock, (int)copies_below(w, COPIES_PROXIES),
			w->mutation == COPIES_CLOCK_BEHIND ? 3600000
				: w->apart                 ? COPIES_SKEW / 2
							   : 0);
	}
}

static int64_t add_faults(struct copies_world *w, int64_t end)
{
	static const unsigned durations[] = { 40, 150, 500, 1500 };
	unsigned count = w->faults == FAULTS_NONE ? 0 : 1 + copies_below(w, 3);
	int64_t last = end;

	while (count--) {
		int64_t at = w->now + 1 + copies_below(w, (unsigned)(end - w->now));
		int64_t until = at + durations[copies_below(w, 4)];
		int server =
			w->faults == FAULTS_ANY ? (int)copies_below(w, COPIES_SERVERS) : w->faulty;
		if (w->faults == FAULTS_SIDES || w->faults == FAULTS_EVICT)
			add_aimed_fault(w, at, until);
		else
			add_fault(w, server, at, until);
		if (w->mutation == COPIES_AWAY_ONE) {
			copies_at(w, at + 100, copies_on_kill, 2, 0);
			copies_at(w, at + 101, copies_on_up, 2, 0);
		}
		last = until > last ? until : last;
	}
	return last;
}

/* --- the end --- */

static void settle(struct copies_world *w)
{
	for (int i = 0; i < COPIES_PROXIES; i++)
		memset(w->proxies[i].cut, 0, sizeof(w->proxies[i].cut));
	for (int y = 0; y < COPIES_SERVERS; y++)
		copies_up(w, y);
	copies_run(w);
	for (int round = 0; round < 5 && !w->violation; round++) {
		w->now += 3 * COPIES_SETTLED;
		copies_start(w, 0, NULL, copies_do_repair);
		copies_run(w);
	}
	copies_start(w, 1, NULL, copies_do_read);
	copies_run(w);
}

static void run_history(struct copies_world *w)
{
	int64_t end;

	for (int i = 0; i < COPIES_PROXIES; i++)
		w->proxies[i].offset =
			w->apart ? (int64_t)copies_below(w, 2 * COPIES_SKEW + 1) - COPIES_SKEW : 0;
	if (w->mutation == COPIES_CLOCK_AHEAD)
		w->proxies[0].offset += 86400000;
	if (!w->owned) {
		struct slice base = copies_base(
			w, stamp_at(COPIES_START - 10000), 0, -1, 0, (struct slice){ NULL, 0 });
		for (int y = 0; y < 2; y++)
			w->servers[y].base = base;
	}
	end = add_commands(w);
	add_faults(w, end);
	copies_run(w);
	w->now += 20 * COPIES_SETTLED;
	settle(w);
	copies_check(w);
}

/* Some bugs matter only in histories of one kind. */
static void choose_kind(struct copies_world *w)
{
	switch (w->mutation) {
	case COPIES_MISS_ALONE:
		w->owned = true;
		w->faults = FAULTS_SIDES;
		break;
	case COPIES_CLAIM_THERE:
	case COPIES_SPOP_HERE:
		w->owned = true;
		w->faults = w->mutation == COPIES_SPOP_HERE ? FAULTS_NONE : FAULTS_ONE;
		w->faulty = 0;
		break;
	case COPIES_NO_MARGIN:
	case COPIES_SHRINKING:
		w->owned = false;
		w->apart = true;
		break;
	case COPIES_LATE_CREATE:
		w->faults = FAULTS_SIDES;
		/* fall through */
	case COPIES_SLOW_CLOSE:
		w->owned = w->queues = w->unsteady = true;
		break;
	default:
		break;
	}
}

static void begin(struct copies_world *w, uint64_t seed, int mutation, bool verbose)
{
	char *arena = w->arena ? w->arena : malloc(COPIES_ARENA);

	*w = (struct copies_world){ .seed = seed, .verbose = verbose, .arena = arena };
	w->random = seed * 0x9e3779b97f4a7c15u;
	copies_below(w, 2);
	w->mutation = (enum copies_mutation)mutation;
	w->now = COPIES_START;
	w->owned = copies_below(w, 2);
	w->alone = copies_below(w, 2);
	w->apart = copies_below(w, 3) == 0;
	w->queues = w->unsteady = copies_below(w, 2);
	w->faults = (enum copies_faults)copies_below(w, FAULTS_KINDS);
	w->faulty = (int)copies_below(w, 2);
	choose_kind(w);
	w->lossy = w->faults == FAULTS_ANY || w->faults == FAULTS_EVICT;
}

static struct verdict run(uint64_t seed, int mutation, bool verbose)
{
	struct copies_world *w = &world;
	struct verdict v;

	begin(w, seed, mutation, verbose);
	run_history(w);
	v = (struct verdict){ w->violation, w->detail,
		{ w->acknowledged, w->answered, w->missing, w->errors } };
	for (int i = 0; i < COPIES_MARKS; i++)
		v.totals[4 + i] = w->marks[i];
	return v;
}

static const char *mutation_name(int mutation)
{
	static const char *const names[] = {
		NULL,
#define MUTATION(name, what) what,
#include "copies.def"
	};

	return names[mutation];
}

const struct histories copies_histories = { run,
	{
		"acknowledged",
		"read",
		"missing",
		"errors",
#define MARK(name, what) what,
#include "copies.def"
	},
	mutation_name, COPIES_MUTATIONS };
