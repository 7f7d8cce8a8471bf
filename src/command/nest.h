/* A task inside of another one. task.c carries it out. */
#ifndef COMMAND_NEST_H
#define COMMAND_NEST_H

#include <stdbool.h>

#include "protocol/request.h"

struct task;

/*
 * A place for a task inside of another one. The outer task gets the reply, and makes its own reply from it. A reply of several parts
 * is collected as a LINE: the text of all parts without the last END and the last line end. What is collected counts as a
 * part of what the outer task holds.
 */
struct nest {
	/* The outer task sets these. */
	struct task *outer;
	/*
	 * The reply is complete; it is borrowed for the call. The outer task may be done, and the nest freed, when this returns. If the
	 * client has gone, or the reply is larger than result_max, it is an ERROR. A LINE has the word of a META that it was made of.
	 */
	void (*done)(struct nest *nest, const struct reply *reply);
	bool collects; /* a reply of a single VALUE is collected, too */

	struct request_reply way; /* of the request inside */
	struct task *task;        /* the task inside, while it runs; else NULL */
	bool overflows;           /* the reply is larger than result_max */
};

/* For the `resume` of an outer task that is abandoned: the task inside may stop early, too. `done` is called as ever. */
void task_abandon_inside(struct nest *nest);

#endif
