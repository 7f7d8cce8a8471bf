
#include "protocol/reply.h"
#include "unit.h"

/* The parts of a reply, one after the other. */
static const char *reads(const char *text)
{
	static const char *const kinds[] = { "value", "number", "end", "error", "line" };
	static char out[1000];
	struct slice reply = guard_text(text);
	struct reply_part part;
	size_t n = 0;

	out[0] = 0;
	while (reply_next(&reply, &part)) {
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s <%.*s>", n ? " " : "", kinds[part.kind],
			(int)part.line.n, part.line.p);
		if (part.kind == REPLY_PART_VALUE)
			n += (size_t)snprintf(out + n, sizeof(out) - n, " key <%.*s> flags %u cas %llu <%.*s>",
				(int)part.key.n, part.key.p, part.flags, (unsigned long long)part.cas, (int)part.data.n,
				part.data.p);
	}
	return out;
}

TEST(lines)
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

TEST(values)
{
	ck_assert_str_eq(reads("VALUE k 7 3\r\nabc\r\nVALUE l 0 0 9\r\n\r\nEND\r\n"),
		"value <VALUE k 7 3> key <k> flags 7 cas 0 <abc> "
		"value <VALUE l 0 0 9> key <l> flags 0 cas 9 <> end <END>");
	ck_assert_str_eq(reads("VA 5 kx f0\r\nEND\r\n\r\n"), "value <VA 5 kx f0> key <> flags 0 cas 0 <END\r\n>");
	ck_assert_str_eq(reads("VALUE k 0 3\r\n\r\n1\r\n12\r\n"),
		"value <VALUE k 0 3> key <k> flags 0 cas 0 <\r\n1> number <12>");
}
