/*
 * Counts and measures the requests of a worker. Written by its thread, read by other threads.
 *
 * The latency of a request is the time from its start to its complete reply, including the time
 * it was queued. It is measured with the loop's clock, which is read once a turn, so requests
 * that began in one turn and are answered in another one have the same latency and are counted
 * together. A command that is refused at once, as when its server is down, has no latency:
 * otherwise latencies would fall when a server fails.
 */
#ifndef MEASURE_METER_H
#define MEASURE_METER_H

#include <stdbool.h>

#include "command/task.h"
#include "measure/notes.h"
#include "measure/rule_counts.h"
#include "measure/sums.h"
#include "net/loop.h"
#include "upstream/pipeline.h"
#include "util/histogram.h"

struct servers;

enum counter {
#define CLASS(name, stats) COUNT_cmd_##name,
#define KEYS(name) COUNT_keys_##name,
#define LOOKUP(name, ...) COUNT_##name,
#define COUNTER(name, ...) COUNT_##name,
#define MOVES(name, ...) COUNT_##name,
#define COPIES(name, ...) COUNT_##name,
#define LANES(name, ...) COUNT_##name,
#define HELD(name, ...) COUNT_##name,
#include "measure/facts.def"
	COUNTERS
};

/* A class has the number of its counter. COUNT_cmd_refused counts requests without a command. */
enum { LATENCY_CLASSES = COUNT_cmd_refused + 1 };

struct meter {
	struct loop *loop;
	struct pipeline_answer answer; /* The call being answered; set by all pipelines. */
	atomic_uint_fast64_t counters[COUNTERS];
	struct histogram latencies[LATENCY_CLASSES];
	uint64_t slow_us;              /* Microseconds of a slow request; UINT64_MAX for none. */
	uint64_t began, took;          /* Of requests not counted yet: start, latency (us). */
	uint64_t waiting;              /* Their number. */
	const struct command *command; /* Their command, or NULL. */
	struct loop_job job;           /* Counts them at the end of the turn. */
	struct notes notes;
	struct rule_counts rules;
	/* For other threads, protected by daemon.lock: */
	uint64_t counters_before[COUNTERS]; /* Values at the last `stats reset`. */
	struct servers *servers;            /* Servers of the worker's current generation. */
	uint64_t ring, former;              /* Fingerprints of the rings; 0 for none. */
	uint64_t move_at;                   /* When keys move, in Unix time; 0 if none do. */
	uint64_t max_connections;           /* max_connections in the worker's configuration. */
	/* Statistics of the servers that this worker fetched last; the newest of all are used. */
	struct sums sums;
};

/* Borrows the loop until meter_fini(). `random` is unknown to clients. All else must be zero. */
void meter_init(struct meter *meter, struct loop *loop, uint64_t random);
void meter_fini(struct meter *meter);
/* Sets the milliseconds from which on requests are slow; 0 for none. */
void meter_set_threshold(struct meter *meter, uint64_t ms);

/* Returns a counter. May be called from any thread. */
static inline uint64_t meter_get(const struct meter *meter, enum counter counter)
{
	return atomic_load_explicit(&meter->counters[counter], memory_order_relaxed);
}

static inline void meter_set(struct meter *meter, enum counter counter, uint64_t value)
{
	atomic_store_explicit(&meter->counters[counter], value, memory_order_relaxed);
}

/* Adds `n` to a counter. There is one writer, so no atomic addition is needed. */
static inline void meter_count(struct meter *meter, enum counter counter, uint64_t n)
{
	meter_set(meter, counter, meter_get(meter, counter) + n);
}

extern const unsigned char meter_classes[]; /* The counter of each command's class. */

static inline enum counter meter_class(command_id id)
{
	return (enum counter)meter_classes[id];
}

/* For each command, the counter of KEYS that counts its keys; 0 for none. */
extern const unsigned char meter_keys[];

/* Counts the key of an `mg`, as a touch if it has the flag T. */
void meter_count_meta(struct meter *meter, const struct request *request);

/* Counts a request that begins, and its keys. */
static inline void meter_request(struct meter *meter, const struct request *request)
{
	command_id id = request->command->id;

	meter_count(meter, meter_class(id), 1);
	if (meter_keys[id])
		meter_count(meter, (enum counter)meter_keys[id], request->keys ? request->keys : 1);
	else if (meter_class(id) == COUNT_cmd_meta)
		meter_count_meta(meter, request);
}

/* Counts the requests that were collected for the end of the turn. */
void meter_flush(struct meter *meter);

/* Called after the clock was read. */
static inline void meter_turn(struct meter *meter)
{
	if (meter->waiting)
		meter_flush(meter);
}

/* Slow path of meter_task_done(): another command or start, or a slow or untimed task. */
bool meter_other_done(struct meter *meter, const struct task *task);

/* Returns whether the task was refused without a call, in the turn in which it began. */
static inline bool meter_is_untimed(const struct meter *meter, const struct task *task)
{
	return (task->sent.refused || meter->loop->turn.answering) && task->sent.command &&
		task->sent.started == (uint32_t)meter->loop->now_us;
}

/* Counts a completed task. Returns whether it is slow; meter_note_slow() must then be called. */
static inline bool meter_task_done(struct meter *meter, const struct task *task)
{
	if (meter->began != task->began || meter->command != task->sent.command ||
		meter_is_untimed(meter, task))
		return meter_other_done(meter, task);
	meter->waiting++;
	return false;
}

/* Records a slow task of `client` ("" if gone), whose replies were pending `on_client` us. */
void meter_note_slow(
	struct meter *meter, const struct task *task, const char *client, uint64_t on_client);

/* Counts the sampled keys of a request, whose reply has `bytes` bytes. */
static inline void meter_sample_keys(struct meter *meter, const struct task *task, size_t bytes)
{
	if (!topk_sample_passes(&meter->notes.sample, task->keys.count))
		notes_sample_keys(&meter->notes, task->keys.list, task->keys.count,
			bytes + task->sent.bytes, meter->loop->now);
}

#endif
