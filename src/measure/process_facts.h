/* What Prometheus wants to know of each process: CPU time, memory, file descriptors, the start. */
#ifndef MEASURE_PROCESS_FACTS_H
#define MEASURE_PROCESS_FACTS_H

#include <stdint.h>

#include "util/buf.h"

struct process_facts;

/* Opens what can no longer be opened once the user is switched. */
struct process_facts *process_facts_create(void);
void process_facts_destroy(struct process_facts *facts);

/* The memory of the process in bytes; 0 if it is not known. */
uint64_t process_facts_memory(void);

/* Appends the metrics process_...; `started` is Unix time. */
void process_facts_print(struct process_facts *facts, int64_t started, struct buf *out);

#endif
