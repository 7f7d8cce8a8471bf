/* Filters: a member that was added is always found, and one that was not is rarely found. */
#include "collection/text/filter.h"

#include "unit.h"
#include "util/hash.h"
#include "util/random.h"

enum { MOST = 20000 };

static uint64_t words[MOST * FILTER_BITS_EACH / 64 + 1];

static void fill(size_t count, uint64_t random)
{
	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < count; i++)
		filter_add(words, filter_words(count), random_next(&random));
}

static size_t found(size_t count, size_t of, uint64_t random)
{
	size_t n = 0;

	for (size_t i = 0; i < of; i++)
		n += filter_may_hold(words, filter_words(count), random_next(&random));
	return n;
}

TEST(nothing_is_missed)
{
	for (size_t count = 0; count < 300; count++) {
		fill(count, count);
		ck_assert_uint_eq(found(count, count, count), count);
	}
	fill(MOST, 7);
	ck_assert_uint_eq(found(MOST, MOST, 7), MOST);
}

/* One in twenty, and not more than one in twelve. */
TEST(strangers)
{
	fill(MOST, 7);
	ck_assert_uint_lt(found(MOST, MOST, 8), MOST / 12);
	ck_assert_uint_gt(found(MOST, MOST, 8), 0);
	fill(0, 0);
	ck_assert_uint_eq(found(0, MOST, 8), 0);
}

/* The word is one of the existing ones, whatever the hash. */
TEST(within)
{
	static const uint64_t hashes[] = { 0, 1, UINT32_MAX, (uint64_t)UINT32_MAX << 32,
		UINT64_MAX };

	for (size_t count = 0; count < 200; count++) {
		for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++)
			ck_assert_uint_lt(
				filter_word(hashes[i], filter_words(count)), filter_words(count));
	}
	ck_assert_uint_eq(filter_word(UINT64_MAX, 1000), 999);
}

/* As views use it: hashes of members of one length that are much alike. */
TEST(members)
{
	char name[16];
	size_t strange = 0;

	memset(words, 0, sizeof(words));
	for (uint64_t i = 0; i < MOST; i++) {
		size_t n = (size_t)snprintf(name, sizeof(name), "%08d", (int)i);
		filter_add(words, filter_words(MOST), hash_slice(slice_of(name, n), 42));
	}
	for (uint64_t i = 0; i < 2 * MOST; i++) {
		size_t n = (size_t)snprintf(name, sizeof(name), "%08d", (int)i);
		bool may = filter_may_hold(
			words, filter_words(MOST), hash_slice(slice_of(name, n), 42));
		ck_assert(may || i >= MOST);
		strange += may && i >= MOST;
	}
	ck_assert_uint_lt(strange, MOST / 12);
}
