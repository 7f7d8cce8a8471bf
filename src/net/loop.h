/*
 * The event loop of a thread. One turn does, in this order:
 *
 *     ready I/O -> timed jobs that are due -> a slice of work -> jobs of this turn
 *                       -> one write for each dirty server -> one write for each dirty client
 *
 * turn.end is called after the jobs of this turn, repeatedly while it queues more of them,
 * and again after the writes.
 *
 * Thus all calls of a turn are sent to a server in one write, and so are all replies to a
 * client.
 *
 * A client that receives few replies at a time sends few requests at a time from then on.
 * Therefore a stream that expects more output is held for one turn or, while LOOP_BUSY calls
 * are unanswered, for up to LOOP_PATIENCE_MS. An idle turn writes everything.
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
	uint64_t now;      /* Monotonic clock in milliseconds, read once per turn. */
	int64_t unix_time; /* Unix time in seconds, read once per turn. */
	bool fresh;        /* The clocks were read in this turn. */
	bool stopping;
	struct loop_jobs jobs;  /* Jobs of this turn, in the order in which they were queued. */
	struct loop_jobs timed; /* Jobs of later turns, ordered by due time. */
	struct event *timer;    /* Timer for the first timed job. */
	struct work work;
	TAILQ_HEAD(stream_list, stream) dirty[LOOP_RANKS];
	struct stream_list held; /* Dirty streams that are held back until there is more output. */
	struct {
		struct stream_list line; /* Queue of streams with a handshake step to do. */
		struct loop_job job;     /* Does these steps. */
	} handshakes;                    /* TLS handshakes with clients. */
	struct loop_job patience;        /* Timer; writes all held streams when it expires. */
	bool impatient;                  /* The timer `patience` has expired. */
	size_t awaited;                  /* Number of unanswered calls to all servers. */
	struct {
		struct buf at[LOOP_SPARES];
		size_t count;
	} spares;        /* Empty buffers, reused for the output of streams. */
	uint64_t now_us; /* `now` in microseconds. */
	/*
	 * Bytes of shared texts that are counted more than once, since several streams hold
	 * them.
	 */
	size_t shared_again;
	char *scratch; /* LOOP_SCRATCH bytes, into which sockets are read. */
	struct {
		/* Called after the clocks were read in a turn; may be NULL. */
		void (*begin)(void *arg);
		/* Called before and after the writes of a turn. May queue jobs. May be NULL. */
		void (*end)(void *arg);
		void *arg;
		/* The result being delivered is from loop_answer(), not from a server. */
		bool answering;
	} turn;
};

void loop_init(struct loop *loop);
/* Frees the loop. All streams must be closed. */
void loop_fini(struct loop *loop);

/* Runs until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Reads the clocks, once per turn. Each libevent callback calls this first. */
void loop_enter(struct loop *loop);

/*
 * Returns the current monotonic time in milliseconds. loop.now may be older, since a turn may
 * take long.
 */
uint64_t loop_clock(void);
/* Returns a time by this clock that is not before now, and up to 11 ms after it; takes less. */
uint64_t loop_clock_not_before(void);

/*
 * Deferred jobs. A job runs once, and never within the call that queues it. It may queue itself
 * or other jobs, and may be freed while it runs.
 *
 *     loop_later   Runs the job at the end of this turn, before any write, in the order of
 *                  queueing. A job that is queued by such a job runs in the same turn. A job that
 *                  is already queued keeps its place.
 *     loop_after   Runs the job in a later turn, after `ms` milliseconds and after the I/O that is
 *                  ready then. Even with 0 there is I/O between two runs of a job that requeues
 *                  itself. Jobs run in the order of their due times, then of queueing. A job that
 *                  is already queued is rescheduled.
 *     loop_answer  As loop_later; delivers a copy of the result to the waiter.
 *     loop_wake    As loop_after; delivers an empty result to the waiter.
 */
void loop_later(struct loop *loop, struct loop_job *job);
void loop_after(struct loop *loop, struct loop_job *job, uint64_t ms);
void loop_answer(struct loop *loop, struct waiter *waiter, const struct result *result);
void loop_wake(struct loop *loop, struct waiter *waiter, uint64_t ms);

/* Delivers an empty result to the waiter in the next slice of the payer; see work_add(). */
void loop_wake_in_turn(struct loop *loop, struct payer *payer, struct waiter *waiter);

/* Removes a job from its queue. Does nothing if it is not queued. */
void loop_forget(struct loop *loop, struct loop_job *job);

/*
 * Runs all queued jobs, whatever their due times, until none is left. Used at exit, after
 * loop_run().
 */
void loop_finish(struct loop *loop);

static inline bool loop_is_queued(const struct loop_job *job)
{
	return job->due;
}

#endif
