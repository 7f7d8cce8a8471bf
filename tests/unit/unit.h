/* For the check_ files: Check, the suites, and helpers that most of them use. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake.h"
#include "guard.h"
#include "util/slice.h"

/*
 * A test of the suite of this file. It registers itself, so that none can be missed. A LOOP_TEST
 * runs this number of times, once for each `_i` from 0 on.
 */
#define TEST(name) LOOP_TEST(name, 1)
#define LOOP_TEST(name, count_) \
	static const TTest *name; \
	__attribute__((constructor)) static void register_##name(void) \
	{ \
		static struct unit_test test = { \
			.file = __BASE_FILE__, .test = &name, .count = (count_) \
		}; \
		unit_register(&test); \
	} \
	START_TEST(name)

/*
 * The setup and teardown of each test of the file. A file has at most one, which overrides that of
 * conversations.h.
 */
#define FIXTURE(before, behind) \
	__attribute__((constructor)) static void register_fixture(void) \
	{ \
		unit_fixture(__BASE_FILE__, (before), (behind)); \
	}

struct unit_test {
	const char *file;
	const TTest *const *test;
	int count;
	struct unit_test *next;
};

/* For these macros. Tests run in the order in which they register. */
void unit_register(struct unit_test *test);
void unit_fixture(const char *file, SFun before, SFun behind);

/* A slice in a table: SLICE is not a constant for every compiler. */
#define BYTES(literal) \
	{ \
		(literal), sizeof(literal) - 1 \
	}

/* Compares bytes with a string, and shows both if they differ. */
#define assert_bytes(got, text) \
	do { \
		struct slice bytes_ = (got); \
		const char *text_ = (text); \
		ck_assert_msg(slice_equal(bytes_, slice_of(text_, strlen(text_))), \
			"\"%.*s\" is not \"%s\"", (int)bytes_.n, bytes_.p, text_); \
	} while (0)

/* A conversation of a fake's client and server. */
#define asks(f, text) ck_assert_pstr_eq(fake_ask((f), (text)), NULL)
#define calls(f, text) ck_assert_str_eq(fake_calls(f), (text))
#define answers(f, text) ck_assert_pstr_eq(fake_answer((f), (text)), NULL)
#define told(f, text) ck_assert_str_eq(fake_told(f), (text))

#endif
