/*
 * The interface that tasks need from their host: the env of machines, the lanes, and buffers
 * for replies. Implemented by the worker and by tests.
 */
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
	struct env env; /* First: a pointer to one is a pointer to the other. */
	struct lanes *lanes;
	struct waiting *waiting; /* Clients blocked on empty lists. NULL: clients may not block. */
	/*
	 * Called when a task begins. Sets task->account. The task's reply is sent after those
	 * of earlier tasks of its owner.
	 */
	void (*begin)(struct task *task);
	/*
	 * Returns the buffer for the next bytes of a task's reply, valid until the next call of
	 * any host function.
	 */
	struct buf *(*reply)(struct task *task);
	/*
	 * Adds a text to a task's reply without copying it. Returns false if the text must be
	 * copied. NULL: it must always be copied.
	 */
	bool (*share)(struct task *task, struct shared *text);
	/*
	 * Returns whether the client has room for more replies. If not, task->resume is called
	 * later. NULL: it always has room.
	 */
	bool (*room)(const struct task *task);
	/*
	 * Returns whether tasks of an owner must not block on lists: its client sends no more,
	 * will be closed, or has sent more requests than are buffered for a blocked client. If
	 * `ask`, also checks whether the peer has closed the socket. NULL: every task may
	 * block.
	 */
	bool (*ended)(const void *owner, bool ask);
	/* Returns whether the configuration denies the command. NULL: all are allowed. */
	bool (*denies)(const struct host *host, command_id command);
	/*
	 * Starts the request of a PROXY_COMMAND inside a task of this owner. NULL: there are no
	 * such commands.
	 */
	void (*start_inside)(const struct request *request, void *owner);
	/*
	 * Returns the memory of a long text of the request that is being started by a task of this
	 * owner, so that the text need not be copied; or an empty buffer if it must be. The
	 * caller owns the memory, but must not free it before the request is started. NULL: the
	 * text must always be copied.
	 */
	struct buf (*take_input)(void *owner, struct slice text);
	/*
	 * Restarts the time measurement of a task that was blocked until now. NULL: there is
	 * none.
	 */
	void (*restart)(struct task *task);
	/*
	 * Counts a lookup of a key; `counter` is an enum lookup_counter. NULL: lookups are not
	 * counted.
	 */
	void (*looked_up)(struct host *host, unsigned counter, struct slice key);
	/* Called when the reply of the task is complete. Transfers the task to the host. */
	void (*done)(struct task *task);

	/*
	 * Maximum number of calls in flight of one client, its share of a server's queue. Changes
	 * with each call. 0: no limit.
	 */
	size_t calls_max;
	size_t fans; /* Number of fans of many keys that have parts in flight; used by fan.c. */
	struct time_bucket_memo bucket;
	/*
	 * Memory for the next reply of a nested task, used by task.c. The creator of the host
	 * must free it.
	 */
	struct buf spare;
};

#endif
