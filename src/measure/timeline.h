/*
 * The last five minutes of requests and failed calls, a point a second, in memory of a fixed size. The live page shows
 * them when it is opened, or opened again. This is pure: its owner reads the clock and the counters.
 */
#ifndef MEASURE_TIMELINE_H
#define MEASURE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "util/histogram.h"

enum { TIMELINE_MS = 1000, TIMELINE_POINTS = 300 };

/* What happened since the point before. */
struct timeline_point {
	uint64_t at;               /* milliseconds of a monotonic clock */
	uint32_t requests, failed; /* a second: at least 1 if there were any, at most UINT32_MAX */
	uint32_t p50, p99; /* latencies of the timed ones of these requests, in microseconds; 0 if there are none */
};

/* All zeroes is empty. */
struct timeline {
	uint64_t added; /* points in all: the last one is at (added - 1) % TIMELINE_POINTS */
	struct timeline_point points[TIMELINE_POINTS];
	/* At the last timeline_add: */
	uint64_t at; /* 0: there was none */
	uint64_t failed;
	struct histogram_sum latency;
};

/*
 * Adds a point, except at the first time, from which on the next one counts. `latency` and `failed` are of all requests and all failed
 * calls. A bucket that has fallen was reset: it counts as what it has. If `failed` has fallen, servers have gone, and none are new.
 * `now` is never 0; nothing is added if it is not later than the last one.
 */
void timeline_add(struct timeline *t, uint64_t now, const struct histogram_sum *latency, uint64_t failed);

/* The number of points, up to TIMELINE_POINTS, and one of them: 0 is the oldest. */
size_t timeline_count(const struct timeline *t);
const struct timeline_point *timeline_get(const struct timeline *t, size_t i);

#endif
