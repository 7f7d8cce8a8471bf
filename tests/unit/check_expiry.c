/* Dates of members in words of a log: parsed, written, and dropped. */
#include "collection/text/expiry.h"

#include "collection/text/oplog.h"
#include "unit.h"
#include "util/random.h"

#define MARK "\x02"
#define DATE MARK "1424450096"
/* Of an escape: the byte after it is a letter of its own. */
#define ESCAPE "\x01"

static const struct {
	const char *word;
	size_t size; /* of the member */
	uint32_t date;
} good[] = {
	{ "a" DATE " ", 1, 1424450096 },
	{ "member" MARK "0000000001 ", 6, 1 },
	{ "a" MARK "4294967295 ", 1, UINT32_MAX },
	{ "+" DATE " ", 1, 1424450096 },
	{ "\x80\xff" DATE " ", 2, 1424450096 },
	{ "1424450096" DATE " ", 10, 1424450096 },
	{ ESCAPE "\x22" DATE " ", 2, 1424450096 },
	/* The empty member. */
	{ ESCAPE "!" DATE " ", 2, 1424450096 },
	{ "eightletters" ESCAPE "B!" DATE " ", 15, 1424450096 },
};
enum { GOOD = sizeof(good) / sizeof(good[0]) };

static const char *const malformed[] = { "", " ", "a", "a ", "a b", MARK, "a" MARK, "a" MARK " ",
	"a" MARK "1 ", "a" MARK "142445009 ", "a" MARK "14244500961 ", "a" MARK "01424450096 ",
	"a" MARK "0000000000 ", "a" MARK "4294967296 ", "a" MARK "9999999999 ",
	"a" MARK "-424450096 ", "a" MARK "+424450096 ", "a" MARK " 424450096 ",
	"a" MARK "142445009x ", "a" MARK "x424450096 ", "a" MARK "14244 0096 ", "a" DATE,
	"a" DATE "x", "a" DATE "\r\n", "a" DATE DATE " ", "a" DATE MARK " ", "a" MARK DATE " ",
	DATE " ", "a " DATE " ", "a b" DATE " ", "a\n" DATE " ", "a\x03" DATE " ",
	"a\x7f\x01" DATE " ", ESCAPE DATE " ", "a" ESCAPE "C" DATE " ", "a" ESCAPE "!" DATE " " };

TEST(words)
{
	for (size_t i = 0; i < GOOD; i++) {
		struct slice s = guard_text(good[i].word), word;
		size_t size = 0;

		ck_assert_msg(expiry_word_end(s.p, s.p + s.n, &size) == s.p + s.n - 1, "\"%s\"",
			good[i].word);
		ck_assert_uint_eq(size, good[i].size);
		ck_assert_uint_eq(expiry_read(s.p + size), good[i].date);
		word = slice_of(s.p, s.n - 1);
		ck_assert(slice_equal(expiry_member(word), slice_of(s.p, size)));
	}
}

TEST(other_words)
{
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		struct slice s = guard_text(malformed[i]);
		size_t size;

		ck_assert_msg(
			!expiry_word_end(s.p, s.p + s.n, &size), "%zu: \"%s\"", i, malformed[i]);
	}
	/* A byte 0 ends no text, but a member. */
	struct slice s = guard_place(SLICE("a\0" DATE " "));
	ck_assert_ptr_null(expiry_word_end(s.p, s.p + s.n, &(size_t){ 0 }));
}

/* A word is one only with its space. Nothing after the end is read, and nothing after the space. */
TEST(cut_at_every_byte)
{
	char longer[64];

	for (size_t i = 0; i < GOOD; i++) {
		size_t whole = strlen(good[i].word), size;

		for (size_t n = 0; n < whole; n++) {
			struct slice s = guard_place(slice_of(good[i].word, n));
			ck_assert_ptr_null(expiry_word_end(s.p, s.p + n, &size));
		}
		snprintf(longer, sizeof(longer), "%s" DATE "  -", good[i].word);
		ck_assert_ptr_eq(expiry_word_end(longer, longer + strlen(longer), &size),
			longer + whole - 1);
		ck_assert_uint_eq(size, good[i].size);
	}
}

TEST(written)
{
	uint64_t random = 1;
	char bytes[EXPIRY_SIZE + 1];

	for (int i = 0; i < 1000; i++) {
		uint32_t date = (uint32_t)(random_next(&random) >> (32 + i % 32)), digits = 0;
		struct buf out = BUF_EMPTY;

		memset(bytes, '#', sizeof(bytes));
		ck_assert_ptr_eq(expiry_write(bytes, date), bytes + EXPIRY_SIZE);
		ck_assert(bytes[0] == EXPIRY_MARK && bytes[EXPIRY_SIZE] == '#');
		for (int k = 1; k < EXPIRY_SIZE; k++) {
			ck_assert(bytes[k] >= '0' && bytes[k] <= '9');
			digits = digits * 10 + (uint32_t)(bytes[k] - '0');
		}
		ck_assert_uint_eq(digits, date);
		ck_assert_uint_eq(expiry_read(bytes), date);
		expiry_add(&out, date);
		ck_assert(slice_equal(
			buf_slice(&out), slice_of(bytes, date == EXPIRY_NONE ? 0 : EXPIRY_SIZE)));
		buf_free(&out);
	}
	expiry_write(bytes, UINT32_MAX);
	ck_assert(memcmp(bytes, MARK "4294967295", EXPIRY_SIZE) == 0);
}

/* From its date on, a member is gone. */
TEST(times)
{
	ck_assert(!expiry_is_past(EXPIRY_NONE, 0) && !expiry_is_past(EXPIRY_NONE, INT64_MAX));
	ck_assert(!expiry_is_past(1000, 999) && expiry_is_past(1000, 1000));
	ck_assert(expiry_is_past(1000, 1001) && !expiry_is_past(1, 0) && !expiry_is_past(1, -1));
	ck_assert(!expiry_is_past(UINT32_MAX, UINT32_MAX - 1ll));
	ck_assert(expiry_is_past(UINT32_MAX, UINT32_MAX));
	ck_assert_uint_eq(expiry_in(1424450096, 1), 1424450097);
	ck_assert_uint_eq(expiry_in(UINT32_MAX - 5ll, 4), UINT32_MAX - 1);
	ck_assert_uint_eq(expiry_in(UINT32_MAX - 5ll, 5), UINT32_MAX);
	ck_assert_uint_eq(expiry_in(UINT32_MAX - 5ll, 6), UINT32_MAX);
	ck_assert_uint_eq(expiry_in(UINT32_MAX * 2ll, 315360000), UINT32_MAX);
}

/* Words without a date are members, whatever their length. */
TEST(members)
{
	static const char *const undated[] = { "a", "1424450096", "a1424450096", "twelveletter",
		ESCAPE "\x22twelveletter",
		"1" ESCAPE "\x22"
		"1424450096" };

	for (size_t i = 0; i < sizeof(undated) / sizeof(undated[0]); i++) {
		struct slice word = guard_text(undated[i]);
		ck_assert(slice_equal(expiry_member(word), word));
	}
	assert_bytes(expiry_member(guard_text("ab" DATE)), "ab");
}

static void drops(const char *log, const char *expected)
{
	struct slice given = guard_text(log), got;
	struct buf out = BUF_EMPTY;

	got = expiry_drop(given, &out);
	assert_bytes(got, expected);
	/* Without a date it is not copied. */
	ck_assert((got.p == given.p && buf_size(&out) == 0) == (strchr(log, 2) == NULL));
	buf_free(&out);
}

TEST(dropped)
{
	drops("", "");
	drops("+a -b ", "+a -b ");
	drops("+a" DATE " ", "+a ");
	drops("+a" DATE " -b +c" DATE " +d ", "+a -b +c +d ");
	drops("-b ~t0 +a" DATE " " ESCAPE "\x22 ", "-b ~t0 +a " ESCAPE "\x22 ");
	drops("+long" MARK "0000000001 +a" DATE " ", "+long +a ");
	/* No date is read beyond the end of a log that is cut. */
	for (size_t n = 1; n <= EXPIRY_SIZE; n++) {
		char log[32];
		snprintf(log, sizeof(log), "+a%.*s", (int)n, DATE);
		drops(log, "+a");
	}
}

TEST(nothing_to_drop)
{
	struct buf out = BUF_EMPTY;

	ck_assert_uint_eq(expiry_drop(slice_of(NULL, 0), &out).n, 0);
	buf_free(&out);
}
