/* What tasks need of the world: the env of the machines, the lanes, and a place for replies. The daemon's worker implements it, as do the tests. */
#ifndef COMMAND_HOST_H
#define COMMAND_HOST_H

#include "collection/env.h"
#include "collection/event/time_bucket.h"

struct lanes;
struct shared;
struct task;

struct host {
	struct env env; /* first, so that a pointer to one is a pointer to the other */
	struct lanes *lanes;
	/* A task begins. Its reply follows those of its owner's earlier tasks. */
	void (*begin)(struct task *task);
	/* The buffer for the next bytes of a task's reply. Valid until the next call of any function of the host. */
	struct buf *(*reply)(struct task *task);
	/* Adds a text to a task's reply without copying it; false when it must be copied. NULL when it always must be. */
	bool (*share)(struct task *task, struct shared *text);
	/* Whether the task's client has room for more. If not, task->resume is called when it has. NULL for always. */
	bool (*room)(const struct task *task);
	/* The client of a task's owner: requests of one client keep their order. NULL when the owner is the client. */
	const void *(*client)(const void *owner);
	/* The task has replied in full. The host owns it from here on. */
	void (*done)(struct task *task);

	struct time_bucket_memo bucket;
	uint64_t event_size; /* the average size of stored events that were read lately, in bytes */
};

#endif
