/*
 * Checks a history of one object: whether its commands can be ordered such that each takes effect
 * between its invocation and its reply, and all replies are correct. It is the search of Wing and
 * Gong, with a memory of visited states.
 */
#ifndef SIM_LINEAR_H
#define SIM_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINEAR_OPS = 64 };

/* The interface of an object. The checker compares the bytes of states. */
struct linear_state {
	uint64_t a, b;
	int64_t c;
};

/* A command without a reply may have taken effect at any time after its invocation, or never. */
struct linear_op {
	uint64_t from, until;
	bool replied, reads; /* it never changes anything */
};

enum linear_step {
	LINEAR_WRONG, /* its reply is wrong in this state */
	LINEAR_RIGHT, /* `after` is filled in */
	LINEAR_END    /* there is no such choice */
};

struct linear {
	const struct linear_op *ops;
	size_t count;
	/* Computes the new state after an operation; 0 is the first of its choices. */
	enum linear_step (*step)(void *arg, size_t op, const struct linear_state *before,
		unsigned choice, struct linear_state *after);
	void *arg;
	/* set by the check: a bit for each operation of the longest order that was found */
	uint64_t furthest;
	uint64_t places; /* and the number of visited states */
};

enum linear_result { LINEAR_NO, LINEAR_YES, LINEAR_UNDECIDED };

/*
 * Checks at most LINEAR_OPS operations, from a state of zeroes. UNDECIDED: the search was
 * abandoned.
 */
enum linear_result linear_check(struct linear *linear);

#endif
