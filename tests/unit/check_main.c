/* Runs all suites, each file one. The last line counts the tests; the status is 1 when one failed. */
#include <assert.h>

#include "unit.h"

enum { FILES_MAX = 200 };

/* The files in the order in which the linker has them. */
static struct unit_file {
	const char *name;
	SFun before, behind;
	struct unit_test *first, **last;
} files[FILES_MAX];
static size_t file_count;

static struct unit_file *file_of(const char *name)
{
	struct unit_file *file = files;

	while (file < files + file_count && strcmp(file->name, name) != 0)
		file++;
	if (file == files + file_count) {
		assert(file_count < FILES_MAX);
		file_count++;
		*file = (struct unit_file){ .name = name, .last = &file->first };
	}
	return file;
}

void unit_register(struct unit_test *test)
{
	struct unit_file *file = file_of(test->file);

	*file->last = test;
	file->last = &test->next;
}

void unit_fixture(const char *name, SFun before, SFun behind)
{
	struct unit_file *file = file_of(name);

	file->before = before;
	file->behind = behind;
}

static Suite *suite_of(const struct unit_file *file)
{
	Suite *suite = suite_create(file->name);
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, file->before, file->behind);
	for (const struct unit_test *test = file->first; test; test = test->next)
		tcase_add_loop_test(all, *test->test, 0, test->count);
	suite_add_tcase(suite, all);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(NULL);
	int run, failed;

	for (size_t i = 0; i < file_count; i++)
		srunner_add_suite(runner, suite_of(&files[i]));
	srunner_run_all(runner, CK_NORMAL);
	run = srunner_ntests_run(runner);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	printf("%d passed, %d failed\n", run - failed, failed);
	return failed || run == 0;
}
