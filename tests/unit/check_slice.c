/* Slices, and random numbers. */
#include "unit.h"
#include "util/random.h"

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
	/* The last token ends with the slice. */
	rest = guard_text("one");
	assert_bytes(slice_token(&rest), "one");
	assert_bytes(slice_token(&rest), "");
}

TEST(cuts)
{
	struct slice rest = guard_text("one,,two");

	assert_bytes(slice_cut(&rest, ','), "one");
	assert_bytes(slice_cut(&rest, ','), "");
	assert_bytes(slice_cut(&rest, ','), "two");
	ck_assert_uint_eq(rest.n, 0);
	assert_bytes(slice_cut(&rest, ','), "");
}

/* Of every size, portions are whole words, and all of the text in order. */
TEST(portions)
{
	static const char text[] = "a bb ccc dddddddddddd e";

	for (size_t bytes = 0; bytes < sizeof(text); bytes++) {
		struct slice rest = SLICE(text);
		while (rest.n) {
			struct slice before = rest, portion = slice_portion(&rest, bytes, ' ');
			ck_assert_ptr_eq(portion.p, before.p);
			ck_assert_uint_eq(portion.n + rest.n, before.n);
			ck_assert(rest.n == 0 || portion.p[portion.n - 1] == ' ');
			ck_assert(rest.n == 0 || portion.n > bytes);
			/* Not longer than needed. */
			ck_assert_ptr_null(memchr(
				portion.p + (bytes < portion.n ? bytes : portion.n - 1), ' ',
				portion.n - 1 - (bytes < portion.n ? bytes : portion.n - 1)));
		}
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
