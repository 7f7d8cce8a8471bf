/*
 * One thread's event loop. Each turn handles what is ready; at its end come what was put off, then one write for each server
 * and one for each client that something was left for. That is where the batching of the proxy comes from.
 *
 * A server's replies come in pieces, and a client that is given a few of its replies at a time asks for a few at a time from
 * then on. So a stream that will have more to write soon is held back: until that has come, while the servers are busy, but for
 * a millisecond or two at most; else for one turn, unless nothing is ready in that.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "util/buf.h"

struct event;
struct event_base;
struct stream;

/* Something to do at the end of the turn, embedded in whatever it is about. */
struct loop_job {
	STAILQ_ENTRY(loop_job) link;
	void (*run)(struct loop_job *job);
	bool queued;
};

enum { LOOP_SCRATCH = 256 * 1024, LOOP_SPARES = 64, LOOP_BUSY = 64, LOOP_PATIENCE_MS = 1 };

/* Who is written to first at the end of a turn. */
enum loop_rank { LOOP_SERVERS, LOOP_CLIENTS, LOOP_RANKS };

struct loop {
	struct event_base *base;
	uint64_t now;      /* milliseconds, monotonic */
	int64_t unix_time; /* seconds */
	bool fresh;        /* the times are of this turn */
	bool stopping;
	STAILQ_HEAD(, loop_job) jobs;
	TAILQ_HEAD(stream_list, stream) dirty[LOOP_RANKS];
	struct stream_list held;        /* dirty ones that wait for more */
	struct event *patience;         /* when all that is held is written, whatever has come by then */
	bool impatient;                 /* it is that time */
	size_t awaited;                 /* replies that servers still have to give */
	struct buf spares[LOOP_SPARES]; /* for streams that have something to write */
	size_t spare_count;
	char *scratch; /* LOOP_SCRATCH bytes for whoever reads a socket */
	void (*turn)(
		struct loop *loop, void *arg); /* called at the beginning of a turn's work, when the time is known */
	void *turn_arg;
};

void loop_init(struct loop *loop);
void loop_fini(struct loop *loop);

/* Runs until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Every callback of libevent calls this first: it reads the clocks once a turn. */
void loop_enter(struct loop *loop);

/* Has the job run at the end of this turn; a job that is queued already stays queued once. */
void loop_later(struct loop *loop, struct loop_job *job);
/* Takes a job back. */
void loop_forget(struct loop *loop, struct loop_job *job);

#endif
