
#include "dialects.h"
#include "unit.h"
#include "util/buf.h"

static const struct dialect *const classic = &dialect_classic;

TEST(encode_storage)
{
	struct call call = { .verb = CALL_SET,
		.key = SLICE("k"),
		.value = SLICE("a\r\nb"),
		.flags = UINT32_MAX,
		.exptime = -1,
		.number = 7 };

	dialect_encodes(classic, &call, "set k 4294967295 -1 4\r\na\r\nb\r\n");
	call = (struct call){ .verb = CALL_ADD, .key = SLICE("k"), .value = SLICE("") };
	dialect_encodes(classic, &call, "add k 0 0 0\r\n\r\n");
	call.verb = CALL_REPLACE;
	dialect_encodes(classic, &call, "replace k 0 0 0\r\n\r\n");
	call.verb = CALL_APPEND;
	dialect_encodes(classic, &call, "append k 0 0 0\r\n\r\n");
	call.verb = CALL_PREPEND;
	dialect_encodes(classic, &call, "prepend k 0 0 0\r\n\r\n");
	call.verb = CALL_CAS;
	call.number = UINT64_MAX;
	dialect_encodes(classic, &call, "cas k 0 0 0 18446744073709551615\r\n\r\n");
}

TEST(encode_lines)
{
	struct call call = { .verb = CALL_GET, .key = SLICE("k"), .want = WANT_VALUE };

	dialect_encodes(classic, &call, "get k\r\n");
	call.want |= WANT_CAS;
	dialect_encodes(classic, &call, "gets k\r\n");
	call.verb = CALL_GAT;
	call.exptime = -5;
	dialect_encodes(classic, &call, "gats -5 k\r\n");
	call.want = WANT_VALUE;
	dialect_encodes(classic, &call, "gat -5 k\r\n");
	call.verb = CALL_TOUCH;
	dialect_encodes(classic, &call, "touch k -5\r\n");
	call.verb = CALL_INCR;
	call.number = UINT64_MAX;
	dialect_encodes(classic, &call, "incr k 18446744073709551615\r\n");
	call.verb = CALL_DECR;
	dialect_encodes(classic, &call, "decr k 18446744073709551615\r\n");
	call.verb = CALL_DELETE;
	dialect_encodes(classic, &call, "delete k\r\n");
}

TEST(encode_without_a_key)
{
	struct call call = { .verb = CALL_FLUSH_ALL };

	dialect_encodes(classic, &call, "flush_all\r\n");
	call.exptime = 10;
	dialect_encodes(classic, &call, "flush_all 10\r\n");
	call = (struct call){ .verb = CALL_VERSION };
	dialect_encodes(classic, &call, "version\r\n");
	call = (struct call){ .verb = CALL_NOOP };
	dialect_encodes(classic, &call, "mn\r\n");
	call = (struct call){ .verb = CALL_STATS, .line = SLICE("settings") };
	dialect_encodes(classic, &call, "stats settings\r\n");
	call = (struct call){
		.verb = CALL_META, .key = SLICE("k"), .line = SLICE("mg k v"), .value = SLICE("x")
	};
	dialect_encodes(classic, &call, "mg k v\r\n");
	call.line = SLICE("ms k 1");
	call.has_value = true;
	dialect_encodes(classic, &call, "ms k 1\r\nx\r\n");
}

TEST(decode_get)
{
	static const struct expect expect = { CALL_GET, WANT_VALUE, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "END\r\n", "miss" },
		{ "END\n", "miss" },
		{ "VALUE k 7 3\r\nabc\r\nEND\r\n", "hit {abc} flags=7 ttl=-2 size=3" },
		{ "VALUE k 0 0\r\n\r\nEND\r\n", "hit {} ttl=-2" },
		{ "VALUE k 0 5\r\nEND\r\n\r\nEND\r\n", "hit {END\r\n} ttl=-2 size=5" },
		{ "VALUE k 0 3 5\r\nabc\r\nEND\r\n", "garbage" },
		{ "VALUE k 0 3\r\nabcd\r\nEND\r\n", "garbage" },
		{ "VALUE k 0 3\r\nabc\rxEND\r\n", "garbage" },
		{ "VALUE k 0 3\r\nabc\nEND\r\n", "garbage" },
		{ "VALUE k 0 3\r\nabc\r\nVALUE k 0 3\r\n", "garbage" },
		{ "VALUE k 0 3\r\nabc\r\nSTORED\r\n", "garbage" },
		{ "VALUE other 0 3\r\nabc\r\nEND\r\n", "garbage" },
		{ "VALUE K 0 3\r\nabc\r\nEND\r\n", "garbage" },
		{ "VALUE k 4294967296 3\r\nabc\r\nEND\r\n", "garbage" },
		{ "VALUE k 0 -1\r\n", "garbage" },
		{ "VALUE k 0 4294967295\r\n", "garbage" },
		{ "VALUE k 0 18446744073709551615\r\n", "garbage" },
		{ "VALUE k 0 18446744073709551616\r\n", "garbage" },
		{ "VALUE k 0 1x\r\n", "garbage" },
		{ "VALUE k 0\r\n", "garbage" },
		{ "VALUE k\r\n", "garbage" },
		{ "VALUE\r\n", "garbage" },
		{ "\r\n", "garbage" },
		{ "STORED\r\n", "garbage" },
		{ "EN\r\n", "garbage" },
		{ "ERROR\r\n", "refused [ERROR]" },
		{ "CLIENT_ERROR bad command line format\r\n",
			"refused [CLIENT_ERROR bad command line format]" },
		{ "SERVER_ERROR out of memory\r\n", "refused [SERVER_ERROR out of memory]" },
		{ "ERROR Too many open connections\r\n",
			"refused [ERROR Too many open connections] suspect" },
		{ "SERVER_ERRORS\r\n", "garbage" },
	};
	DECODES(classic, &expect, cases);
}

TEST(decode_gets)
{
	static const struct expect expect = { CALL_GAT, WANT_VALUE | WANT_CAS, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "END\r\n", "miss" },
		{ "VALUE k 0 1 18446744073709551615\r\nx\r\nEND\r\n",
			"hit {x} cas=18446744073709551615 ttl=-2 size=1" },
		{ "VALUE k 0 1\r\nx\r\nEND\r\n", "garbage" },
		{ "VALUE k 0 1 x\r\nx\r\nEND\r\n", "garbage" },
		{ "VALUE k 0 1 1 1\r\nx\r\nEND\r\n", "garbage" },
	};
	DECODES(classic, &expect, cases);
}

/* Which words answer which verb; every other one is garbage. */
TEST(decode_words)
{
	static const char *const words[] = { "STORED", "NOT_STORED", "EXISTS", "NOT_FOUND",
		"DELETED", "TOUCHED", "OK", "5", "HD", "END", "stored", "STORED " };
	static const struct {
		enum call_verb verb;
		const char *outcomes[12];
	} verbs[] = {
		{ CALL_SET, { "done", "not stored" } },
		{ CALL_ADD, { "done", "not stored" } },
		{ CALL_REPLACE, { "done", "not stored" } },
		{ CALL_APPEND, { "done", "not stored" } },
		{ CALL_PREPEND, { "done", "not stored" } },
		{ CALL_CAS, { "done", NULL, "exists", "miss" } },
		{ CALL_INCR, { NULL, NULL, NULL, "miss", NULL, NULL, NULL, "number 5" } },
		{ CALL_DECR, { NULL, NULL, NULL, "miss", NULL, NULL, NULL, "number 5" } },
		{ CALL_DELETE, { NULL, NULL, NULL, "miss", "done" } },
		{ CALL_TOUCH, { NULL, NULL, NULL, "miss", NULL, "done" } },
		{ CALL_FLUSH_ALL, { NULL, NULL, NULL, NULL, NULL, NULL, "done" } },
	};
	char reply[64];

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct expect expect = { verbs[i].verb, 0, SLICE("k"), 0 };
		for (size_t j = 0; j < 12; j++) {
			const char *outcome =
				verbs[i].outcomes[j] ? verbs[i].outcomes[j] : "garbage";
			int n = snprintf(reply, sizeof(reply), "%s\r\n", words[j]);
			dialect_decodes(classic, &expect, slice_of(reply, (size_t)n), outcome);
		}
	}
}

TEST(decode_numbers)
{
	static const struct expect expect = { CALL_INCR, 0, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "18446744073709551615\r\n", "number 18446744073709551615" },
		{ "0\r\n", "number 0" },
		{ "18446744073709551616\r\n", "garbage" },
		{ "-1\r\n", "garbage" },
		{ "1 2\r\n", "garbage" },
		{ "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
			"refused [CLIENT_ERROR cannot increment or decrement non-numeric value]" },
	};
	DECODES(classic, &expect, cases);
}

/* A server that refuses the data has parsed them as commands. */
TEST(decode_errors_of_storage)
{
	static const struct expect expect = { CALL_SET, 0, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "ERROR\r\n", "refused [ERROR] suspect" },
		{ "CLIENT_ERROR bad data chunk\r\n",
			"refused [CLIENT_ERROR bad data chunk] suspect" },
		{ "SERVER_ERROR object too large for cache\r\n",
			"refused [SERVER_ERROR object too large for cache]" },
		{ "SERVER_ERROR out of memory storing object\r\n",
			"refused [SERVER_ERROR out of memory storing object]" },
	};
	DECODES(classic, &expect, cases);
}

TEST(decode_passed)
{
	static const struct expect expect = { CALL_META, 0, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "HD\r\n", "text [HD]" },
		{ "HD O1 k\r\n", "text [HD O1 k]" },
		{ "EN\r\n", "text [EN]" },
		{ "NF q\r\n", "text [NF q]" },
		{ "NS\r\n", "text [NS]" },
		{ "EX\r\n", "text [EX]" },
		{ "ME k exp=-1 la=2\r\n", "text [ME k exp=-1 la=2]" },
		{ "VA 3 f0\r\nabc\r\n", "text [VA 3 f0] {abc}" },
		{ "VA 0\r\n\r\n", "text [VA 0] {}" },
		{ "VA 3\r\nabcd\r\n", "garbage" },
		{ "VA 3\r\nabc\n\n", "garbage" },
		{ "VA\r\n", "garbage" },
		{ "VA -1\r\n", "garbage" },
		{ "VA 4294967295\r\n", "garbage" },
		{ "VA 18446744073709551616\r\n", "garbage" },
		{ "MN\r\n", "garbage" },
		{ "STORED\r\n", "garbage" },
		{ "CLIENT_ERROR invalid flag\r\n", "refused [CLIENT_ERROR invalid flag]" },
	};
	/*
	 * The line of a refusal belongs to the reply; that of VA is kept together with the value.
	 */
	DECODES(classic, &expect, cases);
}

/* No-ops around a command: their replies are not part of its reply. */
TEST(decode_between_noops)
{
	static const struct expect flushed = { CALL_META, WANT_FLUSH, { "k", 1 }, 0 },
				   fenced = { CALL_META, WANT_FENCE, { "k", 1 }, 0 },
				   both = { CALL_META, WANT_FLUSH | WANT_FENCE, { "k", 1 }, 0 };
	static const struct reply_case after[] = {
		{ "MN\r\nHD\r\n", "text [HD]" },
		{ "MN\r\nVA 1\r\n5\r\n", "text [VA 1] {5}" },
		{ "MN\r\nCLIENT_ERROR no\r\n", "refused [CLIENT_ERROR no]" },
		{ "MN\r\nMN\r\n", "garbage" },
		{ "HD\r\n", "garbage" },
	};
	static const struct reply_case before[] = {
		{ "HD\r\nMN\r\n", "text [HD]" },
		{ "VA 1\r\n5\r\nMN\r\n", "text [VA 1] {5}" },
		{ "MN\r\n", "text [MN]" },
		{ "SERVER_ERROR out of memory\r\nMN\r\n", "refused [SERVER_ERROR out of memory]" },
		{ "HD\r\nHD\r\n", "garbage" },
	};
	static const struct reply_case around[] = {
		{ "MN\r\nMN\r\n", "text [MN]" },
		{ "MN\r\nNF\r\nMN\r\n", "text [NF]" },
	};
	struct call call = {
		.verb = CALL_META, .want = WANT_FLUSH | WANT_FENCE, .line = SLICE("ma k T1 N0 q")
	};

	dialect_encodes(classic, &call, "mn\r\nma k T1 N0 q\r\nmn\r\n");
	DECODES(classic, &flushed, after);
	DECODES(classic, &fenced, before);
	DECODES(classic, &both, around);
}

TEST(discard)
{
	static const struct expect expect = { CALL_DISCARD, 0, { "k", 1 }, 0 };
	static const struct reply_case cases[] = {
		{ "DELETED\r\n", "too large" },
		{ "NOT_FOUND\r\n", "too large" },
		{ "HD\r\n", "too large" },
		{ "NF\r\n", "too large" },
		{ "SERVER_ERROR no\r\n", "refused [SERVER_ERROR no]" },
		{ "STORED\r\n", "garbage" },
	};
	struct call call = { .verb = CALL_DISCARD, .key = SLICE("k") };

	dialect_encodes(classic, &call, "delete k\r\n");
	call.key = SLICE("a b");
	dialect_encodes(classic, &call, "md YSBi b\r\n");
	call.key = SLICE("\xff\xfe\r\n");
	dialect_encodes(classic, &call, "md //4NCg== b\r\n");
	DECODES(classic, &expect, cases);
}

TEST(decode_stats)
{
	static const struct expect expect = { CALL_STATS, 0, { "", 0 }, 0 };
	static const struct reply_case cases[] = {
		{ "END\r\n", "text []" },
		{ "STAT a 1\r\nSTAT b 2\r\nEND\r\n", "text [STAT a 1\r\nSTAT b 2\r\n]" },
		{ "STAT a 1\r\nERROR\r\n", "garbage" },
		{ "STORED\r\n", "garbage" },
		{ "ERROR\r\n", "refused [ERROR]" },
	};
	DECODES(classic, &expect, cases);
}

/* Lines and replies without an end are not waited for without an end. */
TEST(bounded)
{
	struct buf in = BUF_EMPTY;
	struct result r = { 0 };
	struct expect get = { CALL_GET, WANT_VALUE, SLICE("k"), 0 },
		      stats = { CALL_STATS, 0, SLICE(""), 0 };

	while (buf_size(&in) < DIALECT_LINE_MAX - 1)
		BUF_ADD(&in, "x");
	ck_assert_int_eq(classic->decode(guard_place(buf_slice(&in)), &get, &r), 0);
	BUF_ADD(&in, "x");
	ck_assert_int_eq(classic->decode(guard_place(buf_slice(&in)), &get, &r), -1);
	BUF_ADD(&in, "\r\n");
	ck_assert_int_eq(classic->decode(guard_place(buf_slice(&in)), &get, &r), -1);
	buf_free(&in);
	while (buf_size(&in) <= DIALECT_STATS_MAX)
		BUF_ADD(&in, "STAT a 1\r\n");
	ck_assert_int_eq(classic->decode(guard_place(buf_slice(&in)), &stats, &r), -1);
	buf_free(&in);
	BUF_ADD(&in, "VALUE k 0 1\r\nx\r\n");
	while (buf_size(&in) < 16 + DIALECT_LINE_MAX)
		BUF_ADD(&in, "E");
	ck_assert_int_eq(classic->decode(guard_place(buf_slice(&in)), &get, &r), -1);
	buf_free(&in);
}
