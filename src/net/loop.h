/*
 * The event loop of a thread. A turn does, in this order:
 *
 *     ready events -> jobs -> one write for each dirty server -> one write for each dirty client
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

#include "util/buf.h"

struct event;
struct event_base;
struct stream;

/* A callback at the end of the turn, to be embedded. */
struct loop_job {
	STAILQ_ENTRY(loop_job) link;
	void (*run)(struct loop_job *job);
	bool queued;
};

enum { LOOP_SCRATCH = 256 * 1024, LOOP_SPARES = 64, LOOP_BUSY = 64, LOOP_PATIENCE_MS = 1 };

/* The order of the writes at the end of a turn. */
enum loop_rank { LOOP_SERVERS, LOOP_CLIENTS, LOOP_RANKS };

struct loop {
	struct event_base *base;
	uint64_t now;      /* milliseconds, monotonic */
	int64_t unix_time; /* seconds */
	bool fresh;        /* the times were read in this turn */
	bool stopping;
	STAILQ_HEAD(, loop_job) jobs;
	TAILQ_HEAD(stream_list, stream) dirty[LOOP_RANKS];
	struct stream_list held;        /* dirty streams that wait for more */
	struct event *patience;         /* a timer: all held streams are written when it fires */
	bool impatient;                 /* it has fired */
	size_t awaited;                 /* unanswered calls to all servers */
	struct buf spares[LOOP_SPARES]; /* empty buffers for streams to write to */
	size_t spare_count;
	uint64_t now_us;     /* `now` in microseconds */
	size_t shared_again; /* bytes of shared texts that a stream waits to write beside another */
	char *scratch;       /* LOOP_SCRATCH bytes to read sockets into */
	void (*turn)(struct loop *loop, void *arg); /* called when a turn has read the clocks; or NULL */
	void *turn_arg;
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

/* Queues the job for the end of this turn. A queued job is not queued twice. */
void loop_later(struct loop *loop, struct loop_job *job);
/* Removes a job from the queue, if it is queued. */
void loop_forget(struct loop *loop, struct loop_job *job);

#endif
