#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "hist.h"
#include "options.h"
#include "workload.h"

#define ERROR_TEXT_SIZE 160

/* The kernel's statistics of one process. */
struct process {
	char name[32];
	double cpu_us; /* user and system time of all of its threads during the measurement */
	unsigned long long rss_kb;
};

/* The measured values. */
struct result {
	double seconds;
	uint64_t requests; /* replies, including errors */
	uint64_t misses;
	uint64_t errors;
	uint64_t lost; /* still unanswered long after the end */
	char first_error[ERROR_TEXT_SIZE];
	struct hist latency;
	double own_cpu_us;
	struct process processes[MAX_NUMBERS]; /* of options->pids */
};

/*
 * Runs the requests of ${pool} according to ${options}. With options->requests equal to the pool's
 * count, each is sent exactly once. Exits with a message if the run cannot be completed: no
 * connection, a lost connection, a wrong reply, no reply.
 */
void engine_run(const struct options *options, struct pool *pool, struct result *result);

#endif
