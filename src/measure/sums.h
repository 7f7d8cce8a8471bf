/*
 * The statistics of memcached that only the servers know, such as curr_items: sums over all servers.
 * The rows SUM of facts.def name them. worker/poll.h asks the servers.
 */
#ifndef MEASURE_SUMS_H
#define MEASURE_SUMS_H

#include <stdint.h>

enum sum {
#define SUM(name) SUM_##name,
#include "measure/facts.def"
	SUMS
};

struct sums {
	uint64_t at; /* when the servers answered, in milliseconds of a monotonic clock; 0: never */
	uint64_t values[SUMS];
};

#endif
