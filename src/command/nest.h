/* Nested tasks, implemented in task.c. */
#ifndef COMMAND_NEST_H
#define COMMAND_NEST_H

#include <stdbool.h>

#include "protocol/request.h"

struct task;

/*
 * The place of a task inside another one. The outer task receives the reply, and makes its own
 * reply from it. A reply of several parts is collected as a LINE: the text of all parts without
 * the last END and the last line end. Collected bytes count as held by the outer task.
 */
struct nest {
	/* Set by the outer task. */
	struct task *outer;
	/*
	 * Called when the reply is complete; the reply is borrowed for the call. The outer task
	 * may be done, and the nest freed, when this returns. The reply is an ERROR if the
	 * client has disconnected, or if the reply is larger than result_max. A LINE that was
	 * made of a META has its word.
	 */
	void (*done)(struct nest *nest, const struct reply *reply);
	bool collects; /* A reply of a single VALUE is collected, too. */

	struct request_reply way; /* The `reply` of the nested request. */
	struct task *task;        /* The nested task while it runs, else NULL. */
	bool overflows;           /* The reply is larger than result_max. */
};

/*
 * For the `resume` of an outer task that is abandoned: lets the nested task stop early, too.
 * `done` is still called.
 */
void task_abandon_inside(struct nest *nest);

#endif
