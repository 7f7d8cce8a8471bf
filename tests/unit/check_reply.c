/* Replies in the text protocol. */
#include "protocol/reply.h"
#include "unit.h"
#include "util/buf.h"

static void says(struct reply reply, const char *expected)
{
	struct buf out = BUF_EMPTY;
	struct slice tail;

	if (reply_text_form(&out, &reply, NULL, &tail)) {
		ck_assert_ptr_nonnull(reply.shared);
		BUF_ADD(&out, "<shared>");
		buf_add_slice(&out, tail);
	}
	assert_bytes(buf_slice(&out), expected);
	buf_free(&out);
}

TEST(words)
{
	static const char *const lines[WORDS] = {
		[WORD_COUNT] = "COUNT x\r\n",
		[WORD_DELETED] = "DELETED\r\n",
		[WORD_END] = "END\r\n",
		[WORD_EVENT] = "EVENT x\r\n",
		[WORD_EXISTS] = "EXISTS\r\n",
		[WORD_LEASE] = "LEASE x\r\n",
		[WORD_MN] = "MN\r\n",
		[WORD_NOT_FOUND] = "NOT_FOUND\r\n",
		[WORD_NOT_STORED] = "NOT_STORED\r\n",
		[WORD_OK] = "OK\r\n",
		[WORD_RESET] = "RESET\r\n",
		[WORD_STORED] = "STORED\r\n",
		[WORD_TOUCHED] = "TOUCHED\r\n",
		[WORD_VERSION] = "VERSION x\r\n",
		[WORD_WAIT] = "WAIT\r\n",
	};

	for (enum reply_word word = WORD_COUNT; word < WORDS; word++) {
		struct reply r = reply_word(word);
		if (word <= WORD_VERSION)
			r.bytes = SLICE("x");
		says(r, lines[word]);
	}
}

TEST(lines)
{
	says((struct reply){ .kind = REPLY_NOTHING }, "");
	says(reply_number(UINT64_MAX), "18446744073709551615\r\n");
	says(reply_line(SLICE("1 0")), "1 0\r\n");
	says(reply_error(SLICE("SERVER_ERROR busy")), "SERVER_ERROR busy\r\n");
	says((struct reply){ .kind = REPLY_LINES, .bytes = SLICE("STAT a 1\r\nSTAT b 2\r\n") },
		"STAT a 1\r\nSTAT b 2\r\n");
	says((struct reply){ .kind = REPLY_META, .key = SLICE("EN") }, "EN\r\n");
	says((struct reply){ .kind = REPLY_META,
		     .key = SLICE("VA 2 f0"),
		     .has_value = true,
		     .bytes = SLICE("ab") },
		"VA 2 f0\r\nab\r\n");
}

TEST(values)
{
	struct reply r = reply_value(SLICE("k"), SLICE("a\r\nb"));

	r.flags = UINT32_MAX;
	r.cas = UINT64_MAX;
	says(r, "VALUE k 4294967295 4\r\na\r\nb\r\nEND\r\n");
	r.more = r.shows_cas = true;
	says(r, "VALUE k 4294967295 4 18446744073709551615\r\na\r\nb\r\n");
	r.cas = 0;
	r.bytes.n = 0;
	says(r, "VALUE k 4294967295 0 0\r\n\r\n");
}

TEST(shared)
{
	struct reply r = reply_value(SLICE("k"), SLICE(""));
	struct buf text = BUF_EMPTY, line = BUF_EMPTY;

	BUF_ADD(&text, "abc");
	r.shared = shared_create(&text);
	says(r, "VALUE k 0 3\r\n<shared>\r\nEND\r\n");
	r.more = true;
	says(r, "VALUE k 0 3\r\n<shared>\r\n");
	r.kind = REPLY_LINE;
	says(r, "<shared>\r\n");
	reply_add_line(&line, &r);
	assert_bytes(buf_slice(&line), "abc");
	buf_free(&line);
	shared_drop(r.shared);
}

TEST(failures)
{
	static const struct {
		enum result_status status;
		const char *line;
	} cases[] = {
		{ RESULT_REFUSED, "CLIENT_ERROR what the server said" },
		{ RESULT_TOO_LARGE, "SERVER_ERROR object too large for cache" },
		{ RESULT_BUSY, "SERVER_ERROR busy" },
		{ RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:1 unavailable" },
		{ RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:1 timed out, outcome unknown" },
		{ RESULT_LOST, "SERVER_ERROR upstream mc:1 connection lost, outcome unknown" },
	};
	struct buf out = BUF_EMPTY;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result r = { .status = cases[i].status,
			.server = "mc:1",
			.line = SLICE("CLIENT_ERROR what the server said") };
		ck_assert(result_failed(&r));
		reply_add_error(&out, &r);
		assert_bytes(buf_slice(&out), cases[i].line);
		buf_free(&out);
	}
	for (enum result_status status = RESULT_HIT; status < RESULT_REFUSED; status++)
		ck_assert(!result_failed(&(struct result){ .status = status }));
}

TEST(statistics)
{
	struct buf out = BUF_EMPTY;

	reply_add_stat(&out, "a", 0);
	reply_add_stat_text(&out, "b", "x y");
	assert_bytes(buf_slice(&out), "STAT a 0\r\nSTAT b x y\r\n");
	buf_free(&out);
}
