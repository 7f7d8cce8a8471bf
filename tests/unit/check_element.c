/*
 * Elements of any bytes and their words: every element has one word, words have the order of their elements, and nothing else is a
 * word.
 */
#include "collection/text/table.h"
#include "guard.h"
#include "protocol/element.h"
#include "unit.h"
#include "util/random.h"

enum { LONGEST = 40 };

/* Writes the word of an element, of at most LONGEST bytes. */
static struct slice word_of(struct slice element, char word[2 * LONGEST])
{
	return slice_of(word, (size_t)(element_write_word(word, element) - word));
}

static void expect_return(struct slice element)
{
	char buffer[2 * LONGEST], back[2 * LONGEST];
	struct slice word = guard_place(word_of(element, buffer));

	ck_assert(element_is_word(word));
	ck_assert_uint_eq(element_size(word), element.n);
	ck_assert(element_is_plain(element) == slice_equal(element, word));
	ck_assert_uint_eq((size_t)(element_write(back, word) - back), element.n);
	ck_assert(slice_equal(slice_of(back, element.n), element));
}

TEST(an_element_returns_from_its_word)
{
	uint64_t random = 7;
	char element[LONGEST];

	expect_return(SLICE(""));
	for (int i = 0; i < 100000; i++) {
		size_t n = random_next(&random) % (LONGEST + 1);
		for (size_t at = 0; at < n; at++)
			element[at] = (char)(random_next(&random) % (i % 2 ? 256 : 40));
		expect_return(slice_of(element, n));
	}
}

/* All elements of at most two bytes, in order. */
TEST(words_have_the_order_of_their_elements)
{
	char before[2 * LONGEST], after[2 * LONGEST];
	struct slice last = word_of(SLICE(""), before);

	for (int a = 0; a < 256; a++) {
		for (int b = -1; b < 256; b++) {
			const char element[] = { (char)a, (char)b };
			struct slice word = word_of(slice_of(element, b < 0 ? 1 : 2), after);
			ck_assert_int_lt(member_compare(last, word), 0);
			memcpy(before, word.p, word.n);
			last = slice_of(before, word.n);
		}
	}
}

TEST(a_word_ends_before_a_space)
{
	static const char text[] = "ab\x01\x42"
				   "c +";

	ck_assert_ptr_eq(element_word_end(text, text + sizeof(text) - 1), text + 5);
	ck_assert_ptr_null(element_word_end(text + 5, text + sizeof(text) - 1));
}

TEST(other_bytes_are_no_word)
{
	static const struct slice bad[] = { { "", 0 }, { "a b", 3 }, { "\x01", 1 }, { "a\x01", 2 },
		{ "\x01 ", 2 }, { "\x01\x20", 2 }, { "a\x01!", 3 }, { "\x01!a", 3 },
		{ "\x01!\x01!", 4 }, { "\x01\x43", 2 }, { "\x01\x01", 2 }, { "\n", 1 },
		{ "abcdefgh\x02", 9 }, { "abc\0", 4 } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(!element_is_word(guard_place(bad[i])), "%zu", i);
}

/* A byte after an escape is not a byte of the element. */
TEST(contains)
{
	ck_assert(element_contains(SLICE("ab"), 'b'));
	ck_assert(!element_contains(SLICE("ab"), 'c'));
	ck_assert(element_contains(SLICE("a\x01\x2c"), '\n'));
	ck_assert(!element_contains(SLICE("a\x01\x2c"), ','));
	ck_assert(element_contains(SLICE("a\x01\x2c,"), ','));
	ck_assert(!element_contains(SLICE("\x01!"), '!'));
	ck_assert(!element_contains(SLICE("\x01!"), (char)0xff));
	ck_assert(element_contains(SLICE("\x01\x42"), ' '));
}
