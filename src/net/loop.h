/*
 * The event loop of a thread. A turn does, in this order:
 *
 *     ready I/O -> jobs that are due -> a slice of work -> jobs of this turn -> one write for each dirty server
 *                                                                            -> one write for each dirty client
 *
 * turn.settle is called after the jobs of this turn, as long as that queues more of them, and after the writes.
 *
 * So all calls of a turn go to a server in one write, and so do all replies to a client.
 *
 * A client that gets few replies at a time sends few requests at a time from then on. Therefore a stream that expects more to
 * write is held: for one turn, or, while LOOP_BUSY calls are unanswered, up to LOOP_PATIENCE_MS. An idle turn writes all.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/work.h"
#include "util/buf.h"

struct event;
struct event_base;
struct result;
struct stream;
struct waiter;

enum { LOOP_SCRATCH = 256 * 1024, LOOP_SPARES = 64, LOOP_BUSY = 64, LOOP_PATIENCE_MS = 1 };

/* The order of the writes at the end of a turn. */
enum loop_rank { LOOP_SERVERS, LOOP_CLIENTS, LOOP_RANKS };

struct loop {
	struct event_base *base;
	uint64_t now;      /* milliseconds, monotonic */
	int64_t unix_time; /* seconds */
	bool fresh;        /* the times were read in this turn */
	bool stopping;
	struct loop_jobs jobs;  /* of this turn, in the order in which they were queued */
	struct loop_jobs timed; /* in the order of their times */
	struct event *timer;    /* for the first of them */
	struct work work;
	TAILQ_HEAD(stream_list, stream) dirty[LOOP_RANKS];
	struct stream_list held; /* dirty streams that wait for more */
	struct {
		struct stream_list line; /* streams with a step to take */
		struct loop_job job;     /* takes these steps */
	} handshakes;                    /* of TLS with clients */
	struct loop_job patience;        /* a timer: all held streams are written when it runs */
	bool impatient;                  /* it has run */
	size_t awaited;                  /* unanswered calls to all servers */
	struct {
		struct buf at[LOOP_SPARES];
		size_t count;
	} spares;            /* empty buffers for streams to write to */
	uint64_t now_us;     /* `now` in microseconds */
	size_t shared_again; /* bytes of shared texts that a stream waits to write beside another */
	char *scratch;       /* LOOP_SCRATCH bytes to read sockets into */
	struct {
		void (*begin)(void *arg);  /* when a turn has read the clocks; or NULL */
		void (*settle)(void *arg); /* before and after the writes of a turn; it may queue jobs; or NULL */
		void *arg;
		bool answering; /* a waiter gets its result from loop_answer, not from a server */
	} turn;
};

void loop_init(struct loop *loop);
/* All streams must be closed. */
void loop_fini(struct loop *loop);

/* Runs until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Reads the clocks, once per turn. Each callback of libevent calls this first. */
void loop_enter(struct loop *loop);

/* The time as loop.now counts it, but at this moment: a turn may take long. */
uint64_t loop_clock(void);

/*
 * Things to do later. A job runs once, and never within the call that queues it. It may queue others or itself, and may be freed by
 * its own run.
 *
 *     loop_later     at the end of this turn, before anything is written, in the order in which jobs were queued. A job that
 *                    a job queues for the end of the turn runs in the same turn. A job that is queued already keeps its place.
 *     loop_after     in a later turn, once `ms` milliseconds have passed, after the I/O that is ready then: so with 0 there is
 *                    I/O between two runs of a job that queues itself. In the order of their times, and of queueing if these
 *                    are the same. A job that is queued already gets the new time.
 *     loop_answer    as loop_later: the waiter gets the result, of which a copy is kept.
 *     loop_wake      as loop_after: the waiter gets an empty result.
 */
void loop_later(struct loop *loop, struct loop_job *job);
void loop_after(struct loop *loop, struct loop_job *job, uint64_t ms);
void loop_answer(struct loop *loop, struct waiter *waiter, const struct result *result);
void loop_wake(struct loop *loop, struct waiter *waiter, uint64_t ms);

/* As work_add: the waiter gets an empty result in the next slice of the payer. */
void loop_wake_in_turn(struct loop *loop, struct payer *payer, struct waiter *waiter);

/* Removes a job from its queue, if it is queued. */
void loop_forget(struct loop *loop, struct loop_job *job);

/* Runs all that is queued, whatever its time, until nothing is left. For the exit, after loop_run. */
void loop_finish(struct loop *loop);

static inline bool loop_is_queued(const struct loop_job *job)
{
	return job->due;
}

#endif
