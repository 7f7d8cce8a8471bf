/*
 * A client's connection. Replies are in the order of the requests.
 *
 *     on_data -> take_request -> carry_out (makes a task) -> client_task_begin -> client_task_reply -> client_task_done
 *             -> on_written
 *
 * Tasks are queued in the order of their requests. The first one writes to the connection's buffer. Each other task writes to a
 * buffer of its own, task.spill, which is moved to the connection's buffer when the task becomes the first.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "command/task.h"
#include "net/stream.h"
#include "worker.h"

struct client {
	struct stream stream; /* first: a pointer to one is a pointer to the other */
	TAILQ_ENTRY(client) link;
	struct worker *worker;
	STAILQ_HEAD(, task) tasks;
	size_t unsent;                   /* replies since the last write */
	size_t spilled;                  /* bytes of complete replies that wait for earlier ones */
	size_t average;                  /* a moving average of the bytes of a reply */
	uint64_t produced, measured;     /* bytes of replies: written in all; included in `average` */
	uint64_t progress;               /* when output last began to wait, or was written; in milliseconds */
	struct order order;              /* of the unfinished tasks */
	struct request_progress request; /* of an incomplete request */
	size_t skip;                     /* bytes of input to discard: the data block of a refused request */
	bool barrier;                    /* the next request waits until all tasks are done */
	bool paused;                     /* not read: too many requests are unanswered, or too much output waits */
	bool closing;                    /* no longer read; closed when all is answered and written */
	uint64_t watched;                /* `produced` at the last client_watch */
	struct worker *destination;      /* the worker to move to, or NULL */
	struct loop_job release;
};

/* Takes an accepted socket. The client frees itself after it was closed. */
void client_open(struct worker *worker, int fd);

/* Closes now. Its tasks continue, but their replies are discarded. */
void client_close(struct client *client);

/* Stops reading, and closes when all requests are answered: at once, if they are. */
void client_drain(struct client *client);

/* Moves the client to another worker as soon as all its requests are answered. */
void client_move(struct client *client, struct worker *to);

/* client_was_busy: whether any reply was written since the last client_watch. */
void client_watch(struct client *client);
bool client_was_busy(const struct client *client);

struct client *client_next(struct client *client);

/* Frees the closed clients of a worker whose loop has stopped. */
void client_free_closed(struct worker *worker);

/* The functions of struct host. */
void client_task_begin(struct task *task);
struct buf *client_task_reply(struct task *task);
bool client_task_share(struct task *task, struct shared *text);
bool client_task_room(const struct task *task);
void client_task_done(struct task *task);

#endif
