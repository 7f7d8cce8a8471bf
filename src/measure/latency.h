/*
 * How long the requests of a worker took, for each class of commands: from the start of a request to the moment when its reply is
 * complete. If the request had to wait for its turn or for earlier ones of its connection, that counts too.
 *
 * Times are those of the loop, which reads its clock once a turn. So requests that began in one turn and are answered in another
 * one took equally long. They are counted together, at the end of the turn.
 */
#ifndef MEASURE_LATENCY_H
#define MEASURE_LATENCY_H

#include <stdbool.h>

#include "measure/counters.h"
#include "net/loop.h"
#include "protocol/command.h"
#include "util/histogram.h"
#include "worker/daemon.h"

/* The classes are the counters from COUNT_cmd_get to COUNT_cmd_refused, which is of what is no command. */
enum { LATENCY_CLASSES = COUNT_cmd_refused + 1 };

struct latency {
	struct histogram classes[LATENCY_CLASSES];
	struct loop *loop;
	uint64_t slow;                 /* microseconds from which on a request is slow; UINT64_MAX for never */
	uint64_t began, took;          /* of those that are not counted yet; microseconds */
	uint64_t waiting;              /* their number */
	const struct command *command; /* theirs; or NULL */
	struct loop_job job;
};

void latency_init(struct latency *latency, struct loop *loop);

/* Requests that take so many milliseconds are slow; 0 for none. */
void latency_set_threshold(struct latency *latency, uint64_t ms);

/* Counts those that wait. */
void latency_flush(struct latency *latency);

/* The clock was read. */
static inline void latency_turn(struct latency *latency)
{
	if (latency->waiting)
		latency_flush(latency);
}

/* For latency_count: the request is not like the last ones, or it is slow. */
bool latency_count_other(struct latency *latency, const struct command *command, uint64_t began);

/* The class of a command. */
static inline unsigned latency_class(enum command_id id)
{
	static const unsigned char classes[COMMAND_COUNT] = {
#define COMMAND(id, name, grammar, start, order, counter, ...) [COMMAND_##id] = COUNT_cmd_##counter,
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
	};

	return classes[id];
}

/* A request that began at this microsecond of the loop is answered; `command` may be NULL. Gives whether it was slow. */
static inline bool latency_count(struct latency *latency, const struct command *command, uint64_t began)
{
	if (latency->began != began || latency->command != command)
		return latency_count_other(latency, command, began);
	latency->waiting++;
	return false;
}

#endif
