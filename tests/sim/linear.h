/*
 * Checks a history of one object: whether its commands can be put in an order in which each takes effect between its invocation and its
 * reply, and in which all replies are right. It is the search of Wing and Gong, which remembers the places that it has been at.
 */
#ifndef SIM_LINEAR_H
#define SIM_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINEAR_OPS = 64 };

/* What an object is. The checker compares the bytes. */
struct linear_state {
	uint64_t a, b;
	int64_t c;
};

/* A command without a reply may have taken effect at any moment behind its invocation, or never. */
struct linear_op {
	uint64_t from, until;
	bool replied, reads; /* it never changes anything */
};

enum linear_step {
	LINEAR_WRONG, /* its reply is not right here */
	LINEAR_RIGHT, /* `after` is filled in */
	LINEAR_END    /* there is no such choice */
};

struct linear {
	const struct linear_op *ops;
	size_t count;
	/* What an operation makes of a state; 0 is the first of its choices. */
	enum linear_step (*step)(
		void *arg, size_t op, const struct linear_state *before, unsigned choice, struct linear_state *after);
	void *arg;
	uint64_t furthest; /* set by the check: a bit for each operation of the longest order that was found */
	uint64_t places;   /* and at how many places it was */
};

enum linear_result { LINEAR_NO, LINEAR_YES, LINEAR_UNDECIDED };

/* Checks at most LINEAR_OPS operations, from a state that is all zeroes. UNDECIDED: the search was given up. */
enum linear_result linear_check(struct linear *linear);

#endif
