#include "histories.h"

#include <stdio.h>

static int run_mutations(const struct histories *h, uint64_t first, uint64_t count)
{
	int passed = 0, failed = 0;

	for (int m = 1; m < h->mutations; m++) {
		const char *what = h->mutation(m);
		if (!what)
			continue;
		printf("put in on purpose: %s\n", what);
		if (h->run(first, count, m, false)) {
			passed++;
		} else {
			printf("was not found\n");
			failed++;
		}
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}

int histories_main(const struct histories *h, uint64_t first, uint64_t count, bool mutated, bool verbose)
{
	uint64_t wrong;

	if (mutated)
		return run_mutations(h, first, count);
	wrong = h->run(first, count, 0, verbose);
	printf("%llu passed, %d failed\n", (unsigned long long)(wrong ? wrong - first : count), wrong ? 1 : 0);
	return wrong ? 1 : 0;
}

void histories_fail(const char **violation, char *detail, size_t size, const char *what, const char *format, va_list ap)
{
	if (*violation)
		return;
	*violation = what;
	vsnprintf(detail, size, format, ap);
}
