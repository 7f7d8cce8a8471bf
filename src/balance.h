/*
 * Which worker thread serves which client. Clients stay together in one thread while it has time for them: then their calls go
 * out in fewer writes, and what they add to one key in fewer appends. Only when a thread uses a whole core while others are idle
 * does it give half of its busy clients to another thread.
 */
#ifndef BALANCE_H
#define BALANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct worker;

/* Of one worker. All times are CLOCK_MONOTONIC milliseconds. */
struct balance {
	uint64_t began;             /* the window in which it measures itself */
	uint64_t cpu;               /* nanoseconds the thread had used then */
	uint64_t idle;              /* milliseconds in which cores were idle, ever, when that began; while it is full */
	bool full;                  /* in the window before */
	atomic_uint load;           /* percent of a core that it used in the window before */
	atomic_uint_fast64_t ended; /* when that ended */
};

/* The worker that a new client goes to. `turn` counts the clients; only where they are shared out evenly does it matter. */
struct worker *balance_choose(const struct daemon *daemon, uint64_t turn);

/* To be called in the thread of the worker, at each turn of its loop. */
void balance_turn(struct worker *worker);

#endif
