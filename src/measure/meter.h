/*
 * All that a worker counts and measures of the requests of its clients. The worker's thread writes to it, and other threads read it.
 *
 * The latency of a request is the time from its start to the moment when its reply is complete. If it had to wait for its turn or for
 * earlier ones of its connection, that counts too. Times are those of the loop, which reads its clock once a turn. So requests that
 * began in one turn and are answered in another one took equally long. They are counted together, at the end of the turn.
 * A command that is refused at once, as when its server is down, has no latency: otherwise latencies would fall when a server fails.
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
#define LANES(name, ...) COUNT_##name,
#define HELD(name, ...) COUNT_##name,
#include "measure/facts.def"
	COUNTERS
};

/* A class of commands has the number of its counter. COUNT_cmd_refused counts what is no command. */
enum { LATENCY_CLASSES = COUNT_cmd_refused + 1 };

struct meter {
	struct loop *loop;
	struct pipeline_answer answer; /* whose reply is read: the pipelines of all servers set it */
	atomic_uint_fast64_t counters[COUNTERS];
	struct histogram latencies[LATENCY_CLASSES];
	uint64_t slow_us;              /* a request that takes so many microseconds is slow; UINT64_MAX: none */
	uint64_t began, took;          /* of those requests that are not counted yet; microseconds */
	uint64_t waiting;              /* their number */
	const struct command *command; /* theirs; or NULL */
	struct loop_job job;           /* counts them at the end of the turn */
	struct notes notes;
	struct rule_counts rules;
	/* For other threads, with daemon.lock: */
	uint64_t counters_before[COUNTERS]; /* as they were at the last `stats reset` */
	struct servers *servers;            /* those of the worker's current generation */
	uint64_t ring, former;              /* the fingerprints of where keys are, and were; 0 for none */
	uint64_t move_at;                   /* when they move, in seconds of Unix time; 0 if none do */
	uint64_t max_connections;           /* of the worker's configuration */
	struct sums sums; /* the servers' statistics as this worker last got them; the newest of all workers are used */
};

/* Borrows the loop until meter_fini. `random` is any number that clients do not know. All other members must be zero. */
void meter_init(struct meter *meter, struct loop *loop, uint64_t random);
void meter_fini(struct meter *meter);
/* Requests that take so many milliseconds are slow; 0 for none. */
void meter_set_threshold(struct meter *meter, uint64_t ms);

/* From any thread. */
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

extern const unsigned char meter_classes[]; /* the counter of each command's class */

static inline enum counter meter_class(command_id id)
{
	return (enum counter)meter_classes[id];
}

extern const unsigned char meter_keys[]; /* for each command, the counter of KEYS that counts its keys; 0 for none */

/* Counts the key of an `mg`, as a touch if it has the flag T. */
void meter_count_meta(struct meter *meter, const struct request *request);

/* A request begins. */
static inline void meter_request(struct meter *meter, const struct request *request)
{
	command_id id = request->command->id;

	meter_count(meter, meter_class(id), 1);
	if (meter_keys[id])
		meter_count(meter, (enum counter)meter_keys[id], request->keys ? request->keys : 1);
	else if (meter_class(id) == COUNT_cmd_meta)
		meter_count_meta(meter, request);
}

/* Counts the requests that wait for the end of the turn. */
void meter_flush(struct meter *meter);

/* The clock was read. */
static inline void meter_turn(struct meter *meter)
{
	if (meter->waiting)
		meter_flush(meter);
}

/* For meter_task_done: the task is not like the last ones, or it is slow or untimed. */
bool meter_other_done(struct meter *meter, const struct task *task);

/* Whether the task was refused without a call: in the turn in which it began. */
static inline bool meter_is_untimed(const struct meter *meter, const struct task *task)
{
	return (task->sent.refused || meter->loop->turn.answering) && task->sent.command &&
		task->began == meter->loop->now_us;
}

/* A task is done. Gives whether it is to be noted as slow: then call meter_note_slow. */
static inline bool meter_task_done(struct meter *meter, const struct task *task)
{
	if (meter->began != task->began || meter->command != task->sent.command || meter_is_untimed(meter, task))
		return meter_other_done(meter, task);
	meter->waiting++;
	return false;
}

/*
 * Notes a slow task. `client` is the name of its client, "" if the client is gone. Replies have waited `on_client` microseconds for the
 * client to take them.
 */
void meter_note_slow(struct meter *meter, const struct task *task, const char *client, uint64_t on_client);

/* A reply of `bytes` bytes is complete. Counts those keys of its request that are sampled. */
static inline void meter_sample_keys(struct meter *meter, const struct task *task, size_t bytes)
{
	if (!topk_sample_passes(&meter->notes.sample, task->keys.count))
		notes_sample_keys(
			&meter->notes, task->keys.list, task->keys.count, bytes + task->sent.bytes, meter->loop->now);
}

#endif
