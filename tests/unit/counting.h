/*
 * Counts the memory that the code under test allocates, and in a build with
 * SANITIZE=-fsanitize-coverage=trace-pc the basic blocks that it runs: its work, on a machine
 * however busy.
 */
#ifndef UNIT_COUNTING_H
#define UNIT_COUNTING_H

#include <stdbool.h>
#include <stddef.h>

struct counting {
	/* The code under test runs. The compiler assumes that free() does not read it. */
	volatile bool on;
	size_t bytes;  /* allocated and not freed while it was on */
	size_t blocks; /* that were run while it was on; 0 in other builds */
};

extern struct counting counting;

#endif
