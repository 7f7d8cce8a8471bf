/* Patterns are compared with a matcher that tries all ways, like that of Redis. */
#include <fnmatch.h>

#include "unit.h"
#include "util/glob.h"
#include "util/random.h"

/* Returns whether the class at `p`, after its [, has the byte, and moves `p` after the class. */
static bool class_has(const char **p, const char *end, unsigned char byte)
{
	bool inverts = *p < end && **p == '^', has = false;

	*p += inverts;
	for (;; ++*p) {
		const char *at = *p;
		if (end - at >= 2 && *at == '\\') {
			has |= (unsigned char)*++*p == byte;
		} else if (at == end) {
			return has != inverts;
		} else if (*at == ']') {
			++*p;
			return has != inverts;
		} else if (end - at >= 3 && at[1] == '-') {
			unsigned char from = (unsigned char)at[0], to = (unsigned char)at[2];
			has |= from < to ? from <= byte && byte <= to : to <= byte && byte <= from;
			*p += 2;
		} else {
			has |= (unsigned char)*at == byte;
		}
	}
}

static bool model(const char *p, const char *end, const char *text, const char *text_end)
{
	bool good;

	if (p == end)
		return text == text_end;
	if (*p == '*')
		return model(p + 1, end, text, text_end) ||
			(text < text_end && model(p, end, text + 1, text_end));
	if (text == text_end)
		return false;
	if (*p == '[') {
		p++;
		good = class_has(&p, end, (unsigned char)*text);
	} else if (*p == '?') {
		p++;
		good = true;
	} else {
		p += *p == '\\' && end - p > 1;
		good = *p++ == *text;
	}
	return good && model(p, end, text + 1, text_end);
}

static bool compiled(struct slice pattern, struct slice text)
{
	struct glob *g = glob_compile(pattern);
	bool good = glob_matches(g, text);

	free(g);
	return good;
}

static bool matches(const char *pattern, const char *text)
{
	return compiled(guard_text(pattern), slice_of(text, strlen(text)));
}

static size_t draw(uint64_t *random, const char *letters, size_t most, char *to)
{
	size_t n = random_next(random) % (most + 1), kinds = strlen(letters);

	for (size_t i = 0; i < n; i++)
		to[i] = letters[random_next(random) % kinds];
	return n;
}

TEST(examples)
{
	ck_assert(matches("h*llo", "heeeello") && matches("h*llo", "hllo"));
	ck_assert(!matches("h*llo", "hello!"));
	ck_assert(matches("h?llo", "hallo") && !matches("h?llo", "hllo"));
	ck_assert(matches("h[ae]llo", "hello") && !matches("h[ae]llo", "hillo"));
	ck_assert(matches("h[^e]llo", "hallo") && !matches("h[^e]llo", "hello"));
	ck_assert(matches("h[b-a]llo", "hallo") && !matches("h[a-b]llo", "hello"));
	ck_assert(matches("\\*", "*") && !matches("\\*", "x") && matches("\\", "\\"));
	ck_assert(matches("", "") && matches("*", "") && matches("**", "") && !matches("?", ""));
	ck_assert(!matches("[]", "x") && matches("[^]", "x") && matches("[x", "x"));
	ck_assert(matches("[\x80-\xff]", "\xe9") && !matches("[\x80-\xff]", "e"));
	ck_assert(compiled(guard_text("a?c"), slice_of("a\0c", 3)));
}

TEST(as_the_model)
{
	uint64_t random = 1;
	size_t good = 0;

	for (int i = 0; i < 200000; i++) {
		char pattern[12], text[8];
		size_t n = draw(&random, "aab**?[]^-\\\xe9", sizeof(pattern), pattern),
		       m = draw(&random, "aab]^-\\\xe9", sizeof(text), text);
		bool wanted = model(pattern, pattern + n, text, text + m);
		good += wanted;
		ck_assert_msg(
			compiled(guard_place(slice_of(pattern, n)), slice_of(text, m)) == wanted,
			"%.*s, %.*s: not %d", (int)n, pattern, (int)m, text, wanted);
	}
	ck_assert_uint_gt(good, 5000);
}

/* Without brackets and backslashes the C library agrees; some patterns have states in all words. */
TEST(as_fnmatch)
{
	uint64_t random = 2;
	size_t good = 0;

	for (int i = 0; i < 20000; i++) {
		char pattern[GLOB_MAX + 1], text[GLOB_MAX + 9];
		size_t n = draw(&random, "aaaaaaa**?", GLOB_MAX, pattern),
		       m = draw(&random, "aaaaaaaaaaaaaaab", GLOB_MAX + 8, text);
		bool wanted;
		pattern[n] = text[m] = 0;
		wanted = fnmatch(pattern, text, 0) == 0;
		good += wanted;
		ck_assert_msg(matches(pattern, text) == wanted, "%s, %s", pattern, text);
	}
	ck_assert_uint_gt(good, 1000);
}

/* A matcher that tries all ways would never end. */
TEST(many_stars)
{
	char pattern[GLOB_MAX + 1], text[5000];

	for (size_t i = 0; i < GLOB_MAX; i++)
		pattern[i] = "*a"[i % 2];
	pattern[GLOB_MAX] = 0;
	memset(text, 'a', sizeof(text));
	ck_assert(compiled(guard_text(pattern), slice_of(text, sizeof(text))));
	pattern[GLOB_MAX - 1] = 'b';
	ck_assert(!compiled(guard_text(pattern), slice_of(text, sizeof(text))));
}

static const char *prefix(const char *pattern)
{
	static char text[GLOB_MAX + 1];

	text[glob_prefix(guard_text(pattern), text)] = 0;
	return text;
}

TEST(prefixes)
{
	ck_assert_str_eq(prefix("user:*"), "user:");
	ck_assert_str_eq(prefix("a\\*b?c"), "a*b");
	ck_assert_str_eq(prefix("a[b]"), "a");
	ck_assert_str_eq(prefix("*"), "");
	ck_assert_str_eq(prefix(""), "");
	ck_assert_str_eq(prefix("a\\"), "a\\");
}
