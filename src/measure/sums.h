/*
 * Statistics that only the memcached servers have, such as curr_items, summed over all servers.
 * The rows SUM of facts.def name them; worker/poll.h fetches them.
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
	/* When the servers answered, in milliseconds of a monotonic clock; 0: never. */
	uint64_t at;
	uint64_t values[SUMS];
};

#endif
