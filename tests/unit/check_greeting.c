#include <stdio.h>

#include "unit.h"
#include "upstream/greeting.h"

static const char *const replies[GREETING_REPLIES] = {
	"VERSION 1.6.18\r\n",
	"MN\r\n",
	"STAT maxbytes 67108864\r\nSTAT cas_enabled yes\r\nSTAT item_size_max 1048576\r\nEND\r\n",
};

START_TEST(what_is_asked)
{
	struct buf out = BUF_EMPTY;

	greeting_encode(&out);
	assert_bytes(buf_slice(&out), "version\r\nmn\r\nstats settings\r\n");
	buf_free(&out);
}
END_TEST

/* Each reply waits for its last byte, and takes no more than its own. */
START_TEST(cut_at_every_byte)
{
	struct greeting g = { 0 };
	char more[256];

	for (unsigned which = 0; which < GREETING_REPLIES; which++) {
		size_t length = strlen(replies[which]);
		for (size_t n = 0; n < length; n++)
			ck_assert_int_eq(greeting_decode(guard_place(slice_of(replies[which], n)), which, &g), 0);
		snprintf(more, sizeof(more), "%sMN\r\n", replies[which]);
		ck_assert_int_eq(greeting_decode(guard_text(more), which, &g), (ssize_t)length);
	}
	ck_assert_uint_eq(g.version, 1 << 16 | 6 << 8 | 18);
	ck_assert(g.meta && g.cas);
	ck_assert_uint_eq(g.item_max, 1048576);
}
END_TEST

static struct greeting hears(unsigned which, const char *text)
{
	struct greeting g = { 0 };

	ck_assert_int_eq(greeting_decode(guard_text(text), which, &g), (ssize_t)strlen(text));
	return g;
}

START_TEST(versions)
{
	static const struct {
		const char *text;
		unsigned version;
	} cases[] = {
		{ "VERSION 1.4.0\r\n", 1 << 16 | 4 << 8 },
		{ "VERSION 1.6.18_4_gabcdef\r\n", 1 << 16 | 6 << 8 | 18 },
		{ "VERSION 1.6.18-beta\r\n", 1 << 16 | 6 << 8 | 18 },
		{ "VERSION 1.6\r\n", 1 << 16 | 6 << 8 },
		{ "VERSION 2\r\n", 2 << 16 },
		{ "VERSION 1.6.18.99\r\n", 1 << 16 | 6 << 8 | 18 },
		{ "VERSION unknown\r\n", 0 },
		{ "VERSION \r\n", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(hears(0, cases[i].text).version == cases[i].version, "%s", cases[i].text);
}
END_TEST

/* Whatever else greets us is no server to be used. */
START_TEST(no_greeting)
{
	static const char *const texts[] = { "ERROR Too many open connections\r\n", "ERROR\r\n", "\r\n", "VERSIONS\r\n",
		"-ERR unknown command\r\n", "HTTP/1.1 400 Bad Request\r\n" };
	struct greeting g = { 0 };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(greeting_decode(guard_text(texts[i]), 0, &g) == -1, "%s", texts[i]);
}
END_TEST

START_TEST(abilities)
{
	ck_assert(hears(1, "MN\r\n").meta);
	ck_assert(!hears(1, "ERROR\r\n").meta);
	ck_assert(!hears(1, "OK\r\n").meta);
	struct greeting g = hears(2, "STAT cas_enabled no\r\nEND\r\n");
	ck_assert(!g.cas);
	ck_assert_uint_eq(g.item_max, 0);
	g = hears(2, "STAT item_size_max 2097152\r\nEND\r\n");
	ck_assert(g.cas);
	ck_assert_uint_eq(g.item_max, 2097152);
	ck_assert(hears(2, "END\r\n").cas);
	ck_assert(hears(2, "ERROR\r\n").cas);
	ck_assert_uint_eq(hears(2, "STAT item_size_max x\r\nEND\r\n").item_max, 0);
	ck_assert_int_eq(greeting_decode(guard_text("STORED\r\n"), 2, &g), -1);
}
END_TEST

SUITE(greeting, what_is_asked, cut_at_every_byte, versions, no_greeting, abilities)
