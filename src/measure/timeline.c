#include "measure/timeline.h"

static uint32_t bounded(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/*
 * Returns the rate of `n` events in `ms` milliseconds, rounded; at least 1 if there was any
 * event.
 */
static uint32_t per_second(uint64_t n, uint64_t ms)
{
	if (n > UINT32_MAX)
		return UINT32_MAX;
	return n && n * 1000 < ms ? 1 : bounded((n * 1000 + ms / 2) / ms);
}

/*
 * Returns the counts that were added between two sums. `total` is left at 0, since it is not
 * used here.
 */
static struct histogram_sum between(
	const struct histogram_sum *before, const struct histogram_sum *now)
{
	struct histogram_sum sum = { .count = 0 };

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t n = now->counts[i], old = before->counts[i];
		sum.counts[i] = n >= old ? n - old : n;
		sum.count += sum.counts[i];
	}
	sum.untimed =
		now->untimed >= before->untimed ? now->untimed - before->untimed : now->untimed;
	return sum;
}

static struct timeline_point point(const struct timeline *t, uint64_t now,
	const struct histogram_sum *latency, uint64_t failed)
{
	struct histogram_sum sum = between(&t->latency, latency);
	uint64_t ms = now - t->at;

	return (struct timeline_point){
		.at = now,
		.requests = per_second(sum.count + sum.untimed, ms),
		.failed = per_second(failed > t->failed ? failed - t->failed : 0, ms),
		.p50 = bounded(histogram_quantile(&sum, 0.5)),
		.p99 = bounded(histogram_quantile(&sum, 0.99)),
	};
}

void timeline_add(
	struct timeline *t, uint64_t now, const struct histogram_sum *latency, uint64_t failed)
{
	if (now <= t->at)
		return;
	if (t->at)
		t->points[t->added++ % TIMELINE_POINTS] = point(t, now, latency, failed);
	t->at = now;
	t->latency = *latency;
	t->failed = failed;
}

size_t timeline_count(const struct timeline *t)
{
	return t->added < TIMELINE_POINTS ? (size_t)t->added : TIMELINE_POINTS;
}

const struct timeline_point *timeline_get(const struct timeline *t, size_t i)
{
	return &t->points[(t->added - timeline_count(t) + i) % TIMELINE_POINTS];
}
