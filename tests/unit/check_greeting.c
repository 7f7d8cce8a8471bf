
#include "unit.h"
#include "upstream/greeting.h"

static const char *const replies[GREETING_REPLIES] = {
	"VERSION 1.6.18\r\n",
	"MN\r\n",
	"STAT maxbytes 67108864\r\nSTAT cas_enabled yes\r\nSTAT item_size_max 1048576\r\nEND\r\n",
	"STAT pid 7\r\nSTAT uptime 96\r\nSTAT time 1424450096\r\nSTAT version 1.6.18\r\nEND\r\n",
};

TEST(what_is_asked)
{
	struct buf out = BUF_EMPTY;

	greeting_encode(SLICE(""), &out);
	assert_bytes(buf_slice(&out), "version\r\nmn\r\nstats settings\r\nstats\r\n");
	buf_consume(&out, buf_size(&out));
	greeting_encode(SLICE("ann secret"), &out);
	assert_bytes(buf_slice(&out),
		"set setlistd-authentication 0 -1 10\r\nann secret\r\nversion\r\nmn\r\nstats "
		"settings\r\nstats\r\n");
	buf_free(&out);
}

/* Each reply is incomplete before its last byte, and consumes no more than its own bytes. */
TEST(cut_at_every_byte)
{
	struct greeting g = { 0 };
	char more[256];

	for (unsigned which = 0; which < GREETING_REPLIES; which++) {
		size_t length = strlen(replies[which]);
		for (size_t n = 0; n < length; n++)
			ck_assert_int_eq(greeting_decode(guard_place(slice_of(replies[which], n)),
						 which, &g),
				0);
		snprintf(more, sizeof(more), "%sMN\r\n", replies[which]);
		ck_assert_int_eq(greeting_decode(guard_text(more), which, &g), (ssize_t)length);
	}
	ck_assert_uint_eq(g.version, 1 << 16 | 6 << 8 | 18);
	ck_assert(g.meta && g.cas);
	ck_assert_uint_eq(g.item_max, 1048576);
	ck_assert_int_eq(g.time, 1424450096);
	ck_assert_int_eq(g.started, 1424450000);
}

/* All replies at once, with a login and without one. */
TEST(all_cut_at_every_byte)
{
	struct greeting g;
	char all[512];

	for (int has_login = 0; has_login < 2; has_login++) {
		size_t length = (size_t)snprintf(all, sizeof(all), "%s%s%s%s%s",
			has_login ? "STORED\r\n" : "", replies[0], replies[1], replies[2],
			replies[3]);
		for (size_t n = 0; n < length; n++) {
			g = (struct greeting){ 0 };
			ck_assert_int_eq(
				greeting_read(guard_place(slice_of(all, n)), has_login, &g), 0);
			ck_assert(!g.refused);
		}
		g = (struct greeting){ 0 };
		ck_assert_int_eq(greeting_read(guard_text(all), has_login, &g), (ssize_t)length);
		ck_assert(g.meta && g.cas && !g.refused);
	}
}

TEST(refused_logins)
{
	static const struct {
		const char *text;
		bool has_login, refused;
	} cases[] = {
		{ "CLIENT_ERROR authentication failure\r\n", true, true },
		{ "CLIENT_ERROR unauthenticated\r\n", true, true },
		{ "CLIENT_ERROR unauthenticated\r\n", false, true },
		{ "CLIENT_ERROR bad command line format\r\n", true, false },
		{ "ERROR Too many open connections\r\n", true, false },
		{ "SERVER_ERROR out of memory storing object\r\n", true, false },
		{ "VERSION 1.6.18\r\n", true, false },
		{ "STORED\r\nERROR\r\n", true, false },
	};
	struct greeting g;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t first = strcspn(cases[i].text, "\n");
		g = (struct greeting){ 0 };
		ck_assert_int_eq(greeting_read(guard_place(slice_of(cases[i].text, first)),
					 cases[i].has_login, &g),
			0);
		ck_assert_msg(
			greeting_read(guard_text(cases[i].text), cases[i].has_login, &g) == -1,
			"%s", cases[i].text);
		ck_assert_msg(g.refused == cases[i].refused, "%s", cases[i].text);
	}
}

static struct greeting hears(unsigned which, const char *text)
{
	struct greeting g = { 0 };

	ck_assert_int_eq(greeting_decode(guard_text(text), which, &g), (ssize_t)strlen(text));
	return g;
}

TEST(versions)
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
		ck_assert_msg(
			hears(0, cases[i].text).version == cases[i].version, "%s", cases[i].text);
}

/* A peer with any other greeting is not used. */
TEST(no_greeting)
{
	static const char *const texts[] = { "ERROR Too many open connections\r\n", "ERROR\r\n",
		"\r\n", "VERSIONS\r\n", "-ERR unknown command\r\n",
		"HTTP/1.1 400 Bad Request\r\n" };
	struct greeting g = { 0 };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(greeting_decode(guard_text(texts[i]), 0, &g) == -1, "%s", texts[i]);
}

TEST(abilities)
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
	ck_assert_int_eq(hears(3, "STAT time 1424450096\r\nEND\r\n").started, 0);
	ck_assert_int_eq(hears(3, "STAT uptime 96\r\nEND\r\n").started, 0);
	ck_assert_int_eq(hears(3, "STAT uptime x\r\nSTAT time 1424450096\r\nEND\r\n").started, 0);
}
