#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_NAME_SIZE 32

/* What the kernel says of one process at one moment. */
struct process_sample {
	char name[PROCESS_NAME_SIZE];
	double cpu_us; /* user and system time of all of its threads */
	uint64_t rss_kb;
};

/* Reads process ${pid} into ${sample}; false when it is gone or unreadable. */
bool process_sample(pid_t pid, struct process_sample *sample) __attribute__((warn_unused_result));

/* User and system time of this process so far. */
double process_own_cpu_us(void);

#endif
