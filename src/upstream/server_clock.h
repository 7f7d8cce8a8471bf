/*
 * The clock of a server, by which its items expire. memcached derives it from a monotonic clock at
 * its start, so it may differ from ours. It is known since the greeting of the connection, and read
 * again from time to time. Times `now` are in milliseconds of the loop's clock.
 */
#ifndef UPSTREAM_SERVER_CLOCK_H
#define UPSTREAM_SERVER_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/call.h"

struct server_clock {
	int64_t time;     /* The clock when it was read, in seconds since 1970; 0 if unknown. */
	uint64_t at;      /* That moment. */
	uint64_t started; /* Start of the read in flight; 0 if there is none. */
	struct waiter waiter;
	/* Borrowed, or NULL: the clock in milliseconds, minus `now`. Other threads read it. */
	atomic_int_fast64_t *offset;
};

/* Stores a clock that was just read. 0 keeps the former one. */
void server_clock_set(struct server_clock *clock, int64_t time, uint64_t now);

/* Returns the clock in seconds since 1970; 0 if it is unknown. */
int64_t server_clock_time(const struct server_clock *clock, uint64_t now);

/*
 * Returns by how many seconds a clock that was read with this offset differs from Unix time; 0 for
 * an unknown clock, whose offset is 0. All are in milliseconds. A server counts whole seconds, so
 * less than one is no difference.
 */
uint64_t server_clock_difference(int64_t offset, uint64_t now, int64_t unix_ms);

/* Returns the waiter of a STATS, if it is time to read the clock again; else NULL. */
struct waiter *server_clock_read(struct server_clock *clock, uint64_t now);

#endif
