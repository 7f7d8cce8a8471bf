/* The counters of a range of buckets, read in parallel: up to ORDER_EVENT_CALLS calls at a time. */
#ifndef COMMAND_EVENT_COUNTERS_H
#define COMMAND_EVENT_COUNTERS_H

#include "collection/event/time_bucket.h"
#include "command/task.h"

struct counters {
	struct task *task;
	void (*done)(struct counters *counters); /* all are read, or the task's scratch has an error line */
	enum granularity bucket;
	struct time_bucket_range range;
	size_t count, asked, answered; /* counters: to read, and of these asked for and answered */
	size_t size, key_size;         /* bytes of the memory at `all`, and of each key */
	struct counter *all;           /* in the order of their buckets */
};

/*
 * Starts to read for a task, which uses the memory until counters_free. `counters` must not move until then; `type` is borrowed for
 * the call. If the task is abandoned, this ends early, as a failure.
 */
void counters_read(struct counters *counters, struct task *task, const struct event_rule *rule, struct slice type,
	struct time_bucket_range range, void (*done)(struct counters *counters));

/* The count of a bucket of the range; 0 if it has no counter. */
uint64_t counters_get(const struct counters *counters, int64_t bucket);

void counters_free(struct counters *counters);

#endif
