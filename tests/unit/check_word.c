/*
 * Short strings, eight bytes at a time: for every length the result is that of the C library, and
 * nothing beyond the end is read.
 */
#include <string.h>

#include "guard.h"
#include "unit.h"
#include "util/word.h"

enum { LONGEST = 5 * WORD_BYTES };

/* Bytes of which no two are equal. */
static void fill(char bytes[LONGEST])
{
	for (size_t i = 0; i < LONGEST; i++)
		bytes[i] = (char)('!' + i);
}

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

TEST(copies_every_length)
{
	char bytes[LONGEST], copy[LONGEST + 1];

	fill(bytes);
	for (size_t n = 0; n <= LONGEST; n++) {
		memset(copy, 0, sizeof(copy));
		word_copy(copy, guard_place(slice_of(bytes, n)).p, n);
		ck_assert_mem_eq(copy, bytes, n);
		for (size_t i = n; i < sizeof(copy); i++)
			ck_assert_int_eq(copy[i], 0);
	}
}

TEST(compares_every_byte)
{
	char bytes[LONGEST], other[LONGEST];

	fill(bytes);
	for (size_t n = 0; n <= LONGEST; n++) {
		const char *placed = guard_place(slice_of(bytes, n)).p;
		ck_assert_int_eq(word_compare(placed, bytes, n), 0);
		for (size_t i = 0; i < n; i++) {
			for (int with = 0; with < 256; with += 0x7f) {
				memcpy(other, bytes, n);
				other[i] = (char)with;
				ck_assert_int_eq(sign(word_compare(placed, other, n)),
					sign(memcmp(bytes, other, n)));
			}
		}
	}
}

TEST(ranks_as_bytes_are_ordered)
{
	static const char *const ascending[] = { "", "a", "ab", "abcd", "abcdefg", "abcdefgh",
		"abcdefh", "abd", "ac", "b", "\xff" };
	uint64_t last = 0;

	for (size_t i = 0; i < sizeof(ascending) / sizeof(ascending[0]); i++) {
		struct slice s = guard_text(ascending[i]);
		uint64_t rank = word_rank(s.p, s.n);
		ck_assert_msg(i == 0 ? rank == 0 : rank > last, "%s", ascending[i]);
		last = rank;
	}
	ck_assert_uint_eq(word_rank("abcdefghi", 9), word_rank("abcdefgh", 8));
}

TEST(finds_the_end_of_a_word)
{
	static const char ends[] = { 0, '\r', '\n', '\x1f', ' ', '\x7f' };
	char bytes[LONGEST];

	for (size_t n = 0; n <= LONGEST; n++) {
		memset(bytes, 'x' | 0x80, sizeof(bytes));
		struct slice whole = guard_place(slice_of(bytes, n));
		ck_assert_ptr_eq(word_end(whole.p, whole.p + n), whole.p + n);
		for (size_t at = 0; at < n; at++) {
			fill(bytes);
			bytes[at] = ends[(n + at) % sizeof(ends)];
			whole = guard_place(slice_of(bytes, n));
			ck_assert_ptr_eq(word_end(whole.p, whole.p + n), whole.p + at);
		}
	}
}
