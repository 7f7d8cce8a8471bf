#include "balance.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "worker.h"

enum {
	WINDOW_MS = 100,
	IDLE_PERCENT = 30, /* of a core: with less to spare a further thread would only take it from others */
	MOVES = 64         /* in one window */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Where the system does not tell, time itself: a core that is always idle. */
static uint64_t machine_idle_ms(uint64_t now)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long ticks;
	int found = file ? fscanf(file, "cpu %*u %*u %*u %llu", &ticks) : 0;

	if (file)
		fclose(file);
	return found == 1 ? (uint64_t)ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK) : now;
}

/* A worker that sleeps measures nothing: what it last said of itself is too old then. */
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

	for (size_t i = 1; i < d->config->threads; i++) {
		if (load_of(d->workers[i], now) < load_of(least, now))
			least = d->workers[i];
	}
	return least;
}

struct worker *balance_choose(const struct daemon *d, uint64_t turn)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC) / 1000000;

	if (d->config->thread_load == 0)
		return d->workers[turn % d->config->threads];
	for (size_t i = 0; i < d->config->threads; i++) {
		if (load_of(d->workers[i], now) < d->config->thread_load)
			return d->workers[i];
	}
	return least_loaded(d, now);
}

/* Every second one that asked for something lately; so one client alone is not sent to and fro. */
static void give_away(struct worker *w, struct worker *to)
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

/* Before there are clients not all of the other workers may have been started. */
static void relieve(struct worker *w, unsigned load)
{
	uint64_t now = w->loop.now;
	struct worker *to;

	if (w->draining || TAILQ_EMPTY(&w->clients))
		return;
	to = least_loaded(w->daemon, now);
	if (to != w && load_of(to, now) * 2 < load)
		give_away(w, to);
}

/* The first full window is only looked at: it tells who is busy, and how idle the machine is meanwhile. */
static void when_full(struct worker *w, unsigned load, uint64_t window)
{
	struct balance *b = &w->balance;
	uint64_t idle = machine_idle_ms(w->loop.now);
	struct client *client;

	/* What the system says of this may fall a little. */
	if (b->full && idle * 100 >= b->idle * 100 + window * IDLE_PERCENT)
		relieve(w, load);
	TAILQ_FOREACH(client, &w->clients, link)
		client_watch(client);
	b->idle = idle;
}

void balance_turn(struct worker *w)
{
	const struct config *config = w->daemon->config;
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
		when_full(w, load, window);
	b->full = full;
	b->began = now;
	b->cpu = cpu;
	atomic_store_explicit(&b->load, load, memory_order_relaxed);
	atomic_store_explicit(&b->ended, now, memory_order_relaxed);
}
