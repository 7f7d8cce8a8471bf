/*
 * Assigns clients to workers. One thread serves as many clients as it can, since it combines
 * their calls into fewer writes, and their appends to a key into fewer calls. A thread hands
 * half of its busy clients to the least loaded one, but only if its load reaches thread_load
 * and other cores are idle.
 */
#ifndef WORKER_BALANCE_H
#define WORKER_BALANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The load of one worker, measured in windows of 100 ms. Initially all zeroes. The workers of a
 * daemon share an array of these, indexed by the worker's number. Times are CLOCK_MONOTONIC
 * milliseconds.
 */
struct balance {
	uint64_t began; /* Start of this window. */
	uint64_t cpu;   /* CPU time of the thread at that time, in microseconds. */
	/* Idle time of all cores at that time, in milliseconds; valid if `full`. */
	uint64_t idle;
	/* Number of clients that balance_choose() has assigned in turn. */
	uint64_t turn;
	bool full;                  /* The load reached thread_load in the last window. */
	atomic_uint load;           /* Percent of a core used in the last window. */
	atomic_uint_fast64_t ended; /* End of the last window. */
};

/*
 * Returns the worker for a new client that worker `own` has accepted. Called only in the thread
 * of `own`. If `limit`, which is thread_load, is 0, clients are distributed round robin.
 */
size_t balance_choose(struct balance *all, size_t count, size_t own, uint64_t limit, uint64_t now);

/*
 * Measures the load of worker `own`, whose thread calls this in each turn of its loop. Returns
 * true at the end of a window whose load reached the limit. The worker then hands half of its
 * busy clients to worker `to`, if that is another one, and starts to observe which clients are
 * busy.
 */
bool balance_turn(
	struct balance *all, size_t count, size_t own, uint64_t limit, uint64_t now, size_t *to);

#endif
