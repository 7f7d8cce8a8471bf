/*
 * A task is one client request being carried out: it makes calls or operations, and writes one reply. Tasks know no sockets.
 * They are made here and given back by the host when they are done.
 */
#ifndef COMMAND_TASK_H
#define COMMAND_TASK_H

#include <sys/queue.h>

#include "command/host.h"
#include "command/order.h"
#include "protocol/request.h"
#include "util/buf.h"
#include "util/shared.h"

struct task {
	STAILQ_ENTRY(task) link; /* the host's: in the order of the requests */
	struct host *host;
	void *owner;        /* the host's */
	struct buf spill;   /* the host's: a reply that must wait for earlier ones */
	struct buf scratch; /* the family's; freed with the task */
	size_t size;        /* of the whole object */
	const struct command *command;
	void (*resume)(struct task *task); /* set by a task that stops when its client has no room, NULL else */
	void *resume_arg;                  /* the family's */
	bool quiet;                        /* no reply is to be sent: the host throws it away */
	struct order_effect order;
	bool done;      /* the host's: the reply is complete */
	bool abandoned; /* nobody waits for it any more: a task that would ask on may stop; `resume` was called to say so */
};

/* Gives a task back. It must be done. */
void task_free(struct task *task);

/*
 * For the families and the host: a new task of `size` bytes, of which those behind struct task are not cleared; the host is
 * told that it begins.
 */
void *task_new(struct host *host, const struct request *request, void *owner, size_t size);

/* A whole task that only replies with this line: the request cannot be carried out. */
void task_refuse(struct host *host, const struct request *request, void *owner, const char *line);

/* Whose operations must keep their order: for struct op. */
const void *task_client(const struct host *host, const void *owner);

/* Where its reply bytes go: valid until anything else is done with the host. */
struct buf *task_reply(struct task *task);

/* Puts a text into the reply: without a copy where that is worth it. */
void task_reply_shared(struct task *task, struct shared *text);

/* The reply is complete. The task may be gone when this returns. */
void task_done(struct task *task);

/* Replies with one line, a number, or a failure, and is done. */
void task_reply_line(struct task *task, const char *line);
void task_reply_number(struct task *task, uint64_t n);
void task_reply_failure(struct task *task, const struct result *r);

/* Copies a slice to `*at`, which moves behind it, and gives the copy: for what a task keeps of its request. */
struct slice task_keep(char **at, struct slice s);

#endif
