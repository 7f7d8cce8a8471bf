/*
 * Work is computation that takes long, so it is cut into slices. The first slice may be done
 * where the work arises. When work_is_over(), the rest is queued as the work of a payer,
 * usually a client. Payers with work are queued and charged for the time it takes; see
 * util/turns.h. A turn of the loop does at most two slices of work, so no client is delayed by
 * all the work of another.
 */
#ifndef NET_WORK_H
#define NET_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "util/turns.h"

struct payer;

/* A deferred job, to be embedded. It is not queued if all fields but `run` are zero. */
struct loop_job {
	TAILQ_ENTRY(loop_job) link;
	void (*run)(struct loop_job *job);
	uint64_t due;        /* In the time of loop.now, or one of enum job_due. */
	struct payer *payer; /* The payer of the work. */
};

enum job_due { JOB_NOT_QUEUED, JOB_THIS_TURN /* at its end */, JOB_WORK };

TAILQ_HEAD(loop_jobs, loop_job);

/* An account that pays for work, to be embedded. */
struct payer {
	struct turn turn;
	struct loop_jobs works; /* In the order of queueing. */
};

enum {
	WORK_SLICE_US = 1000, /* Length of a slice. */
	WORK_INPUT_US = 4000, /* Time for reading requests in one turn; the same for results. */
	WORK_GRAIN = 2048,    /* Steps of about 50 ns between two reads of the clock. */
	WORK_LONG_US = 20000, /* CPU time above which a turn counts as long. */
	WORK_LOOK_US = 1000   /* Least time between two reads of the CPU time. */
};

/* The work of a loop. Times are in microseconds. */
struct work {
	struct turns payers; /* Payers that have work. */
	struct payer own;    /* Pays for work that belongs to no client. */
	uint64_t slice_end;  /* When the slice is over. */
	uint64_t input_end;  /* When the time for reading requests is over. */
	uint64_t result_end; /* When the time for results of servers is over; 0 before the first. */
	size_t input_seen;   /* Bytes of requests since the last read of the clock. */
	uint64_t looked_at;  /* When the CPU time of the thread was last read. */
	uint64_t used;       /* CPU time at that moment. */
	uint64_t long_turns; /* Number of long turns. */
};

void work_init(struct work *work);

/* Starts a turn of the loop and its first slice. */
void work_begin_turn(struct work *work, uint64_t now_us);

/* Returns whether any work is queued. */
bool work_is_queued(const struct work *work);

/*
 * work_do() runs queued jobs for one slice. work_once() runs one job, however long it takes;
 * there must be one.
 */
void work_do(struct work *work);
void work_once(struct work *work);

/*
 * Queues a job as work of a payer, or of the loop itself if `payer` is NULL. It runs in the
 * payer's next slice, after the payer's earlier jobs. A job that is already queued keeps its
 * place. work_forget() removes it.
 */
void work_add(struct work *work, struct payer *payer, struct loop_job *job);
void work_forget(struct work *work, struct loop_job *job);

/* Returns whether the slice is over. Reads the clock, so call it once per WORK_GRAIN steps. */
bool work_is_over(const struct work *work);

/*
 * The same for reading requests, after `bytes` more bytes of requests were carried out. Does
 * not read the clock in each call.
 */
bool work_input_is_over(struct work *work, size_t bytes);

/*
 * The same for delivering results of servers, of which some were delivered. Reads the clock, so
 * call it once for many of them.
 */
bool work_results_are_over(struct work *work);

void payer_init(struct payer *payer);

/* Removes a payer. Its remaining work becomes the loop's own. */
void payer_leave(struct payer *payer, struct work *work);

#endif
