#include "upstream/server_clock.h"

#include <stddef.h>

#include "protocol/dialect.h"

/* Clocks of two machines drift apart by less than a second in the time AGE_MS. */
enum { SECOND_MS = 1000, AGE_MS = 600 * SECOND_MS };

void server_clock_set(struct server_clock *clock, int64_t time, uint64_t now)
{
	if (!time)
		return;
	clock->time = time;
	clock->at = now;
	if (clock->offset)
		atomic_store_explicit(
			clock->offset, time * SECOND_MS - (int64_t)now, memory_order_relaxed);
}

uint64_t server_clock_difference(int64_t offset, uint64_t now, int64_t unix_ms)
{
	/* On average, half of the current second has passed. */
	int64_t ahead = offset + (int64_t)now + SECOND_MS / 2 - unix_ms;

	return offset ? (uint64_t)(ahead < 0 ? -ahead : ahead) / SECOND_MS : 0;
}

int64_t server_clock_time(const struct server_clock *clock, uint64_t now)
{
	return clock->time ? clock->time + (int64_t)((now - clock->at) / SECOND_MS) : 0;
}

static void server_clock_on_read(struct waiter *waiter, const struct result *r)
{
	struct server_clock *clock =
		(struct server_clock *)((char *)waiter - offsetof(struct server_clock, waiter));

	server_clock_set(clock, dialect_clock(r), clock->started);
	clock->started = 0;
}

struct waiter *server_clock_read(struct server_clock *clock, uint64_t now)
{
	if (!clock->time || clock->started || now - clock->at <= AGE_MS)
		return NULL;
	clock->started = now;
	clock->waiter = (struct waiter){ server_clock_on_read, SLICE("") };
	return &clock->waiter;
}
