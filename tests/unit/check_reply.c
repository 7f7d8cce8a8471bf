#include "protocol/reply.h"
#include "unit.h"
#include "util/buf.h"

static struct buf out;

static void says(const char *expected)
{
	assert_bytes(buf_slice(&out), expected);
	buf_free(&out);
}

TEST(lines)
{
	reply_line(&out, SLICE("STORED"));
	reply_text(&out, "END");
	reply_number(&out, UINT64_MAX);
	reply_stat(&out, "a", 0);
	reply_stat_text(&out, "b", "x y");
	says("STORED\r\nEND\r\n18446744073709551615\r\nSTAT a 0\r\nSTAT b x y\r\n");
}

TEST(values)
{
	struct result r = { .value = SLICE("a\r\nb"), .flags = UINT32_MAX, .cas = UINT64_MAX };
	uint64_t none = 0;

	reply_value(&out, SLICE("k"), &r, false);
	says("VALUE k 4294967295 4\r\na\r\nb\r\n");
	reply_value(&out, SLICE("k"), &r, true);
	says("VALUE k 4294967295 4 18446744073709551615\r\na\r\nb\r\n");
	reply_value_head(&out, SLICE("k"), 0, 0, &none);
	says("VALUE k 0 0 0\r\n");
}

TEST(failures)
{
	static const struct {
		enum result_status status;
		const char *line;
	} cases[] = {
		{ RESULT_REFUSED, "CLIENT_ERROR what the server said\r\n" },
		{ RESULT_TOO_LARGE, "SERVER_ERROR object too large for cache\r\n" },
		{ RESULT_BUSY, "SERVER_ERROR busy\r\n" },
		{ RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:1 unavailable\r\n" },
		{ RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:1 timed out, outcome unknown\r\n" },
		{ RESULT_LOST, "SERVER_ERROR upstream mc:1 connection lost, outcome unknown\r\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result r = {
			.status = cases[i].status, .server = "mc:1", .line = SLICE("CLIENT_ERROR what the server said")
		};
		ck_assert(result_failed(&r));
		reply_failure(&out, &r);
		says(cases[i].line);
	}
	for (enum result_status status = RESULT_HIT; status < RESULT_REFUSED; status++)
		ck_assert(!result_failed(&(struct result){ .status = status }));
}

/* --- reading --- */

/* The parts of a reply, one after the other. */
static const char *reads(const char *written)
{
	static const char *const kinds[] = { "value", "number", "end", "error", "line" };
	static char text[1000];
	struct slice reply = guard_text(written);
	struct reply_part part;
	size_t n = 0;

	text[0] = 0;
	while (reply_next(&reply, &part)) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s <%.*s>", n ? " " : "", kinds[part.kind],
			(int)part.line.n, part.line.p);
		if (part.kind == REPLY_PART_VALUE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " key <%.*s> flags %u cas %llu <%.*s>",
				(int)part.key.n, part.key.p, part.flags, (unsigned long long)part.cas, (int)part.data.n,
				part.data.p);
	}
	return text;
}

TEST(lines_that_are_read)
{
	ck_assert_str_eq(reads(""), "");
	ck_assert_str_eq(reads("STORED\r\n"), "line <STORED>");
	ck_assert_str_eq(reads("12\r\n"), "number <12>");
	ck_assert_str_eq(reads("99999999999999999999\r\n"), "number <99999999999999999999>");
	ck_assert_str_eq(reads("-1\r\n"), "line <-1>");
	ck_assert_str_eq(reads("12 a\r\n"), "line <12 a>");
	ck_assert_str_eq(reads("\r\n"), "line <>");
	ck_assert_str_eq(reads("END\r\n"), "end <END>");
	ck_assert_str_eq(reads("ENDED\r\n"), "line <ENDED>");
	ck_assert_str_eq(reads("ERROR\r\n"), "error <ERROR>");
	ck_assert_str_eq(reads("CLIENT_ERROR no\r\n"), "error <CLIENT_ERROR no>");
	ck_assert_str_eq(reads("SERVER_ERROR busy\r\n"), "error <SERVER_ERROR busy>");
	ck_assert_str_eq(reads("ERRORS\r\n"), "line <ERRORS>");
	ck_assert_str_eq(reads("HD c12 kx\r\n"), "line <HD c12 kx>");
	ck_assert_str_eq(reads("STAT a 1\r\nEND\r\n"), "line <STAT a 1> end <END>");
}

TEST(values_that_are_read)
{
	ck_assert_str_eq(reads("VALUE k 7 3\r\nabc\r\nVALUE l 0 0 9\r\n\r\nEND\r\n"),
		"value <VALUE k 7 3> key <k> flags 7 cas 0 <abc> "
		"value <VALUE l 0 0 9> key <l> flags 0 cas 9 <> end <END>");
	ck_assert_str_eq(reads("VA 5 kx f0\r\nEND\r\n\r\n"), "value <VA 5 kx f0> key <> flags 0 cas 0 <END\r\n>");
	ck_assert_str_eq(reads("VALUE k 0 3\r\n\r\n1\r\n12\r\n"),
		"value <VALUE k 0 3> key <k> flags 0 cas 0 <\r\n1> number <12>");
}
