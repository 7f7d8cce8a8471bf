/*
 * Which worker serves which client. One thread serves as many clients as it can, since it combines their calls to fewer writes,
 * and their appends to a key to fewer calls. A thread hands half of its busy clients to the least loaded one, but only if its load
 * reaches thread_load and other cores are idle.
 */
#ifndef WORKER_BALANCE_H
#define WORKER_BALANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Of one worker, which measures its load in windows of 100 ms. All zeroes at first. The workers of a daemon share an array of these, and
 * a number is that of a worker there. Times are CLOCK_MONOTONIC milliseconds.
 */
struct balance {
	uint64_t began;             /* the beginning of this window */
	uint64_t cpu;               /* CPU time of the thread at that time, in microseconds */
	uint64_t idle;              /* idle time of all cores at that time, in milliseconds; if `full` */
	uint64_t turn;              /* the number of clients that balance_choose has given a worker */
	bool full;                  /* the last window was full: its load reached thread_load */
	atomic_uint load;           /* percent of a core used in the last window */
	atomic_uint_fast64_t ended; /* the end of the last window */
};

/*
 * The worker for a new client, which worker `own` has accepted. From the thread of `own` only. If `limit`, which is thread_load, is
 * 0, clients are shared out evenly.
 */
size_t balance_choose(struct balance *all, size_t count, size_t own, uint64_t limit, uint64_t now);

/*
 * Measures the load of worker `own`. Its thread calls this in each turn of its loop. Gives true at the end of a full window: then the
 * worker gives half of its busy clients to worker `to`, if that is another one, and watches from now on which clients are busy.
 */
bool balance_turn(struct balance *all, size_t count, size_t own, uint64_t limit, uint64_t now, size_t *to);

#endif
