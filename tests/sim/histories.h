/* What all simulations do with their histories: run them from seeds, and see that each bug that is put in on purpose is found. */
#ifndef SIM_HISTORIES_H
#define SIM_HISTORIES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_TOTALS = 9 };

/* What came of one history. */
struct verdict {
	const char *violation, *detail; /* borrowed until the next history; NULL if all was right */
	uint64_t totals[HISTORY_TOTALS];
};

struct histories {
	/* Runs the history of a seed. */
	struct verdict (*run)(uint64_t seed, int mutation, bool verbose);
	/* The names of the totals; those at the end may be NULL. */
	const char *totals[HISTORY_TOTALS];
	/* What a mutation is; NULL if this simulation has no use for it. Mutation 0 is none. */
	const char *(*mutation)(int mutation);
	int mutations;
};

/* Runs the histories; if `mutated`, each mutation until a history finds it. Returns the exit status. */
int histories_main(const struct histories *histories, uint64_t first, uint64_t count, bool mutated, bool verbose);

/* The first violation of a history is kept, with a text that is made as by vsnprintf. */
void histories_fail(
	const char **violation, char *detail, size_t size, const char *what, const char *format, va_list ap);

#endif
