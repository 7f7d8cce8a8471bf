/*
 * Arguments in quotes, and literals: every element of any bytes can be sent in three ways, comes back as it was, and what is
 * malformed is refused with nothing of it taken for another request.
 */
#include "protocol/commands.h"
#include "protocol/element.h"
#include "protocol/elements.h"
#include "protocol/quoted.h"
#include "requests.h"
#include "unit.h"
#include "util/random.h"

static struct request_progress progress;

static enum request_status parse(struct slice in, struct request *r)
{
	request_progress_end(&progress);
	return request_parse(in, &request_test_limits, &progress, r);
}

/* Lines, and the words after the key. */
static const struct {
	const char *line, *words;
} good[] = {
	{ "rpush k \"a b\" c\r\n",
		"a\x01\x42"
		"b c" },
	{ "rpush k 'a b' \"c\"\r\n",
		"a\x01\x42"
		"b c" },
	{ "rpush k \"\"\r\n", "\x01!" },
	{ "rpush k '' ''\n", "\x01! \x01!" },
	{ "rpush k \"\\\"\\\\\\n\\r\\t\\b\\a\\x41\\xfF\\q\\x4\"\r\n",
		"\"\\\x01\x2c\x01\x2f\x01\x2b\x01\x2a\x01\x29"
		"A\xffqx4" },
	{ "rpush k 'it\\'s \\n \\\\'\r\n", "it's\x01\x42\\n\x01\x42\\" },
	{ "rpush k {\"id\":1}\r\n", "{\"id\":1}" },
	{ "rpush k a\"b c\"\r\n", "a\"b c\"" },
	{ "rpush k {3}\r\na b\r\n",
		"a\x01\x42"
		"b" },
	{ "rpush k {3}\n\r\n \n", "\x01\x2f\x01\x2c\x01\x42" },
	{ "rpush k x {0}\r\n y {1}\r\nz \"w\"\r\n", "x \x01! y z w" },
	{ "rpush {1}\r\nk v\r\n", "v" },
	{ "rpush \"k\" v\r\n", "v" },
	{ "rpush k {3} v\r\n", "{3} v" },
	{ "rpush k {} {x} { {-1}\r\n", "{} {x} { {-1}" },
	{ "rpush k \"noreply\"\r\n", "noreply" },
	{ "rpush k {7}\r\nnoreply\r\n", "noreply" },
	{ "rpush k  \"a\"   b  \r\n", "a b" },
};

TEST(arguments)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct slice in = slice_of(good[i].line, strlen(good[i].line));
		struct request r;
		/* Incomplete at every byte, in one progress. */
		request_progress_end(&progress);
		for (size_t n = 1; n < in.n; n++)
			ck_assert_msg(request_parse(slice_of(in.p, n), &request_test_limits,
					      &progress, &r) == REQUEST_MORE,
				"%zu: %zu bytes", i, n);
		for (int again = 0; again < 2; again++) {
			ck_assert_msg(request_parse(in, &request_test_limits, &progress, &r) ==
					REQUEST_READY,
				"%zu: %s", i, r.error);
			ck_assert(slice_equal(r.key, SLICE("k")));
			while (r.rest.n && r.rest.p[0] == ' ')
				r.rest = slice_skip(r.rest, 1);
			ck_assert_msg(
				slice_equal(r.rest, slice_of(good[i].words, strlen(good[i].words))),
				"%zu: %.*s", i, (int)r.rest.n, r.rest.p);
			ck_assert(!r.noreply && r.consumed == in.n);
		}
	}
	request_progress_end(&progress);
}

TEST(noreply)
{
	struct request r;

	ck_assert_int_eq(parse(SLICE("sadd k \"a b\" noreply\r\n"), &r), REQUEST_READY);
	ck_assert(r.noreply &&
		slice_equal(r.rest,
			SLICE(" a\x01\x42"
			      "b")));
	ck_assert_int_eq(parse(SLICE("sadd k {1}\r\na noreply\r\n"), &r), REQUEST_READY);
	ck_assert(r.noreply && slice_equal(r.rest, SLICE(" a")));
	request_progress_end(&progress);
}

/* The request, its error, and how many bytes it has with what is skipped. */
static const struct {
	const char *in, *error;
	size_t size;
	enum request_status status;
} bad[] = {
	{ "rpush k \"a\r\nget x\r\n", "CLIENT_ERROR unbalanced quotes", 12, REQUEST_REFUSED },
	{ "rpush k 'a\\'\r\n", "CLIENT_ERROR unbalanced quotes", 14, REQUEST_REFUSED },
	{ "rpush k \"a\"b\r\n", "CLIENT_ERROR unbalanced quotes", 14, REQUEST_REFUSED },
	{ "rpush k \"a\\\"\r\n", "CLIENT_ERROR unbalanced quotes", 14, REQUEST_REFUSED },
	{ "rpush k \"a\" b\tc\r\n", "CLIENT_ERROR control character in line", 17, REQUEST_REFUSED },
	{ "rpush k b\tc {5}\r\nget x\r\n", "CLIENT_ERROR control character in line", 17,
		REQUEST_FATAL },
	{ "rpush k \"a {5}\r\nget x\r\n", "CLIENT_ERROR unbalanced quotes", 16, REQUEST_FATAL },
	{ "rpush k \"a\"{5}\r\nget x\r\n", "CLIENT_ERROR unbalanced quotes", 16, REQUEST_FATAL },
	{ "rpush k {1}\r\na b\tc {5}\r\nget x\r\n", "CLIENT_ERROR control character in line", 24,
		REQUEST_FATAL },
	{ "rpush k {1}\r\na b\tc\r\nget x\r\n", "CLIENT_ERROR control character in line", 20,
		REQUEST_REFUSED },
	{ "rpush \"k k\" a\r\n", "CLIENT_ERROR a key is a word", 15, REQUEST_REFUSED },
	{ "rpush \"k\177\" a\r\n", "CLIENT_ERROR a key is a word", 14, REQUEST_REFUSED },
	{ "rpush \"k\\x7f\" a\r\n", "CLIENT_ERROR a key is a word", 17, REQUEST_REFUSED },
	{ "rpush k {99999999}\r\n", "CLIENT_ERROR literal too large", 20, REQUEST_FATAL },
	{ "rpush k {1}\r\nab\r\n", "CLIENT_ERROR bad data chunk", 13, REQUEST_FATAL },
	{ "rpush k {0}\r\n{1}\r\nab\r\n", "CLIENT_ERROR bad data chunk", 13, REQUEST_FATAL },
	{ "rpush k b\tc {99999999}\r\n", "CLIENT_ERROR control character in line", 24,
		REQUEST_FATAL },
};

TEST(malformed)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct request r;
		ck_assert_msg(parse(slice_of(bad[i].in, strlen(bad[i].in)), &r) == bad[i].status,
			"%zu", i);
		ck_assert_pstr_eq(r.error, bad[i].error);
		ck_assert_msg(r.consumed + r.skip.bytes == bad[i].size, "%zu: %zu", i,
			r.consumed + r.skip.bytes);
	}
	request_progress_end(&progress);
}

/* A line after a literal has the limit of the first one, however its bytes arrive. */
TEST(long_lines)
{
	for (size_t over = 0; over < 2; over++) {
		size_t max = request_test_limits.max_line - 2 + over;
		enum request_status expected = over ? REQUEST_FATAL : REQUEST_READY;
		struct buf in = BUF_EMPTY;
		struct request r;
		enum request_status status;
		BUF_ADD(&in, "rpush k {1}\r\na");
		for (size_t i = 0; i < max; i++)
			BUF_ADD(&in, " ");
		BUF_ADD(&in, "\r\n");
		ck_assert_int_eq(parse(buf_slice(&in), &r), expected);
		request_progress_end(&progress);
		for (size_t n = 1; n <= buf_size(&in); n++) {
			status = request_parse(
				slice_of(buf_slice(&in).p, n), &request_test_limits, &progress, &r);
			if (status != REQUEST_MORE)
				break;
		}
		ck_assert_int_eq(status, expected);
		buf_free(&in);
	}
	request_progress_end(&progress);
}

/* Appends an element as a literal. */
static void add_literal(struct buf *line, struct slice element)
{
	buf_printf(line, "{%zu}\r\n", element.n);
	buf_add_slice(line, element);
}

/* What quoted_add writes, and a literal, is read as the same element. */
TEST(elements_of_any_bytes)
{
	static const char few[] = " \"'\\{}1x\n";
	struct buf line = BUF_EMPTY;
	uint64_t random = 3;

	for (int i = 0; i < 30000; i++) {
		char element[24], word[60];
		size_t n = random_next(&random) % sizeof(element);
		struct slice expected;
		struct request r;
		for (size_t at = 0; at < n; at++)
			element[at] = i % 2 ? few[random_next(&random) % (sizeof(few) - 1)]
					    : (char)random_next(&random);
		expected = slice_of(
			word, (size_t)(element_write_word(word, slice_of(element, n)) - word));
		buf_consume(&line, buf_size(&line));
		BUF_ADD(&line, "rpush k ");
		elements_add_quoted(&line, expected);
		BUF_ADD(&line, " ");
		add_literal(&line, slice_of(element, n));
		BUF_ADD(&line, "\r\n");
		ck_assert_int_eq(parse(buf_slice(&line), &r), REQUEST_READY);
		ck_assert(slice_equal(slice_token(&r.rest), expected));
		ck_assert(slice_equal(slice_token(&r.rest), expected) && r.rest.n == 0);
		ck_assert(elements_word_is_plain(expected) == (line.data[line.start + 8] != '"'));
	}
	request_progress_end(&progress);
	buf_free(&line);
}
