/*
 * Which worker serves which client. One thread serves as many clients as it can, since it combines their calls to fewer writes,
 * and their appends to a key to fewer calls. A thread hands half of its busy clients to the least loaded one, but only if its load
 * reaches thread_load and other cores are idle.
 */
#ifndef WORKER_BALANCE_H
#define WORKER_BALANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct worker;

/* A worker measures its load in windows of 100 ms. Times are CLOCK_MONOTONIC milliseconds. */
struct balance {
	uint64_t began;             /* the beginning of this window */
	uint64_t cpu;               /* CPU time of the thread at that time, in nanoseconds */
	uint64_t idle;              /* idle time of all cores at that time, in milliseconds; if `full` */
	uint64_t turn;              /* the number of clients that balance_choose has given a worker */
	bool full;                  /* the last window was full: its load reached thread_load */
	atomic_uint load;           /* percent of a core used in the last window */
	atomic_uint_fast64_t ended; /* the end of the last window */
};

/* The worker for a new client, which `worker` has accepted. From its thread only. If thread_load is 0, they are shared out evenly. */
struct worker *balance_choose(struct worker *worker);

/* Measures the load, and may hand over clients. The worker's thread calls it in each turn of its loop. */
void balance_turn(struct worker *worker);

#endif
