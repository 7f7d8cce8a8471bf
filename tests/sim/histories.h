/* Shared by all simulations: runs histories from seeds, and checks that each mutation is found. */
#ifndef SIM_HISTORIES_H
#define SIM_HISTORIES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_TOTALS = 20 };

/* The result of one history. */
struct verdict {
	/* borrowed until the next history; NULL without a violation */
	const char *violation, *detail;
	uint64_t totals[HISTORY_TOTALS];
};

struct histories {
	/* Runs the history of a seed. */
	struct verdict (*run)(uint64_t seed, int mutation, bool verbose);
	/* The names of the totals; trailing ones may be NULL. */
	const char *totals[HISTORY_TOTALS];
	/*
	 * The description of a mutation; NULL if this simulation does not have it. Mutation 0 is
	 * none.
	 */
	const char *(*mutation)(int mutation);
	int mutations;
};

/*
 * Runs the histories; if `mutated`, each mutation until a history finds it. Returns the exit
 * status.
 */
int histories_main(const struct histories *histories, uint64_t first, uint64_t count, bool mutated,
	bool verbose);

/* Records the first violation of a history, with a text formatted as by vsnprintf. */
void histories_fail(const char **violation, char *detail, size_t size, const char *what,
	const char *format, va_list ap);

#endif
