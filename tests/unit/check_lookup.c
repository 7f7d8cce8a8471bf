#include "upstream/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static struct lookup lookups[LOOKUP_FAMILIES];

static char *copy(const char *text)
{
	return strcpy(malloc(strlen(text) + 1), text);
}

/* Each byte of the text is an address. */
static void find(int family, const char *addresses, const char *full)
{
	size_t count = strlen(addresses);
	unsigned char(*at)[LOOKUP_BYTES] = calloc(count, LOOKUP_BYTES);

	for (size_t i = 0; i < count; i++)
		at[i][3] = (unsigned char)addresses[i];
	lookup_find(&lookups[family], at, count, copy(full));
}

static void reset(void)
{
	for (int i = 0; i < LOOKUP_FAMILIES; i++)
		lookup_free(&lookups[i]);
}

static void none(int family)
{
	lookup_miss(&lookups[family], LOOKUP_NONE, "no address");
}

static void failed(int family)
{
	lookup_miss(
		&lookups[family], LOOKUP_FAILED, family == LOOKUP_V4 ? "timeout" : "timeout of v6");
}

/* "a" of IPv4 and "b" of IPv6 is "ab"; without the one, "-b". */
static const char *choice(void)
{
	static char out[LOOKUP_FAMILIES + 1];
	struct lookup_choice chosen;
	enum lookup_verdict verdict = lookup_choose(lookups, &chosen);

	if (verdict != LOOKUP_SINGLE)
		return verdict == LOOKUP_SEVERAL ? "several" : "unknown";
	for (int i = 0; i < LOOKUP_FAMILIES; i++)
		out[i] = chosen.has[i] ? (char)chosen.at[i][3] : '-';
	return out;
}

TEST(sorted_and_once)
{
	find(LOOKUP_V4, "cabacc", "x");
	ck_assert_uint_eq(lookups[LOOKUP_V4].count, 3);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(lookups[LOOKUP_V4].at[i][3], "abc"[i]);
	reset();
}

TEST(the_first_answer_is_enough)
{
	ck_assert_str_eq(choice(), "unknown");
	ck_assert(!lookup_is_decided(lookups, false));
	ck_assert_str_eq(lookup_failure(lookups, false), "no answer yet");
	find(LOOKUP_V6, "b", "x");
	ck_assert_str_eq(choice(), "-b");
	ck_assert(lookup_is_decided(lookups, false));
	ck_assert(!lookup_is_decided(lookups, true));
	find(LOOKUP_V4, "a", "X");
	ck_assert_str_eq(choice(), "ab");
	ck_assert_ptr_null(lookup_failure(lookups, false));
	reset();
	find(LOOKUP_V4, "a", "x");
	ck_assert(lookup_is_decided(lookups, false));
	ck_assert_str_eq(choice(), "a-");
	reset();
}

TEST(another_full_name_is_another_server)
{
	find(LOOKUP_V4, "a", "mc.inner");
	find(LOOKUP_V6, "b", "mc.outer");
	ck_assert_str_eq(choice(), "a-");
	find(LOOKUP_V6, "bc", "mc.outer");
	ck_assert_str_eq(choice(), "a-");
	find(LOOKUP_V6, "b", "mc.inner.more");
	ck_assert_str_eq(choice(), "a-");
	reset();
}

TEST(several)
{
	find(LOOKUP_V4, "ab", "x");
	ck_assert_str_eq(choice(), "several");
	find(LOOKUP_V6, "c", "x");
	ck_assert_str_eq(choice(), "several");
	find(LOOKUP_V4, "a", "x");
	ck_assert_str_eq(choice(), "ac");
	find(LOOKUP_V6, "bc", "x");
	ck_assert_str_eq(choice(), "several");
	/* The family with several addresses has none any more. */
	none(LOOKUP_V6);
	ck_assert_str_eq(choice(), "a-");
	reset();
}

TEST(a_failure_leaves_what_is_known)
{
	find(LOOKUP_V4, "a", "x");
	failed(LOOKUP_V4);
	none(LOOKUP_V6);
	ck_assert_str_eq(choice(), "a-");
	ck_assert_str_eq(lookup_failure(lookups, false), "timeout");
	none(LOOKUP_V4);
	ck_assert_str_eq(choice(), "a-");
	ck_assert_str_eq(lookup_failure(lookups, false), "no address");
	/* The name has moved to the other family. */
	find(LOOKUP_V6, "b", "x");
	ck_assert_str_eq(choice(), "-b");
	ck_assert_ptr_null(lookup_failure(lookups, false));
	reset();
}

TEST(all_are_of_one_family)
{
	find(LOOKUP_V6, "b", "x");
	ck_assert_int_eq(lookup_all(lookups), -1);
	failed(LOOKUP_V4);
	ck_assert_int_eq(lookup_all(lookups), -1);
	ck_assert(lookup_is_decided(lookups, true));
	ck_assert_str_eq(lookup_failure(lookups, true), "timeout");
	none(LOOKUP_V4);
	ck_assert_int_eq(lookup_all(lookups), LOOKUP_V6);
	find(LOOKUP_V4, "ab", "x");
	ck_assert_int_eq(lookup_all(lookups), LOOKUP_V4);
	failed(LOOKUP_V6);
	ck_assert_int_eq(lookup_all(lookups), LOOKUP_V4);
	none(LOOKUP_V4);
	ck_assert_int_eq(lookup_all(lookups), -1);
	ck_assert_str_eq(lookup_failure(lookups, true), "timeout of v6");
	reset();
}
