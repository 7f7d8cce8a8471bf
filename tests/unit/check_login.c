
#include "protocol/login.h"
#include "unit.h"

static const char *const statuses[] = { "more", "ready", "refused", "fatal", "hang up" };

/*
 * Parses a request: "ready <data> <consumed>", "refused <error> <consumed>+<skip>", or another
 * result.
 */
static const char *parses_slice(struct slice in)
{
	static char out[2200];
	struct request_progress progress = { 0 };
	struct request r;
	enum request_status status = login_parse(in, &progress, &r);

	if (status == REQUEST_READY)
		snprintf(out, sizeof(out), "ready <%.*s> %zu%s", (int)r.data.n, r.data.p,
			r.consumed, r.noreply ? " quiet" : "");
	else if (status == REQUEST_REFUSED)
		snprintf(out, sizeof(out), "refused <%s> %zu+%zu%s", r.error, r.consumed,
			r.skip.bytes, r.noreply ? " quiet" : "");
	else if (status == REQUEST_FATAL)
		snprintf(out, sizeof(out), "fatal <%s>", r.error);
	else
		snprintf(out, sizeof(out), "%s", statuses[status]);
	return out;
}

static const char *parses(const char *text)
{
	return parses_slice(guard_text(text));
}

TEST(logins)
{
	ck_assert_str_eq(parses("set auth 0 0 7\r\nfoo bar\r\n"), "ready <foo bar> 25");
	ck_assert_str_eq(parses("set auth 0 0 7\r\nfoo bar\r\nget a\r\n"), "ready <foo bar> 25");
	ck_assert_str_eq(parses("set auth 0 -1 7\r\nfoo bar\r\n"), "ready <foo bar> 26");
	ck_assert_str_eq(parses("set auth x y 7\r\nfoo bar\r\n"), "ready <foo bar> 25");
	ck_assert_str_eq(parses("set  auth  0  0  7 \r\nfoo bar\r\n"), "ready <foo bar> 30");
	ck_assert_str_eq(parses("set auth 0 0 7 9\r\nfoo bar\r\n"), "ready <foo bar> 27");
	ck_assert_str_eq(
		parses("set auth 0 0 7 noreply\r\nfoo bar\r\n"), "ready <foo bar> 33 quiet");
	ck_assert_str_eq(parses("set noreply 0 0 7\r\nfoo bar\r\n"), "ready <foo bar> 28");
	ck_assert_str_eq(parses("set auth 0 0 7\nfoo bar\n"), "ready <foo bar> 23");
	ck_assert_str_eq(parses("set auth 0 0 7\nfoo bar\r\n"), "ready <foo bar> 24");
	ck_assert_str_eq(parses("set auth 0 0 0\r\n\r\n"), "ready <> 18");
}

#define UNAUTHENTICATED "<CLIENT_ERROR unauthenticated>"

TEST(others)
{
	ck_assert_str_eq(parses("get a\r\n"), "refused " UNAUTHENTICATED " 7+0");
	ck_assert_str_eq(parses("\r\n"), "refused " UNAUTHENTICATED " 2+0");
	ck_assert_str_eq(parses("set\r\n"), "refused " UNAUTHENTICATED " 5+0");
	ck_assert_str_eq(parses("setx auth 0 0 7\r\n"), "refused " UNAUTHENTICATED " 17+0");
	ck_assert_str_eq(parses("SET auth 0 0 7\r\n"), "refused " UNAUTHENTICATED " 16+0");
	ck_assert_str_eq(parses("set auth 0 0\r\n"), "refused " UNAUTHENTICATED " 14+0");
	ck_assert_str_eq(parses("version\r\n"), "refused " UNAUTHENTICATED " 9+0");
	ck_assert_str_eq(parses("quit\r\n"), "refused " UNAUTHENTICATED " 6+0");
	ck_assert_str_eq(parses("delete k noreply\r\n"), "refused " UNAUTHENTICATED " 18+0 quiet");
	ck_assert_str_eq(parses("GET / HTTP/1.0\r\n"), "hang up");
}

/* Their data must not be read as requests. */
TEST(data_of_others)
{
	ck_assert_str_eq(parses("add k 0 0 5\r\nhello\r\n"), "refused " UNAUTHENTICATED " 20+0");
	ck_assert_str_eq(parses("add k 0 0 5 noreply\r\nhello\r\n"),
		"refused " UNAUTHENTICATED " 28+0 quiet");
	ck_assert_str_eq(parses("add k x 0 5\r\nhello\r\n"), "refused " UNAUTHENTICATED " 13+7");
	ck_assert_str_eq(parses("ms k 5 N9\r\n"), "more");
	ck_assert_str_eq(parses("ms k 5\r\nhello\r\n"), "refused " UNAUTHENTICATED " 15+0");
	ck_assert_str_eq(parses("cas k 0 0 5\r\nhello\r\n"), "refused " UNAUTHENTICATED " 13+7");
}

TEST(sizes)
{
	static char text[4096];

	ck_assert_str_eq(parses("set auth 0 0 1024\r\n"), "more");
	ck_assert_str_eq(parses("set auth 0 0 1025\r\n"), "fatal " UNAUTHENTICATED);
	ck_assert_str_eq(parses("add auth 0 0 1024\r\n"), "more");
	ck_assert_str_eq(parses("add auth 0 0 1025\r\n"), "fatal " UNAUTHENTICATED);
	ck_assert_str_eq(parses("add k x 0 1025\r\n"), "fatal " UNAUTHENTICATED);
	ck_assert_str_eq(parses("set auth 0 0 -1\r\n"), "fatal " UNAUTHENTICATED);
	ck_assert_str_eq(parses("set auth 0 0 many\r\n"), "fatal " UNAUTHENTICATED);
	ck_assert_str_eq(
		parses("set auth 0 0 7\r\nfoo bars\r\n"), "fatal <CLIENT_ERROR bad data chunk>");
	ck_assert_str_eq(parses("\x80\x01"),
		"fatal <CLIENT_ERROR only the memcached protocols are supported here>");
	for (int verb = 0; verb < 2; verb++) {
		memset(text, 'x', sizeof(text));
		memcpy(text, verb ? "get " : "set ", 4);
		ck_assert_str_eq(parses_slice(guard_place(slice_of(text, 2047))), "more");
		ck_assert_str_eq(parses_slice(guard_place(slice_of(text, 2048))),
			"fatal <CLIENT_ERROR line too long>");
		text[2047] = '\n';
		ck_assert_str_eq(parses_slice(guard_place(slice_of(text, 2048))),
			"refused " UNAUTHENTICATED " 2048+0");
		memmove(text + 2047, "x\n", 2);
		ck_assert_str_eq(parses_slice(guard_place(slice_of(text, 2049))),
			"fatal <CLIENT_ERROR line too long>");
	}
	/* memcached does not look at the key, however long it is. */
	snprintf(text, sizeof(text), "set %01000d 0 0 7\r\nfoo bar\r\n", 0);
	ck_assert_str_eq(parses(text), "ready <foo bar> 1021");
}

/*
 * Each request arrives byte by byte, and the parser keeps its state; it ends at its end, whatever
 * follows.
 */
TEST(cut_at_every_byte)
{
	static const char *const texts[] = { "set auth 0 0 7\r\nfoo bar\r\n",
		"set a 0 0 7 noreply\r\nfoo bar\r\n", "get a\r\n", "add k 0 0 5\r\nhello\r\n",
		"set auth 0 0\r\n" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct request_progress progress = { 0 };
		struct request r;
		size_t length = strlen(texts[i]);
		for (size_t n = 1; n < length; n++)
			ck_assert_msg(login_parse(guard_place(slice_of(texts[i], n)), &progress,
					      &r) == REQUEST_MORE,
				"%s: %zu", texts[i], n);
		ck_assert_int_ne(login_parse(guard_text(texts[i]), &progress, &r), REQUEST_MORE);
		ck_assert_uint_eq(r.consumed, length);
	}
}

/* No field may cause what memcached does for a refused request. */
TEST(no_command)
{
	struct request_progress progress = { 0 };
	struct request r;

	ck_assert_int_eq(
		login_parse(guard_text("ms k 99999999\r\n"), &progress, &r), REQUEST_FATAL);
	ck_assert(!r.command && !r.too_large && !request_discards(&r));
}

static const char *splits(const char *text)
{
	static char out[128];
	struct slice user, password;

	if (!login_split(guard_text(text), &user, &password))
		return "no";
	snprintf(out, sizeof(out), "<%.*s> <%.*s>", (int)user.n, user.p, (int)password.n,
		password.p);
	return out;
}

TEST(splitting)
{
	ck_assert_str_eq(splits("foo bar"), "<foo> <bar>");
	ck_assert_str_eq(splits(" foo  bar "), "<foo> <bar>");
	ck_assert_str_eq(splits("foo bar baz"), "<foo> <bar>");
	ck_assert_str_eq(splits("foo b:r"), "<foo> <b:r>");
	ck_assert_str_eq(splits("foobar"), "no");
	ck_assert_str_eq(splits("foobar "), "no");
	ck_assert_str_eq(splits(""), "no");
	ck_assert_str_eq(splits("  "), "no");
}
