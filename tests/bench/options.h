#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_PIDS 256
#define MAX_PORTS 32

struct options {
	const char *host;
	const char *socket;        /* the path of a Unix socket, in place of host and ports; or NULL */
	uint16_t ports[MAX_PORTS]; /* connections take turns */
	size_t port_count;
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
	pid_t pids[MAX_PIDS];
	size_t pid_count;
};

/* Fills ${options} from the command line; exits with a message when it is wrong or asks for help.
 */
void options_parse(struct options *options, int argc, char **argv);

#endif
