#include "worker/balance.h"

#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/linux.h"

enum {
	WINDOW_MS = 100,
	/* Percent of a core. With less idle time, another busy thread would gain nothing. */
	IDLE_PERCENT = 30
};

/*
 * Returns the idle time of all cores. If that is not known, returns the time itself, as if one
 * core were always idle.
 */
static uint64_t machine_idle_ms(uint64_t now)
{
	FILE *file = fopen(LINUX_PROCESSORS, "re");
	unsigned long long ticks;
	int found = file ? fscanf(file, "cpu %*u %*u %*u %llu", &ticks) : 0;

	if (file)
		fclose(file);
	return found == 1 ? (uint64_t)ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK) : now;
}

/*
 * Returns the load of a worker. A sleeping worker does not measure, so its load is 0 if its
 * last window is old.
 */
static unsigned load_of(const struct balance *b, uint64_t now)
{
	uint64_t ended = atomic_load_explicit(&b->ended, memory_order_relaxed);

	if (now > ended + (uint64_t)2 * WINDOW_MS)
		return 0;
	return atomic_load_explicit(&b->load, memory_order_relaxed);
}

static size_t least_loaded(const struct balance *all, size_t count, uint64_t now)
{
	size_t least = 0;

	for (size_t i = 1; i < count; i++) {
		if (load_of(&all[i], now) < load_of(&all[least], now))
			least = i;
	}
	return least;
}

size_t balance_choose(struct balance *all, size_t count, size_t own, uint64_t limit, uint64_t now)
{
	if (limit == 0)
		return all[own].turn++ % count;
	for (size_t i = 0; i < count; i++) {
		if (load_of(&all[i], now) < limit)
			return i;
	}
	return least_loaded(all, count, now);
}

/*
 * Returns whether cores were idle since the end of the last window, in which the load had
 * reached the limit, too. The reported idle time may decrease slightly.
 */
static bool is_worth_moving(const struct balance *b, uint64_t idle, uint64_t window)
{
	return b->full && idle * 100 >= b->idle * 100 + window * IDLE_PERCENT;
}

bool balance_turn(
	struct balance *all, size_t count, size_t own, uint64_t limit, uint64_t now, size_t *to)
{
	struct balance *b = &all[own];
	uint64_t window = now - b->began, cpu, idle;
	unsigned load;
	bool full;

	if (count == 1 || limit == 0 || window < WINDOW_MS)
		return false;
	cpu = clock_us(CLOCK_THREAD_CPUTIME_ID);
	load = (unsigned)((cpu - b->cpu) / 10 / window);
	full = load >= limit;
	*to = own;
	if (full) {
		idle = machine_idle_ms(now);
		if (is_worth_moving(b, idle, window))
			*to = least_loaded(all, count, now);
		if (load_of(&all[*to], now) * 2 >= load)
			*to = own;
		b->idle = idle;
	}
	b->full = full;
	b->began = now;
	b->cpu = cpu;
	atomic_store_explicit(&b->load, load, memory_order_relaxed);
	atomic_store_explicit(&b->ended, now, memory_order_relaxed);
	return full;
}
