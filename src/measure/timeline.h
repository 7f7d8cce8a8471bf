/*
 * The last five minutes of requests and failed calls, one point per second, in memory of fixed
 * size. The live page shows them when it is opened. Pure: the owner reads the clock and the
 * counters.
 */
#ifndef MEASURE_TIMELINE_H
#define MEASURE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "util/histogram.h"

enum { TIMELINE_MS = 1000, TIMELINE_POINTS = 300 };

/* The events since the previous point. */
struct timeline_point {
	uint64_t at; /* Milliseconds of a monotonic clock. */
	/* Per second: at least 1 if there were any, at most UINT32_MAX. */
	uint32_t requests, failed;
	/* Latencies of the timed requests among these, in microseconds; 0 if there are none. */
	uint32_t p50, p99;
};

/* All zeroes is empty. */
struct timeline {
	/* Total number of points. The last one is at (added - 1) % TIMELINE_POINTS. */
	uint64_t added;
	struct timeline_point points[TIMELINE_POINTS];
	/* At the last timeline_add(): */
	uint64_t at; /* 0 if there was none. */
	uint64_t failed;
	struct histogram_sum latency;
};

/*
 * Adds a point with the events since the last call; the first call adds none. `latency` and
 * `failed` are the totals of all requests and all failed calls. A bucket that has decreased was
 * reset, so its whole value is counted. If `failed` has decreased because servers were removed,
 * no failures are counted. `now` is never 0; nothing is added unless it is later than at the
 * last call.
 */
void timeline_add(
	struct timeline *t, uint64_t now, const struct histogram_sum *latency, uint64_t failed);

/* Return the number of points, up to TIMELINE_POINTS, and one of them: 0 is the oldest. */
size_t timeline_count(const struct timeline *t);
const struct timeline_point *timeline_get(const struct timeline *t, size_t i);

#endif
