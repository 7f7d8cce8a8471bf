/* Bytes of others as text. */
#include "unit.h"
#include "util/escape.h"

TEST(escapes)
{
	static const struct {
		struct slice in;
		const char *out;
	} cases[] = {
		{ BYTES(""), "" },
		{ BYTES("user:17"), "user:17" },
		{ BYTES("a b\r\n"), "a\\x20b\\x0d\\x0a" },
		{ BYTES("\0\x7f\xc3\xa4\\~!"), "\\x00\\x7f\\xc3\\xa4\\x5c~!" },
	};
	char out[ESCAPE_SIZE(10)];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_uint_eq(escape_text(out, cases[i].in, 10), strlen(cases[i].out));
		ck_assert_str_eq(out, cases[i].out);
	}
}

TEST(cuts)
{
	char out[ESCAPE_SIZE(4)];

	escape_text(out, SLICE("abcd"), 4);
	ck_assert_str_eq(out, "abcd");
	escape_text(out, SLICE("abcde"), 4);
	ck_assert_str_eq(out, "abcd...");
	ck_assert_uint_eq(escape_text(out, SLICE("\n\n\n\n\n"), 4), sizeof(out) - 1);
	ck_assert_str_eq(out, "\\x0a\\x0a\\x0a\\x0a...");
}
