/* For the check_ files: Check, the suites, and words for what most of them do. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <check.h>
#include <stdint.h>

#include "fake.h"
#include "guard.h"
#include "util/slice.h"

/* A test. It needs no END_TEST, which is empty in each version of Check that has TTest. */
#define TEST(name) START_TEST(name)

/* A slice in a table: SLICE is no constant for every compiler. */
#define BYTES(literal) \
	{ \
		(literal), sizeof(literal) - 1 \
	}

/* Compares bytes with a string, and shows both where they differ. */
#define assert_bytes(got, text) \
	do { \
		struct slice bytes_ = (got); \
		const char *text_ = (text); \
		ck_assert_msg(slice_equal(bytes_, slice_of(text_, strlen(text_))), "\"%.*s\" is not \"%s\"", \
			(int)bytes_.n, bytes_.p, text_); \
	} while (0)

/* A conversation of a fake's client and server. */
#define asks(f, text) ck_assert_pstr_eq(fake_ask((f), (text)), NULL)
#define calls(f, text) ck_assert_str_eq(fake_calls(f), (text))
#define answers(f, text) ck_assert_pstr_eq(fake_answer((f), (text)), NULL)
#define told(f, text) ck_assert_str_eq(fake_told(f), (text))

/* A suite of one case, from a list of tests, each between a setup and a teardown where these are not NULL. */
static inline Suite *suite_of(const char *name, SFun setup_, SFun teardown_, const TTest *const *tests, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, setup_, teardown_);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return suite;
}

#define SUITE_AROUND(name, setup, teardown, ...) \
	Suite *suite_##name(void) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return suite_of(#name, setup, teardown, tests, sizeof(tests) / sizeof(tests[0])); \
	}

#define SUITE(name, ...) SUITE_AROUND(name, NULL, NULL, __VA_ARGS__)

#define SUITE_NAME(name) Suite *suite_##name(void);
#include "suites.def"
#undef SUITE_NAME

#endif
