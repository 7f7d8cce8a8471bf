/*
 * All that a worker counts and measures of the requests of its clients. Only the worker's thread writes to it. Other threads read the
 * parts as the header of each part says.
 */
#ifndef MEASURE_METER_H
#define MEASURE_METER_H

#include "command/task.h"
#include "measure/counters.h"
#include "measure/hotkeys.h"
#include "measure/largest.h"
#include "measure/latency.h"
#include "measure/slow.h"
#include "upstream/pipeline.h"

struct meter {
	struct loop *loop;
	struct pipeline_answer answer; /* whose reply is read: the pipelines of all servers set it */
	struct latency latency;
	struct hotkeys hotkeys;
	struct largest largest;
	struct slow slow;
	struct counters counters;
};

/* Borrows the loop until meter_fini. `random` is any number that clients do not know. All other members must be zero. */
void meter_init(struct meter *meter, struct loop *loop, uint64_t random);
void meter_fini(struct meter *meter);

/* Requests that take so many milliseconds are slow; 0 for none. */
void meter_set_threshold(struct meter *meter, uint64_t ms);

/* Adds `n` to a counter. */
static inline void meter_count(struct meter *meter, enum counter counter, uint64_t n)
{
	counters_add(&meter->counters, counter, n);
}

/* A task is done. Gives whether it was so slow that meter_note_slow is to be called. */
static inline bool meter_task_done(struct meter *meter, const struct task *task)
{
	return latency_count(&meter->latency, task->command, task->began) &&
		slow_has_room(&meter->slow, meter->loop->now_us);
}

/*
 * Notes a slow task. `client` is the name of its client, "" if the client is gone. Replies of the client have waited for the client to
 * take them for `on_client` microseconds.
 */
void meter_note_slow(struct meter *meter, const struct task *task, const char *client, uint64_t on_client);

/* A reply of `bytes` bytes is complete. Counts those keys of its request that are sampled. */
static inline void meter_sample_keys(struct meter *meter, const struct task *task, size_t bytes)
{
	if (!hotkeys_pass(&meter->hotkeys, task->key_count))
		hotkeys_sample(&meter->hotkeys, task->keys, task->key_count, bytes + task->taken, meter->loop->now);
}

#endif
