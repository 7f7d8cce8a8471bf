/* What tasks need of their surroundings: the env of machines, the lanes, and buffers for replies. Workers and tests implement it. */
#ifndef COMMAND_HOST_H
#define COMMAND_HOST_H

#include "collection/env.h"
#include "collection/event/time_bucket.h"
#include "protocol/command.h"
#include "util/buf.h"

struct lanes;
struct request;
struct shared;
struct task;
struct waiting;

struct host {
	struct env env; /* first, so that a pointer to one is a pointer to the other */
	struct lanes *lanes;
	struct waiting *waiting; /* clients that wait for elements of lists; NULL: none may */
	/* A task begins: sets task->account. Its reply is sent after those of its owner's earlier tasks. */
	void (*begin)(struct task *task);
	/* The buffer for the next bytes of a task's reply. Valid until the next call of any function of the host. */
	struct buf *(*reply)(struct task *task);
	/* Adds a text to a task's reply without a copy; gives false if the text must be copied. NULL: it always must be. */
	bool (*share)(struct task *task, struct shared *text);
	/* Whether the client has room for more replies. If not, task->resume is called later. NULL: it always has. */
	bool (*room)(const struct task *task);
	/*
	 * Whether tasks of an owner must not wait for elements: its client sends no more, will be closed, or has sent more
	 * requests than are stored while it waits. If `ask`, also checks the socket for the end of the connection. NULL:
	 * every task may wait.
	 */
	bool (*ended)(const void *owner, bool ask);
	/* Whether the configuration denies the command. NULL: it denies none. */
	bool (*denies)(const struct host *host, command_id command);
	/* Starts the request of a PROXY_COMMAND inside of a task of this owner. NULL: there are no such commands. */
	void (*start_inside)(const struct request *request, void *owner);
	/* There may be something on the board of pushes for other workers: they look at it. NULL: there are none. */
	void (*tell)(struct host *host);
	/* The task has waited for others until now, which is none of its time. NULL: nobody measures. */
	void (*restart)(struct task *task);
	/* Counts a hit or a miss of a key: an enum lookup_counter. NULL: lookups are not counted. */
	void (*looked_up)(struct host *host, unsigned counter, struct slice key);
	/* The reply of the task is complete. The host owns the task from now on. */
	void (*done)(struct task *task);

	size_t calls_max; /* calls that one client may have unanswered: its share of a server's queue; 0 for no limit */
	struct time_bucket_memo bucket;
	struct buf
		spare; /* task.c's: memory for the next reply of a task inside of another; whoever made the host frees it */
};

#endif
