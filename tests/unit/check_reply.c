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
