#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "hist.h"
#include "options.h"
#include "process.h"
#include "workload.h"

#define ERROR_TEXT_SIZE 160

/* What was measured. */
struct result {
	double seconds;
	uint64_t requests; /* answered, errors included */
	uint64_t misses;
	uint64_t errors;
	uint64_t lost; /* still unanswered long after the end */
	char first_error[ERROR_TEXT_SIZE];
	struct hist latency;
	double own_cpu_us;
	struct process_sample before[MAX_PIDS];
	struct process_sample after[MAX_PIDS];
};

/*
 * Runs the requests of ${pool} as ${options} say. With options->requests equal to the pool's count,
 * each is sent exactly once. False, with a message on stderr, when the run could not be finished:
 * no connection, a connection lost, a wrong reply, no reply.
 */
bool engine_run(const struct options *options, struct pool *pool, struct result *result)
	__attribute__((warn_unused_result));

#endif
