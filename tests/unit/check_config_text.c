
#include "config/text.h"
#include "unit.h"

/* Returns the cleaned text followed by line and braces, or the line and the error. */
static const char *cleans(const char *text)
{
	static char out[512];
	/* The zero byte is at the trap. */
	struct slice copy = guard_place(slice_of(text, strlen(text) + 1));
	struct config_text found;
	const char *error = config_text_clean((char *)copy.p, copy.n - 1, &found);

	if (error)
		snprintf(out, sizeof(out), "%u: %s", found.line, error);
	else
		snprintf(out, sizeof(out), "%s|%u %ld", copy.p, found.line, found.open);
	return out;
}

TEST(comments)
{
	ck_assert_str_eq(cleans(""), "|1 0");
	ck_assert_str_eq(cleans("a = 1 # b\n#\nc"), "a = 1    \n \nc|3 0");
	ck_assert_str_eq(cleans("a // b \" {\n"), "a         \n|1 0");
	ck_assert_str_eq(cleans("/* a\n { */b"), "    \n     b|2 0");
	ck_assert_str_eq(cleans("/**/a/*/"), "    a/*/|1 0");
	ck_assert_str_eq(cleans("a = /*/ b */ c"), "a =          c|1 0");
	ck_assert_str_eq(cleans("a#b"), "a  |1 0");
}

TEST(no_comments)
{
	static const char *const same[] = { "a//b", "a/*b", "\"# // /* \\\" #\"", "'# \" // \\' #'",
		"\"${#\"}\"", "${a # b}", "= \"a\\\\\"" };
	char want[64];

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		snprintf(want, sizeof(want), "%s|1 0", same[i]);
		ck_assert_str_eq(cleans(same[i]), want);
	}
	ck_assert_str_eq(cleans("'a\\\n# b'\n#"), "'a\\\n# b'\n |3 0");
}

TEST(braces)
{
	ck_assert_str_eq(cleans("a {\n}\n"), "a {\n}\n|2 0");
	ck_assert_str_eq(cleans("a {\nb = {\"}\"}\n"), "a {\nb = {\"}\"}\n|2 1");
	ck_assert_str_eq(cleans("}}{"), "}}{|1 -1");
}

/* The longest line is taken, with or without its end; a byte more is refused before anything in it is. */
TEST(lines)
{
	enum { MOST = CONFIG_LINE_MAX };
	static char text[2 * MOST + 8];
	struct config_text found;

	memset(text, 'x', sizeof(text));
	text[0] = '\n';
	text[MOST + 1] = '\n';
	text[2 * MOST + 2] = '\0';
	ck_assert_ptr_null(config_text_clean(text, 2 * MOST + 2, &found));
	ck_assert_uint_eq(found.line, 3);
	text[2 * MOST + 2] = '"';
	text[2 * MOST + 3] = '\0';
	ck_assert_str_eq(
		config_text_clean(text, 2 * MOST + 3, &found), "a line of more than 65536 bytes");
	ck_assert_uint_eq(found.line, 3);
	ck_assert_int_eq(CONFIG_LINE_MAX, 65536);
}

TEST(wrong)
{
	ck_assert_str_eq(cleans("a\nb = \"c\nd\""), "2: a string is not closed on its line");
	ck_assert_str_eq(cleans("\"a\\"), "1: a string is not closed on its line");
	ck_assert_str_eq(cleans("'a\\\nb"), "2: a string is not closed on its line");
	ck_assert_str_eq(cleans("\"${a\"\n}\""), "1: a string is not closed on its line");
	ck_assert_str_eq(cleans("\n${a\n}"), "2: a variable is not closed on its line");
	ck_assert_str_eq(cleans("\n/* a\n\n/"), "2: a comment is not closed");
	ck_assert_str_eq(cleans("/*/"), "1: a comment is not closed");
}

TEST(zero_byte)
{
	char text[] = "a\n\0b\n";
	struct config_text found;

	ck_assert_str_eq(config_text_clean(text, sizeof(text) - 1, &found), "a zero byte");
	ck_assert_uint_eq(found.line, 2);
}

/* --- a statement less --- */

static const char *drops(const char *text, unsigned line, const char *name)
{
	struct slice copy = guard_place(slice_of(text, strlen(text) + 1));

	return config_text_drop((char *)copy.p, line, name) ? copy.p : "none";
}

TEST(dropped)
{
	ck_assert_str_eq(drops("ab = 5 c = 6", 1, "ab"), "       c = 6");
	ck_assert_str_eq(drops("c=6\nab=\"x } # y\"\nd", 2, "ab"), "c=6\n            \nd");
	ck_assert_str_eq(drops("ab += {1,\n\"}\"} c", 1, "ab"), "         \n     c");
	ck_assert_str_eq(drops("ab { x = 1 { } }", 1, "ab"), "                ");
	ck_assert_str_eq(drops("ab 'it' { x = '}' } c", 1, "ab"), "                    c");
	ck_assert_str_eq(drops("ab\n= 5 ab = 6", 1, "ab"), "  \n    ab = 6");
	ck_assert_str_eq(drops("abc = 5 ab = 6", 1, "ab"), "abc = 5       ");
}

TEST(not_dropped)
{
	static const char *const texts[] = { "", "ab", "ab = \"x", "ab { x", "ab 5", "ab 'x' y",
		"ab { 'x }", "cd = 5", "\nab = 5", "ab 'x" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_str_eq(drops(texts[i], 1, "ab"), "none");
	ck_assert_str_eq(drops("ab = 5", 3, "ab"), "none");
}
