/*
 * Elements in replies: each element alone is its bytes; several are quoted in the text protocol,
 * so that they can be sent back, and joined by a delimiter in values of keys.
 */
#include "protocol/command_key.h"
#include "protocol/element.h"
#include "protocol/elements.h"
#include "protocol/reply.h"
#include "requests.h"
#include "unit.h"
#include "util/random.h"

#define A_B \
	"a\x01\x42" \
	"b" /* The word of "a b". */

static void says(uint8_t content, const char *words, const char *value)
{
	struct reply r = reply_elements(content, SLICE("k"), slice_of(words, strlen(words)));
	struct buf out = BUF_EMPTY, expected = BUF_EMPTY;
	struct slice tail;

	buf_printf(&expected, "VALUE k 0 %zu\r\n%s\r\nEND\r\n", strlen(value), value);
	ck_assert(!reply_text_form(&out, &r, NULL, &tail));
	buf_add(&expected, "", 1);
	assert_bytes(buf_slice(&out), expected.data + expected.start);
	buf_free(&out);
	buf_free(&expected);
}

TEST(in_text)
{
	says(CONTENT_ELEMENT, "a", "a");
	says(CONTENT_ELEMENT, A_B, "a b");
	says(CONTENT_ELEMENT, "\x01!", "");
	says(CONTENT_ELEMENT, "{3}", "{3}");
	says(CONTENT_ELEMENT, "\"\x01\x42\"", "\" \"");
	says(CONTENT_ELEMENTS, "", "");
	says(CONTENT_ELEMENTS, "a b c", "a b c");
	says(CONTENT_ELEMENTS, "a b#c &d {\"id\":1} x\"y z'", "a b#c &d {\"id\":1} x\"y z'");
	says(CONTENT_ELEMENTS, A_B, "\"a b\"");
	says(CONTENT_ELEMENTS, "x " A_B " y", "x \"a b\" y");
	says(CONTENT_ELEMENTS, "\x01! a \x01!", "\"\" a \"\"");
	says(CONTENT_ELEMENTS, "a {3} 'b \"c", "a \"{3}\" \"'b\" \"\\\"c\"");
	says(CONTENT_ELEMENTS, "a\x01\x2c \x7f", "\"a\\n\" \"\\x7f\"");
	says(CONTENT_ELEMENTS, "12345678 12345678 \x01\x22", "12345678 12345678 \"\\x00\"");
	says(CONTENT_BYTES, "'a {3}", "'a {3}");
}

/* --- joined --- */

static void joins(char delimiter, bool ends, const char *words, const char *expected)
{
	struct elements e = { .words = slice_of(words, strlen(words)),
		.joins = true,
		.ends = ends,
		.delimiter = delimiter };

	ck_assert(elements_convert(&e));
	if (e.refused)
		ck_assert_ptr_null(expected);
	else
		assert_bytes(e.converted ? buf_slice(&e.out) : e.words, expected);
	buf_free(&e.out);
}

/* The elements of a command that has removed them. */
static void keeps(char delimiter, const char *words, const char *expected)
{
	struct elements e = { .words = slice_of(words, strlen(words)),
		.joins = true,
		.keeps = true,
		.delimiter = delimiter };

	while (!elements_convert(&e))
		;
	ck_assert(!e.refused);
	assert_bytes(e.converted ? buf_slice(&e.out) : e.words, expected);
	buf_free(&e.out);
}

TEST(kept)
{
	keeps('\n', "a b " A_B, "a\nb\na b");
	keeps(' ', "a b", "a b");
	keeps(' ', "a " A_B, "\"a\" \"a\\x20b\"");
	keeps('\n', "\x01\x2c \x01! \x01\x22", "\"\\x0a\"\n\"\"\n\"\\x00\"");
	keeps(',', "{\"a\":1,\"b\":2} x", "\"{\\\"a\\\":1\\x2c\\\"b\\\":2}\",\"x\"");
	keeps('"', "a\"b c", "\"a\\\"b\"\"\"c\"");
	keeps('x', "ax b", "\"a\\x78\"x\"b\"");
}

/* The delimiter is found in a later portion: what was joined before it is written again. */
TEST(kept_in_portions)
{
	struct buf words = BUF_EMPTY, expected = BUF_EMPTY;
	struct elements e = { .joins = true, .keeps = true, .delimiter = '\n' };

	for (int i = 0; i < 2000; i++) {
		buf_printf(&words, "w%d ", i);
		buf_printf(&expected, "\"w%d\"\n", i);
	}
	BUF_ADD(&words, "\x01\x2c");
	BUF_ADD(&expected, "\"\\x0a\"");
	ck_assert_uint_gt(buf_size(&words), 2 * ELEMENTS_PORTION);
	e.words = buf_slice(&words);
	while (!elements_convert(&e))
		;
	ck_assert(slice_equal(buf_slice(&e.out), buf_slice(&expected)));
	buf_free(&e.out);
	buf_free(&words);
	buf_free(&expected);
}

TEST(joined)
{
	joins(' ', false, "", "");
	joins(' ', false, "a b 'c {1}", "a b 'c {1}");
	joins(' ', false, "a " A_B, NULL);
	joins(' ', false,
		"a \x01\x2c"
		"b",
		"a \nb");
	joins(' ', true, "a b", "a b ");
	joins('\n', false, "", "");
	joins('\n', true, "", "");
	joins('\n', false, "a", "a");
	joins('\n', false, "a b c", "a\nb\nc");
	joins('\n', true, "a b c", "a\nb\nc\n");
	joins('\n', false, A_B " c", "a b\nc");
	joins('\n', false, "c " A_B, "c\na b");
	joins('\n', true, "c \x01! " A_B, "c\n\na b\n");
	joins('\n', false,
		"a \x01\x2c"
		"b",
		NULL);
	joins('\n', false, "\x01!", "");
	joins(',', false, "a b,c", NULL);
	joins(',', true, "a \x01\x42,", NULL);
	joins(',', true, A_B " c", "a b,c,");
	joins('B', false, A_B " c", "a bBc");
	joins('\x01', false, A_B " c",
		"a b\x01"
		"c");
	joins('!', false, "\x01! \x01!", "!");
}

/* --- large texts --- */

enum { MANY = 3000 };

static void add_random(struct buf *words, uint64_t *random, bool plain)
{
	char bytes[40], word[2 * sizeof(bytes)];
	size_t n = random_next(random) % (sizeof(bytes) - plain) + plain;

	for (size_t i = 0; i < n; i++)
		bytes[i] =
			plain ? (char)('a' + random_next(random) % 26) : (char)random_next(random);
	buf_add(words, word, (size_t)(element_write_word(word, slice_of(bytes, n)) - word));
}

/* Converts a text, and returns the portions. */
static size_t converts(struct elements *e, const struct buf *words)
{
	size_t portions = 1;

	e->words = buf_slice(words);
	for (; !elements_convert(e); portions++)
		ck_assert_uint_lt(e->done, e->words.n);
	return portions;
}

/*
 * The quoted form of random elements, as arguments of a request, is parsed as the same words,
 * wherever the first special one is.
 */
LOOP_TEST(sent_back, 8)
{
	uint64_t random = (uint64_t)_i + 1;
	size_t plain = (size_t)_i * MANY / 7;
	struct buf words = BUF_EMPTY, line = BUF_EMPTY;
	struct request_limits limits = { .max_line = 1 << 20, .max_value = 1 << 20 };
	struct request_progress progress = { 0 };
	struct elements e = { 0 };
	struct request r;

	for (size_t i = 0; i < MANY; i++) {
		if (i)
			BUF_ADD(&words, " ");
		add_random(&words, &random, i < plain);
	}
	ck_assert_uint_gt(converts(&e, &words), 10);
	ck_assert(e.converted == (plain < MANY));
	ck_assert(elements_are_plain(buf_slice(&words)) == (plain == MANY));
	BUF_ADD(&line, "rpush k ");
	buf_add_slice(&line, e.converted ? buf_slice(&e.out) : buf_slice(&words));
	BUF_ADD(&line, "\r\n");
	ck_assert_int_eq(request_parse(buf_slice(&line), &limits, &progress, &r), REQUEST_READY);
	ck_assert(slice_equal(r.rest, buf_slice(&words)) ||
		slice_equal(slice_skip(r.rest, 1), buf_slice(&words)));
	request_progress_end(&progress);
	buf_free(&e.out);
	buf_free(&line);
	buf_free(&words);
}

/* Each byte at each place of a text is found as it is in a single word. */
LOOP_TEST(every_place, 50)
{
	char text[50];
	size_t n = (size_t)_i + 1;

	for (size_t at = 0; at < n; at++) {
		for (int byte = 0; byte < 256; byte++) {
			struct slice words = slice_of(text, n);
			bool plain;
			if (byte == ' ')
				continue;
			memset(text, ' ', n);
			text[at] = (char)byte;
			plain = elements_word_is_plain(slice_of(&text[at], 1));
			ck_assert(elements_are_plain(words) == plain);
			memset(text, 'a', n);
			text[at] = (char)byte;
			plain = elements_word_is_plain(words);
			ck_assert(elements_are_plain(words) == plain);
		}
	}
}

/* A shared text is sent without a copy if it is plain. It is checked once. */
TEST(shared)
{
	struct reply r = reply_elements(CONTENT_ELEMENTS, SLICE("k"), SLICE(""));
	struct buf text = BUF_EMPTY, out = BUF_EMPTY;
	struct slice tail;

	BUF_ADD(&text, "ann bob");
	r.shared = shared_create(&text);
	for (int i = 0; i < 2; i++) {
		ck_assert(reply_text_form(&out, &r, NULL, &tail));
		assert_bytes(buf_slice(&out), "VALUE k 0 7\r\n");
		assert_bytes(tail, "\r\nEND\r\n");
		ck_assert_int_eq(r.shared->words, SHARED_PLAIN);
		/* It is not looked at again. */
		*r.shared->text.data = '\'';
		buf_free(&out);
	}
	r.shared->words = SHARED_UNKNOWN;
	ck_assert(!reply_text_form(&out, &r, NULL, &tail));
	assert_bytes(buf_slice(&out), "VALUE k 0 9\r\n\"'nn\" bob\r\nEND\r\n");
	ck_assert_int_eq(r.shared->words, SHARED_SPECIAL);
	buf_free(&out);
	shared_drop(r.shared);
}

/* --- as the value of a key --- */

TEST(key)
{
	struct buf line = BUF_EMPTY;
	struct reply element = reply_elements(CONTENT_ELEMENT, SLICE("k"), SLICE(A_B));
	struct reply r = command_key_read(&element, &line);

	ck_assert_int_eq(r.content, CONTENT_BYTES);
	assert_bytes(r.bytes, "a b");
	buf_free(&line);
}
