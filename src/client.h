/*
 * A client's connection: requests come out of it in order, replies go into it in the same order.
 *
 *     bytes -> request_parse -> task -> ... -> task's reply -> bytes
 *
 * Tasks stand in a line. The first writes into the connection's buffer, the others into their own until they are first.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "command/task.h"
#include "net/stream.h"
#include "worker.h"

struct client {
	struct stream stream; /* first, so that one is the other */
	TAILQ_ENTRY(client) link;
	struct worker *worker;
	STAILQ_HEAD(, task) tasks;
	size_t unsent;               /* replies that were not tried to write yet */
	size_t spilled;              /* bytes of replies that wait for earlier ones */
	size_t average;              /* bytes of a reply, lately */
	uint64_t produced, measured; /* bytes of replies in all, and when the last task ended */
	uint64_t progress;           /* when something was last written, or began to wait for it; in milliseconds */
	struct order order;          /* of the tasks in line */
	size_t scanned;              /* how far an incomplete line was searched for its end */
	size_t skip;                 /* bytes to throw away: the data block of a request that was refused */
	bool barrier;                /* the next request waits until nothing is owed */
	bool paused;                 /* not read, since too much is owed or waits to be written */
	bool closing;                /* nothing more is read; closed when nothing is owed and all is written */
	uint64_t watched;            /* what `produced` was when client_watch was called */
	struct worker *destination;  /* where it goes once nothing is under way, or NULL */
	struct loop_job release;
};

/* Takes an accepted socket. */
void client_open(struct worker *worker, int fd);

/* Closes now. What its tasks still do upstream goes on; their replies are thrown away. */
void client_close(struct client *client);

/* Reads no more, and closes when everything asked was answered: now, when nothing was. */
void client_drain(struct client *client);

/*
 * Has another worker serve it, from the next moment on in which nothing of it is under way. One that always has something under
 * way stays.
 */
void client_move(struct client *client, struct worker *to);

/* Whether it was sent a reply since the last client_watch. */
void client_watch(struct client *client);
bool client_was_busy(const struct client *client);

struct client *client_next(struct client *client);

/* At the end of a worker, whose loop does not turn any more: frees what was closed. */
void client_free_closed(struct worker *worker);

/* The host's part for tasks. */
void client_task_begin(struct task *task);
struct buf *client_task_reply(struct task *task);
bool client_task_share(struct task *task, struct shared *text);
bool client_task_room(const struct task *task);
void client_task_done(struct task *task);

#endif
