/* Runs all suites. The last line counts the tests; the status is 1 when one failed. */
#include <stdio.h>

#include "unit.h"

int main(void)
{
	SRunner *runner = srunner_create(NULL);
	int run, failed;

#define SUITE_NAME(name) srunner_add_suite(runner, suite_##name());
#include "suites.def"
#undef SUITE_NAME
	srunner_run_all(runner, CK_NORMAL);
	run = srunner_ntests_run(runner);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	printf("%d passed, %d failed\n", run - failed, failed);
	return failed || run == 0;
}
