/*
 * Reads the counters of ranges of buckets of one or several types in parallel, with a limited
 * number of calls in flight, at most ORDER_EVENT_CALLS.
 */
#ifndef COMMAND_EVENT_COUNTERS_H
#define COMMAND_EVENT_COUNTERS_H

#include "collection/event/time_bucket.h"
#include "command/task.h"

/* A type, and the buckets of which the counters are read. */
struct counted_type {
	struct slice type;
	const struct event_rule *rule;
	struct time_bucket_range range;
};

struct counter;

struct counters {
	struct task *task;
	/* Called when all counters were read, or when the task's scratch contains an error line. */
	void (*done)(struct counters *counters);
	const struct counted_type *types;
	struct counted_type only;      /* The single type of counters_read. */
	size_t count, asked, answered; /* Numbers of counters: in total, requested, and answered. */
	size_t type;                   /* The type and the bucket to request next. */
	int64_t bucket;
	size_t size, stride;  /* Bytes of the allocation at `values`, and of a call in it. */
	uint64_t *values;     /* In the order of types and buckets. */
	struct counter *free; /* The calls that are not in flight. */
	size_t made;          /* Number of calls that were ever used. */
	struct waiter delay;  /* To try more calls, after a slice that was over. */
	bool delayed;
};

/*
 * Starts reading for a task, which uses the memory until counters_free. Until then `counters`
 * must not move, and `type` must stay valid. If the task is abandoned, reading ends early as a
 * failure.
 */
void counters_read(struct counters *counters, struct task *task, const struct event_rule *rule,
	struct slice type, struct time_bucket_range range, void (*done)(struct counters *counters));

/* The same for `count` types, which are borrowed too. */
void counters_read_types(struct counters *counters, struct task *task,
	const struct counted_type *types, size_t count, void (*done)(struct counters *counters));

/* Returns the number of buckets of a range. */
static inline size_t counters_of(const struct time_bucket_range *range)
{
	return (size_t)(range->last - range->first) + 1;
}

/* Returns the count of a bucket of the range of a single type; 0 if it has no counter. */
uint64_t counters_get(const struct counters *counters, int64_t bucket);

void counters_free(struct counters *counters);

#endif
