/*
 * Work is what takes the processor for long: it is cut into slices. The first one may be done where it arises. Whoever finds that
 * work_is_over queues the rest as the work of a payer, a client as a rule. Payers that have work stand in line, and pay for it with the
 * time that it takes, as util/turns.h says. So a turn of the loop does at most two slices of work, and nobody waits for all the work of
 * another.
 */
#ifndef NET_WORK_H
#define NET_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "util/turns.h"

struct payer;

/* Something to do later, to be embedded. With zeroes in all other fields than `run` it is not queued. */
struct loop_job {
	TAILQ_ENTRY(loop_job) link;
	void (*run)(struct loop_job *job);
	uint64_t due;        /* as loop.now; or of enum job_due */
	struct payer *payer; /* of the work */
};

enum job_due { JOB_NOT_QUEUED, JOB_THIS_TURN /* at its end */, JOB_WORK };

TAILQ_HEAD(loop_jobs, loop_job);

/* Who pays for work, to be embedded. */
struct payer {
	struct turn turn;
	struct loop_jobs works; /* in the order in which they were queued */
};

enum {
	WORK_SLICE_US = 1000, /* work that is done at once */
	WORK_INPUT_US = 4000, /* reading of requests in one turn */
	WORK_GRAIN = 2048,    /* steps of some 50 ns between two looks at the clock */
	WORK_LONG_US = 20000, /* of processor time: a turn that takes more of it is long */
	WORK_LOOK_US = 1000   /* between two looks at the processor time, at least */
};

/* The work of a loop. Times are microseconds. */
struct work {
	struct turns payers; /* those that have work */
	struct payer own;    /* pays for what no client pays for */
	uint64_t slice_end;  /* when work_is_over */
	uint64_t input_end;  /* when work_input_is_over */
	size_t input_seen;   /* bytes of requests since the last look at the clock */
	uint64_t looked_at;  /* when the processor time of the thread was read */
	uint64_t used;       /* that time */
	uint64_t long_turns; /* as many as were long */
};

void work_init(struct work *work);

/* A turn of the loop begins: its first slice does. */
void work_begin_turn(struct work *work, uint64_t now_us);

/* Whether any is queued. */
bool work_is_queued(const struct work *work);

/* Does a slice of what is queued. work_once: only one of them, whatever time it takes; requires that one is queued. */
void work_do(struct work *work);
void work_once(struct work *work);

/*
 * Queues a job as work of a payer, or of the loop itself with NULL. It runs in the next slice that its payer gets, behind the payer's
 * earlier works. A job that is queued already keeps its place. work_forget takes it out again.
 */
void work_add(struct work *work, struct payer *payer, struct loop_job *job);
void work_forget(struct work *work, struct loop_job *job);

/* Whether the slice is over. Reads the clock: ask after WORK_GRAIN steps. */
bool work_is_over(const struct work *work);

/* The same for the reading of requests, of which `bytes` more were carried out: reads the clock once in many. */
bool work_input_is_over(struct work *work, size_t bytes);

void payer_init(struct payer *payer);

/* The payer goes. What work it has left is that of the loop. */
void payer_leave(struct payer *payer, struct work *work);

#endif
