/* A task inside of another one. task.c carries it out. */
#ifndef COMMAND_NEST_H
#define COMMAND_NEST_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/shared.h"

struct task;

/*
 * A place for a task inside of another one. The outer task gets the reply of a request as a text, and makes its own reply from it.
 * The reply is collected, and counts as a part of what the outer task holds.
 */
struct nest {
	/* The outer task sets these. */
	struct task *outer;
	/*
	 * The reply is complete; it is borrowed for the call, in which nest_take may take it. The outer task may be done, and the nest freed,
	 * when this returns. If the client has gone, or the reply is too large, it is an error line.
	 */
	void (*done)(struct nest *nest, struct slice reply);

	/* The outer task sets this too, if the reply is at most one value: that may be given as `text`, and `reply` lacks it then. */
	bool takes_text;

	struct task *task;   /* the task inside, while it runs; else NULL */
	struct buf *reply;   /* that of `done`, while that is called; NULL if the task inside has not made it */
	struct shared *text; /* of the value; the nest drops it behind `done`. NULL if it is in `reply` */
	bool overflows;      /* the reply is larger than result_max, and an error instead */
	uint64_t cas;        /* set by the task inside: of the set or list that it has read; else 0 */
	int64_t ttl;         /* the same, of the set, list or item; else TTL_UNKNOWN */
};

/* So many bytes of a reply are shared rather than copied. */
enum { TASK_SHARES = 16 * 1024 };

/*
 * For `done`: gives the text of the nest, if it has one, or else `part` of the reply as such a text, to be dropped. There is no copy if it
 * is large: then the reply is gone.
 */
struct shared *nest_take(struct nest *nest, struct slice part);

/* For the `resume` of an outer task that is abandoned: the task inside may stop early, too. `done` is called as ever. */
void task_abandon_inside(struct nest *nest);

#endif
