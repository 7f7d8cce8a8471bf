#include "histories.h"

#include <stdio.h>

#include "wording.h"

/* The seed of the first history that fails; 0 if none does. */
static uint64_t run(
	const struct histories *h, uint64_t first, uint64_t count, int mutation, bool verbose)
{
	uint64_t totals[HISTORY_TOTALS] = { 0 };

	for (uint64_t seed = first; seed < first + count; seed++) {
		struct verdict v = h->run(seed, mutation, verbose);
		if (v.violation) {
			printf("seed %llu: %s: %s\n", (unsigned long long)seed, v.violation,
				v.detail);
			return seed;
		}
		for (int i = 0; i < HISTORY_TOTALS; i++)
			totals[i] += v.totals[i];
	}
	printf("%llu histories", (unsigned long long)count);
	for (int i = 0; i < HISTORY_TOTALS && h->totals[i]; i++)
		printf("%s %llu %s", i ? "," : ":", (unsigned long long)totals[i], h->totals[i]);
	printf("\n");
	wording_print_counts();
	return 0;
}

static int run_mutations(const struct histories *h, uint64_t first, uint64_t count)
{
	int passed = 0, failed = 0;

	for (int m = 1; m < h->mutations; m++) {
		const char *what = h->mutation(m);
		if (!what)
			continue;
		printf("put in on purpose: %s\n", what);
		if (run(h, first, count, m, false)) {
			passed++;
		} else {
			printf("was not found\n");
			failed++;
		}
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}

int histories_main(
	const struct histories *h, uint64_t first, uint64_t count, bool mutated, bool verbose)
{
	uint64_t wrong;

	if (mutated)
		return run_mutations(h, first, count);
	wrong = run(h, first, count, 0, verbose);
	printf("%llu passed, %d failed\n", (unsigned long long)(wrong ? wrong - first : count),
		wrong ? 1 : 0);
	return wrong ? 1 : 0;
}

void histories_fail(const char **violation, char *detail, size_t size, const char *what,
	const char *format, va_list ap)
{
	if (*violation)
		return;
	*violation = what;
	vsnprintf(detail, size, format, ap);
}
