
#include "protocol/http.h"
#include "unit.h"

/* The request with its consumed bytes, the status that refuses it, or "more". */
static const char *parses_slice(struct slice in)
{
	static char out[512];
	struct http_request r;
	size_t n = http_parse(in, &r);

	if (n == 0)
		return "more";
	if (r.refusal)
		snprintf(out, sizeof(out), "%.*s: %.3s %s", (int)r.method.n, r.method.p,
			r.refusal->status, r.refusal->why);
	else
		snprintf(out, sizeof(out), "%.*s %.*s <%.*s>%s %zu", (int)r.method.n, r.method.p,
			(int)r.path.n, r.path.p, (int)r.host.n, r.host.p, r.keeps ? "" : " close",
			n);
	return out;
}

static const char *parses(const char *text)
{
	return parses_slice(guard_text(text));
}

/* The same with a first line and a Host before the lines. */
static const char *header(const char *lines)
{
	static char text[512];

	snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n", lines);
	return parses(text);
}

TEST(requests)
{
	ck_assert_str_eq(parses("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), "GET /a <h> 28");
	ck_assert_str_eq(parses("GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b"), "GET /a <h> 28");
	ck_assert_str_eq(
		parses("HEAD /a?b?c HTTP/1.1\nhOST:\t [::1]:5 \t\n\n"), "HEAD /a <[::1]:5> 39");
	ck_assert_str_eq(parses("\r\n\nGET / HTTP/1.2\r\nHost:\r\n\r\n"), "GET / <> 28");
	ck_assert_str_eq(parses("POST * HTTP/1.1\r\nHost: h\r\nContent-Length: 00\r\n\r\n"),
		"POST * <h> 48");
	ck_assert_str_eq(parses("GET / HTTP/1.0\r\n\r\n"), "GET / <> close 18");
	ck_assert_str_eq(
		parses("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "GET / <> close 42");
	ck_assert_str_eq(header("Connection: keep-alive"), "GET / <h> 51");
	ck_assert_str_eq(header("Connection: Upgrade , CLOSE"), "GET / <h> close 56");
	ck_assert_str_eq(header("Connection: close\r\nConnection: a"), "GET / <h> close 61");
	ck_assert_str_eq(header("X:\r\nY: \xc3\xa4 : \t!"), "GET / <h> 43");
}

TEST(incomplete)
{
	static const char text[] = "\r\nGET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";

	for (size_t n = 0; n < sizeof(text) - 1; n++)
		ck_assert_str_eq(parses_slice(guard_place(slice_of(text, n))), "more");
	ck_assert_str_eq(parses(text), "GET / <h> 35");
}

TEST(first_lines)
{
	static const char *const bad[] = { "get x", "GET /", "GET / ", "GET  / HTTP/1.1",
		"GET / HTTP/1.1 ", "GET / HTTP/1.1 x", "GET / http/1.1", "GET / HTTP/1",
		"GET / HTTP/1.11", "GET / HTTP/x.1", "GET / HTTP/1.x", "GET / HTTP/1,1",
		" GET / HTTP/1.1", "G(T / HTTP/1.1", "GET\t/ HTTP/1.1", "GET /\ta HTTP/1.1",
		"GET / x HTTP/1.1", "GET / FTPS/1.1" };
	char text[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "%s\r\n", bad[i]);
		ck_assert_msg(strstr(parses(text), ": 400 This is not an HTTP/1.1 request."), "%s",
			bad[i]);
	}
	ck_assert_str_eq(parses("GET /\r HTTP/1.1\r\n"), ": 400 A line has a control character.");
	ck_assert_str_eq(parses("GET / HTTP/1.1\r\r\n"), ": 400 A line has a control character.");
	ck_assert_str_eq(
		parses("PRI * HTTP/2.0\r\n"), "PRI: 505 Only HTTP/1.1 and HTTP/1.0 are allowed.");
	ck_assert_str_eq(
		parses("GET / HTTP/0.9\r\n"), "GET: 505 Only HTTP/1.1 and HTTP/1.0 are allowed.");
}

/* A wrong line is refused at once, without the rest of the header. */
TEST(fields)
{
	static const struct {
		const char *line, *why;
	} rows[] = {
		{ "Host: h", "400 There are two Hosts." },
		{ "host:", "400 There are two Hosts." },
		{ "no colon", "400 A line of the header has no colon." },
		{ "A : b",
			"400 The name of a header is empty, or has a character that is not "
			"allowed." },
		{ "A\t: b",
			"400 The name of a header is empty, or has a character that is not "
			"allowed." },
		{ ": b",
			"400 The name of a header is empty, or has a character that is not "
			"allowed." },
		{ "A(): b",
			"400 The name of a header is empty, or has a character that is not "
			"allowed." },
		{ "\xc3\xa4: b",
			"400 The name of a header is empty, or has a character that is not "
			"allowed." },
		{ " b", "400 A line of the header begins with a space." },
		{ "\tb: c", "400 A line of the header begins with a space." },
		{ " ", "400 A line of the header begins with a space." },
		{ "A: b\rHost: c", "400 A line has a control character." },
		{ "\rA: b", "400 A line has a control character." },
		{ "A: b\r", "400 A line has a control character." },
		{ "A: \x01", "400 A line has a control character." },
		{ "A: \x7f", "400 A line has a control character." },
		{ "Content-Length:", "400 The Content-Length is no number." },
		{ "Content-Length: -1", "400 The Content-Length is no number." },
		{ "Content-Length: +0", "400 The Content-Length is no number." },
		{ "Content-Length: 0, 0", "400 The Content-Length is no number." },
		{ "Content-Length: 0x0", "400 The Content-Length is no number." },
		{ "Content-Length: 0\r\nContent-Length: 0",
			"400 The length of the body is given twice." },
	};
	char text[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "GET: %s", rows[i].why);
		ck_assert_str_eq(header(rows[i].line), text);
		snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n", rows[i].line);
		ck_assert_ptr_nonnull(strstr(parses(text), rows[i].why));
	}
	ck_assert_str_eq(
		parses("GET / HTTP/1.1\r\nHost: a b\r\n"), "GET: 400 The Host has a space.");
	ck_assert_str_eq(
		parses("GET / HTTP/1.1\r\nHost: a\tb\r\n"), "GET: 400 The Host has a space.");
	ck_assert_str_eq(parses_slice(SLICE("GET / HTTP/1.1\r\nA: b\0c\r\n")),
		"GET: 400 A line has a control character.");
}

TEST(whole_headers)
{
	static const char body[] = "GET: 413 A request must not have a body.",
			  twice[] = "GET: 400 The length of the body is given twice.";

	ck_assert_str_eq(
		parses("GET / HTTP/1.1\r\n\r\n"), "GET: 400 A request of HTTP/1.1 has a Host.");
	ck_assert_str_eq(header("Content-Length: 10"), body);
	ck_assert_str_eq(header("Content-Length: 99999999999999999999999"), body);
	ck_assert_str_eq(header("Transfer-Encoding: chunked"), body);
	ck_assert_str_eq(header("Transfer-Encoding: gzip, chunked"), body);
	ck_assert_str_eq(header("Transfer-Encoding: chunked\r\nContent-Length: 0"), twice);
	ck_assert_str_eq(header("Content-Length: 5\r\ntransfer-encoding: chunked"), twice);
	ck_assert_str_eq(parses("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
		"GET: 400 HTTP/1.0 has no Transfer-Encoding.");
}

/* A request with a field that fills it to `n` bytes. The answer to one that is too long needs no more bytes than the maximum. */
static const char *parses_filled(const char *begin, size_t n)
{
	static char text[HTTP_HEAD_MAX + 16];

	memset(text, 'x', sizeof(text));
	slice_write(text, slice_of(begin, strlen(begin)));
	slice_write(text + n - 4, SLICE("\r\n\r\n"));
	return parses_slice(guard_place(slice_of(text, n < HTTP_HEAD_MAX ? n : HTTP_HEAD_MAX)));
}

TEST(sizes)
{
	static const char begin[] = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
	static const char most[] = "The request line and the header have at most 8192 bytes.";
	char text[128];

	ck_assert_str_eq(parses_filled(begin, 4096), "GET / <h> 4096");
	ck_assert_str_eq(parses_filled(begin, HTTP_HEAD_MAX), "GET / <h> 8192");
	snprintf(text, sizeof(text), "GET: 431 %s", most);
	ck_assert_str_eq(parses_filled(begin, HTTP_HEAD_MAX + 1), text);
	snprintf(text, sizeof(text), "HEAD: 414 %s", most);
	ck_assert_str_eq(parses_filled("HEAD /", HTTP_HEAD_MAX + 4), text);
}

TEST(number_of_fields)
{
	static char text[2048];
	int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\n");

	for (int i = 1; i < HTTP_FIELDS_MAX; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "A: b\r\n");
	snprintf(text + n, sizeof(text) - (size_t)n, "\r\n");
	ck_assert_str_eq(parses(text), "GET / <h> 621");
	snprintf(text + n, sizeof(text) - (size_t)n, "A: b\r\n");
	ck_assert_str_eq(parses(text), "GET: 431 A header has at most 100 lines.");
	ck_assert_int_eq(HTTP_FIELDS_MAX, 100);
}
