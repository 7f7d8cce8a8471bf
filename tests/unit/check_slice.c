/* Slices, their hash, and random numbers. */
#include <stdio.h>

#include "unit.h"
#include "util/hash.h"
#include "util/random.h"
#include "util/slice.h"

TEST(equality)
{
	ck_assert(slice_equal(SLICE(""), slice_of(NULL, 0)));
	ck_assert(slice_equal(SLICE("ab"), SLICE("ab")));
	ck_assert(!slice_equal(SLICE("ab"), SLICE("abc")));
	ck_assert(!slice_equal(SLICE("ab"), SLICE("ac")));
	ck_assert(slice_starts(SLICE("abc"), SLICE("ab")));
	ck_assert(slice_starts(SLICE("abc"), SLICE("")));
	ck_assert(!slice_starts(SLICE("a"), SLICE("ab")));
	ck_assert(!slice_starts(SLICE("ba"), SLICE("ab")));
}

TEST(tokens)
{
	struct slice rest = guard_text("  one two   three ");

	assert_bytes(slice_token(&rest), "one");
	assert_bytes(slice_token(&rest), "two");
	assert_bytes(slice_token(&rest), "three");
	assert_bytes(slice_token(&rest), "");
	assert_bytes(slice_token(&rest), "");
	ck_assert_uint_eq(rest.n, 0);
}

TEST(last_token_ends_with_the_slice)
{
	struct slice rest = guard_text("one");

	assert_bytes(slice_token(&rest), "one");
	assert_bytes(slice_token(&rest), "");
}

/* Every length is read to its end and no further, and every byte counts. */
TEST(hash_sees_every_byte)
{
	char bytes[64];

	for (size_t n = 0; n <= sizeof(bytes); n++) {
		memset(bytes, 'x', n);
		uint64_t h = hash_slice(guard_place(slice_of(bytes, n)), 1);
		ck_assert_uint_eq(h, hash_slice(slice_of(bytes, n), 1));
		ck_assert_uint_ne(h, hash_slice(slice_of(bytes, n), 2));
		for (size_t i = 0; i < n; i++) {
			bytes[i] = 'y';
			ck_assert_uint_ne(h, hash_slice(slice_of(bytes, n), 1));
			bytes[i] = 'x';
		}
	}
}

/* Members that differ in little do not crowd into a few slots. */
TEST(hash_spreads)
{
	enum { SLOTS = 1024, MEMBERS = 16 * SLOTS };
	int low[SLOTS] = { 0 }, high[SLOTS] = { 0 };
	char name[32];

	for (int i = 0; i < MEMBERS; i++) {
		int n = snprintf(name, sizeof(name), "user:%d", i);
		uint64_t h = hash_slice(slice_of(name, (size_t)n), 7);
		low[h % SLOTS]++;
		high[h >> 32 & (SLOTS - 1)]++;
	}
	for (int i = 0; i < SLOTS; i++) {
		ck_assert_int_le(low[i], 48);
		ck_assert_int_le(high[i], 48);
	}
}

TEST(random_is_that_of_its_state)
{
	uint64_t a = 1, b = 1, c = 2;

	/* The first number of splitmix64 from the state 0, as published. */
	uint64_t zero = 0;
	ck_assert_uint_eq(random_next(&zero), 0xe220a8397b1dcdafu);
	for (int i = 0; i < 100; i++) {
		uint64_t v = random_next(&a);
		ck_assert_uint_eq(v, random_next(&b));
		ck_assert_uint_ne(v, random_next(&c));
	}
}
