/*
 * Reads the counters of a range of buckets in parallel, with a limited number of calls in
 * flight, at most ORDER_EVENT_CALLS.
 */
#ifndef COMMAND_EVENT_COUNTERS_H
#define COMMAND_EVENT_COUNTERS_H

#include "collection/event/time_bucket.h"
#include "command/task.h"

struct counters {
	struct task *task;
	/* Called when all counters were read, or when the task's scratch contains an error line. */
	void (*done)(struct counters *counters);
	enum granularity bucket;
	struct time_bucket_range range;
	size_t count, asked, answered; /* Numbers of counters: in total, requested, and answered. */
	size_t size, key_size;         /* Bytes of the allocation at `all`, and of each key. */
	struct counter *all;           /* In the order of the buckets. */
};

/*
 * Starts reading for a task, which uses the memory until counters_free. `counters` must not
 * move until then; `type` is borrowed for the call. If the task is abandoned, reading ends
 * early as a failure.
 */
void counters_read(struct counters *counters, struct task *task, const struct event_rule *rule,
	struct slice type, struct time_bucket_range range, void (*done)(struct counters *counters));

/* Returns the count of a bucket of the range; 0 if it has no counter. */
uint64_t counters_get(const struct counters *counters, int64_t bucket);

void counters_free(struct counters *counters);

#endif
