#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_NUMBERS 256

struct numbers {
	uint64_t list[MAX_NUMBERS];
	size_t count;
};

struct options {
	const char *host;
	const char *socket;   /* the path of a Unix socket, instead of host and ports; or NULL */
	struct numbers ports; /* connections take turns */
	struct workload workload;
	size_t conns;
	size_t depth;
	size_t batch;
	double seconds;
	double warmup;
	uint64_t requests; /* 0: run for ${seconds} */
	double rate;       /* 0: closed loop */
	bool prefill;
	bool tls;
	bool reconnect; /* a connection for each request */
	bool json;
	struct numbers pids;
};

/*
 * Fills ${options} from the command line. Exits with a message if it is invalid or asks for help.
 */
void options_parse(struct options *options, int argc, char **argv);

#endif
