/* The counters of a worker. Its thread counts, and any thread may read. */
#ifndef MEASURE_COUNTERS_H
#define MEASURE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

enum counter {
#define COUNTER(name) COUNT_##name,
#include "measure/counters.def"
#undef COUNTER
	COUNTERS
};

/* All zeroes is the start. */
struct counters {
	atomic_uint_fast64_t values[COUNTERS];
};

static inline uint64_t counters_get(const struct counters *counters, enum counter counter)
{
	return atomic_load_explicit(&counters->values[counter], memory_order_relaxed);
}

/* From the worker's thread only, as counters_add. */
static inline void counters_set(struct counters *counters, enum counter counter, uint64_t value)
{
	atomic_store_explicit(&counters->values[counter], value, memory_order_relaxed);
}

/* There is one writer, so no atomic addition is needed. */
static inline void counters_add(struct counters *counters, enum counter counter, uint64_t n)
{
	counters_set(counters, counter, counters_get(counters, counter) + n);
}

#endif
