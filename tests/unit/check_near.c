#include "unit.h"
#include "util/near.h"

static const char *hint(const char *word)
{
	static const char *const names[] = { "get", "gets", "delete", "sset", "set", "lset",
		"smembers", "sismember", "lpush", "rpush", "a_name_of_more_than_thirty_two_bytes" };
	static char text[NEAR_HINT];
	struct near near = { .word = guard_text(word) };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		near_offer(&near, slice_of(names[i], strlen(names[i])));
	near_hint(&near, text);
	return text;
}

TEST(names)
{
	ck_assert_str_eq(hint("smember"), "; did you mean smembers or sismember?");
	ck_assert_str_eq(hint("SMEMBRES"), "; did you mean smembers?");
	ck_assert_str_eq(hint("hset"), "; did you mean sset, set or lset?");
	ck_assert_str_eq(hint("xpush"), "; did you mean lpush or rpush?");
	ck_assert_str_eq(hint("del"), "; did you mean delete?");
	ck_assert_str_eq(hint("de"), "");
	ck_assert_str_eq(hint("g"), "");
	ck_assert_str_eq(hint("nothing"), "");
	ck_assert_str_eq(hint(""), "");
	ck_assert_str_eq(hint("a_name_of_more_than_thirty_two_bytes"), "");
	ck_assert_str_eq(hint("a_name_of_exactly_32_bytes_12345"), "");
}

/*
 * The most distant of more names than fit into a hint is omitted, in whatever order they are
 * offered.
 */
TEST(nearest_alone)
{
	struct near near = { .word = guard_text("abcdefgh") };
	char text[NEAR_HINT];

	near_offer(&near, SLICE("abcdefxx"));
	near_offer(&near, SLICE("abcdefgx"));
	near_offer(&near, SLICE("abcdefhg"));
	near_offer(&near, SLICE("abcdefgh"));
	near_offer(&near, SLICE("abcdefyy"));
	near_hint(&near, text);
	ck_assert_str_eq(text, "; did you mean abcdefgh, abcdefgx or abcdefhg?");
}

TEST(same)
{
	ck_assert(near_same(SLICE("sADD"), SLICE("Sadd")));
	ck_assert(!near_same(SLICE("sadd"), SLICE("saddx")));
	ck_assert(!near_same(SLICE("saddx"), SLICE("sadd")));
	ck_assert(!near_same(SLICE("s["), SLICE("s{")));
}
