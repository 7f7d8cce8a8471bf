#include "worker/balance.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client/client.h"
#include "worker/worker.h"

enum {
	WINDOW_MS = 100,
	IDLE_PERCENT = 30, /* of a core: with less idle time, another busy thread would gain nothing */
	MOVES = 64         /* clients moved in a window at most */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Idle time of all cores. Without /proc/stat, the time itself, as if one core were always idle. */
static uint64_t machine_idle_ms(uint64_t now)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long ticks;
	int found = file ? fscanf(file, "cpu %*u %*u %*u %llu", &ticks) : 0;

	if (file)
		fclose(file);
	return found == 1 ? (uint64_t)ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK) : now;
}

/* A sleeping worker does not measure: if its last window is old, its load is 0. */
static unsigned load_of(const struct worker *w, uint64_t now)
{
	uint64_t ended = atomic_load_explicit(&w->balance.ended, memory_order_relaxed);

	if (now > ended + (uint64_t)2 * WINDOW_MS)
		return 0;
	return atomic_load_explicit(&w->balance.load, memory_order_relaxed);
}

static struct worker *least_loaded(const struct daemon *d, uint64_t now)
{
	struct worker *least = d->workers[0];

	for (size_t i = 1; i < d->threads; i++) {
		if (load_of(d->workers[i], now) < load_of(least, now))
			least = d->workers[i];
	}
	return least;
}

struct worker *balance_choose(struct worker *w)
{
	const struct daemon *d = w->daemon;
	uint64_t limit = worker_config(w)->thread_load;

	if (limit == 0)
		return d->workers[w->balance.turn++ % d->threads];
	for (size_t i = 0; i < d->threads; i++) {
		if (load_of(d->workers[i], w->loop.now) < limit)
			return d->workers[i];
	}
	return least_loaded(d, w->loop.now);
}

/* Moves every second busy client. So a single busy client stays. */
static void hand_over_clients(struct worker *w, struct worker *to)
{
	struct client *client;
	unsigned busy = 0;

	TAILQ_FOREACH(client, &w->clients, link) {
		if (client_was_busy(client) && busy++ % 2 == 1)
			client_move(client, to);
		if (busy == 2 * MOVES)
			return;
	}
}

/* Without clients it returns first: other workers may not have been started yet. */
static void reduce_load(struct worker *w, unsigned load)
{
	uint64_t now = w->loop.now;
	struct worker *to;

	if (w->draining || TAILQ_EMPTY(&w->clients))
		return;
	to = least_loaded(w->daemon, now);
	if (to != w && load_of(to, now) * 2 < load)
		hand_over_clients(w, to);
}

/* The first of several full windows only notes which clients are busy, and the idle time; later ones hand over clients. */
static void on_full_window(struct worker *w, unsigned load, uint64_t window)
{
	struct balance *b = &w->balance;
	uint64_t idle = machine_idle_ms(w->loop.now);
	struct client *client;

	/* The idle time of /proc/stat may decrease a little, so it is not subtracted. */
	if (b->full && idle * 100 >= b->idle * 100 + window * IDLE_PERCENT)
		reduce_load(w, load);
	TAILQ_FOREACH(client, &w->clients, link)
		client_watch(client);
	b->idle = idle;
}

void balance_turn(struct worker *w)
{
	const struct config *config = worker_config(w);
	struct balance *b = &w->balance;
	uint64_t now = w->loop.now, window = now - b->began, cpu;
	unsigned load;
	bool full;

	if (config->threads == 1 || config->thread_load == 0 || window < WINDOW_MS)
		return;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	load = (unsigned)((cpu - b->cpu) / 10000 / window);
	full = load >= config->thread_load;
	if (full)
		on_full_window(w, load, window);
	b->full = full;
	b->began = now;
	b->cpu = cpu;
	atomic_store_explicit(&b->load, load, memory_order_relaxed);
	atomic_store_explicit(&b->ended, now, memory_order_relaxed);
}
