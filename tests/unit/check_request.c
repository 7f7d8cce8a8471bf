/* Requests that are carried out, then refused ones, and those after which nothing can be parsed. */
#include "requests.h"
#include "unit.h"
#include "util/buf.h"

#define CHECK(cases) request_check_all((cases), sizeof(cases) / sizeof((cases)[0]))

TEST(storage)
{
	static const struct request_case cases[] = {
		{ "set k 1 2 3\r\nabc\r\n", "set k {abc} flags=1 exptime=2" },
		{ "set k 0 0 0\r\n\r\n", "set k {}" },
		{ "set k 4294967295 -1 1\r\nx\r\n", "set k {x} flags=4294967295 exptime=-1" },
		{ "set k 0 2147483647 1\r\nx\r\n", "set k {x} exptime=2147483647" },
		{ "set k 0 -2147483648 1\r\nx\r\n", "set k {x} exptime=-2147483648" },
		{ "set k 0 4294967295 1\r\nx\r\n", "set k {x} exptime=-1" },
		{ "set k 0 0 4 noreply\r\na\r\nb\r\n", "set k {a\r\nb} noreply" },
		{ "set  k  0  0  1  \r\nx\r\n", "set k {x}" },
		{ "set k 0 0 1\nx\n", "set k {x}" },
		{ "set k 0 0 1\nx\r\n", "set k {x}" },
		{ "set k 0 0 1\n\n\n", "set k {\n}" },
		{ "cas k 1 2 1 18446744073709551615\r\nx\r\n",
			"cas k {x} flags=1 exptime=2 number=18446744073709551615" },
	};
	CHECK(cases);
}

TEST(reading)
{
	static const struct request_case cases[] = {
		{ "get a\r\n", "get a keys=1" },
		{ " get  a \r\n", "get a keys=1" },
		{ "get a b  c\r\n", "get a [b  c] keys=3" },
		{ "get a b c d e\r\n", "get a [b c d e] keys=5" },
		{ "get a noreply\r\n", "get a [noreply] keys=2" },
		{ "gat -1 a b\r\n", "gat a [b] exptime=-1 keys=2" },
	};
	CHECK(cases);
}

TEST(one_line)
{
	static const struct request_case cases[] = {
		{ "incr k 0 noreply\r\n", "incr k noreply" },
		{ "delete noreply\r\n", "delete noreply" },
		{ "delete k 0 noreply\r\n", "delete k noreply" },
		{ "touch k 2147483648\r\n", "touch k exptime=-2147483648" },
		{ "touch k -1 noreply\r\n", "touch k exptime=-1 noreply" },
		{ "flush_all 0 noreply\r\n", "flush_all  noreply" },
		{ "verbosity 1 noreply\r\n", "verbosity  [1] noreply" },
	};
	CHECK(cases);
}

TEST(meta)
{
	static const struct request_case cases[] = {
		{ "mg k v q O1 k\r\n", "mg k [v q O1 k]" },
		{ "mg k noreply\r\n", "refused CLIENT_ERROR invalid flag" },
		{ "ms k 3 T10 F1\r\nabc\r\n", "ms k [T10 F1] {abc}" },
		{ "ms k 1\nx\n", "ms k {x}" },
	};
	CHECK(cases);
}

TEST(sets)
{
	static const struct request_case cases[] = {
		{ "sadd k noreply noreply  \r\n", "sadd k [noreply] noreply" },
		{ "sismember k noreply\r\n", "sismember k [noreply]" },
		{ "smembers a b c\r\n", "smembers a [b c] keys=3" },
	};
	CHECK(cases);
}

TEST(events)
{
	static const struct request_case cases[] = {
		{ "evincr E 5 1424450096 noreply\r\n", "evincr E [5 1424450096] noreply" },
		{ "evadd E 1 2 3 0\r\nabc\r\n", "evadd E {abc} flags=1 exptime=2 number=0" },
		{ "evadd E 0 0 3 1424450096 noreply\r\nabc\r\n",
			"evadd E {abc} number=1424450096 noreply" },
	};
	CHECK(cases);
}

/* A line, with its end, of exactly the limit; a value and a number of keys of exactly the limit. */
TEST(up_to_the_limits)
{
	struct buf in = BUF_EMPTY, outcome = BUF_EMPTY;

	BUF_ADD(&in, "sadd k");
	BUF_ADD(&outcome, "sadd k [");
	while (buf_size(&in) + 4 <= request_test_limits.max_line) {
		BUF_ADD(&in, " m");
		buf_printf(&outcome, "%sm", buf_size(&outcome) > 8 ? " " : "");
	}
	BUF_ADD(&in, "\r\n");
	BUF_ADD(&outcome, "]\0");
	ck_assert_uint_eq(buf_size(&in), request_test_limits.max_line);
	request_check(buf_slice(&in), buf_slice(&outcome).p);
	buf_free(&in);
	buf_free(&outcome);
	buf_printf(&in, "set k 0 0 1000\r\n%1000d\r\n", 1);
	buf_printf(&outcome, "set k {%1000d}", 1);
	request_check(buf_slice(&in), (BUF_ADD(&outcome, "\0"), buf_slice(&outcome).p));
	buf_free(&in);
	buf_free(&outcome);
}

/* Parsed bytes are not read again, however the rest arrives: a change of them is not noticed. */
TEST(nothing_is_read_twice)
{
	char in[] = "set   k 0 0 12\r\nhello, world\r\nget";
	const size_t line = strlen("set   k 0 0 12\r\n"), whole = sizeof(in) - 1 - strlen("get");
	struct request_progress progress = { 0 };
	struct request r;

	for (size_t n = 1; n < line; n++) {
		ck_assert_int_eq(
			request_parse(slice_of(in, n), &request_test_limits, &progress, &r),
			REQUEST_MORE);
		in[n - 1] = '\n';
	}
	memcpy(in, "set   k 0 0 12\r\n", line);
	ck_assert_int_eq(request_parse(slice_of(in, line), &request_test_limits, &progress, &r),
		REQUEST_MORE);
	memset(in, '\n', line);
	for (size_t n = line + 1; n <= line + 12; n++)
		ck_assert_int_eq(
			request_parse(slice_of(in, n), &request_test_limits, &progress, &r),
			REQUEST_MORE);
	memcpy(in, "set   k 0 0 12\r\n", line);
	ck_assert_int_eq(
		request_parse(slice_of(in, whole - 1), &request_test_limits, &progress, &r),
		REQUEST_MORE);
	ck_assert_int_eq(request_parse(slice_of(in, whole), &request_test_limits, &progress, &r),
		REQUEST_READY);
	ck_assert_uint_eq(r.consumed, whole);
	assert_bytes(r.data, "hello, world");
}

/* `before`, a key of `n` bytes, `after`. */
static enum request_status parse_key(
	const char *before, int n, const char *after, struct request *r)
{
	char in[512];
	struct request_progress progress = { 0 };
	int length = snprintf(in, sizeof(in), "%s%0*d%s", before, n, 0, after);

	return request_parse(
		guard_place(slice_of(in, (size_t)length)), &request_test_limits, &progress, r);
}

TEST(longest_keys)
{
	const struct {
		const char *before, *after;
		int max;
	} lines[] = {
		{ "get ", "\r\n", KEY_MAX },
		{ "delete ", "\r\n", KEY_MAX },
		{ "set ", " 0 0 1\r\nx\r\n", KEY_MAX },
		{ "mg ", " v\r\n", KEY_MAX },
		{ "ms ", " 1\r\nx\r\n", KEY_MAX },
		{ "smembers a ", "\r\n", COLLECTION_KEY_MAX },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct request r;
		ck_assert_int_eq(parse_key(lines[i].before, lines[i].max, lines[i].after, &r),
			REQUEST_READY);
		ck_assert_int_eq(parse_key(lines[i].before, lines[i].max + 1, lines[i].after, &r),
			REQUEST_REFUSED);
		ck_assert_str_eq(r.error, "CLIENT_ERROR key too long");
	}
}

TEST(valid_keys)
{
	char key[] = "k?y";

	for (int c = 0; c < 256; c++) {
		key[1] = (char)c;
		ck_assert_int_eq(
			request_key_valid(guard_place(slice_of(key, 3)), 3), c > 0x20 && c != 0x7f);
	}
	ck_assert(!request_key_valid(SLICE(""), 3));
	ck_assert(!request_key_valid(SLICE("abcd"), 3));
	ck_assert(request_key_valid(SLICE("abc"), 3));
}

/* --- refused --- */

/* The error is the usage of the command. */
#define BAD_FORMAT "refused usage"

TEST(unknown)
{
	static const struct request_case cases[] = {
		{ "getx a\r\n", "refused ERROR" },
		{ "get  \r\n", "refused ERROR" },
		{ "gat\r\n", BAD_FORMAT },
		{ "incr k\r\n", BAD_FORMAT },
		{ "incr k 1 2\r\n", BAD_FORMAT },
		{ "sunion  \r\n", BAD_FORMAT },
	};
	CHECK(cases);
}

TEST(other_protocols)
{
	static const struct request_case cases[] = {
		{ "GET / HTTP/1.1\r\n", "hang up" },
		{ "POST /x HTTP/1.0\r\n", "hang up" },
		{ "HTTP/\r\n", "hang up" },
		{ "*1\r\n$4\r\nPING\r\n",
			"fatal CLIENT_ERROR only the memcached protocols are supported here" },
		{ "\x80\x0b",
			"fatal CLIENT_ERROR only the memcached protocols are supported here" },
		{ "\x16\x03\x01",
			"fatal CLIENT_ERROR only the memcached protocols are supported here" },
	};
	CHECK(cases);
}

TEST(bad_lines)
{
	static const struct request_case cases[] = {
		{ "decr k x noreply\r\n",
			"refused CLIENT_ERROR invalid numeric delta argument noreply" },
		{ "delete k 1\r\n", BAD_FORMAT },
		{ "delete k 0 0\r\n", BAD_FORMAT },
		{ "touch k 4294967296\r\n", "refused CLIENT_ERROR invalid exptime argument" },
		{ "gat x k\r\n", "refused CLIENT_ERROR invalid exptime argument" },
		{ "flush_all 1 2\r\n", BAD_FORMAT },
		{ "get a b c d e f\r\n", "refused CLIENT_ERROR too many keys" },
		{ "smembers a b c d e f\r\n", "refused CLIENT_ERROR too many keys" },
		{ "get a\x01\r\n", "get a\x01 keys=1" },
		{ "get a\x7f\r\n", "get a\x7f keys=1" },
		{ "get a\r b\r\n", "get a\r [b] keys=2" },
		{ "get a\r\r\n", "get a\r keys=1" },
		{ "incr a 1\x01\r\n", "refused CLIENT_ERROR invalid numeric delta argument" },
		{ "delete a \x01\r\n", BAD_FORMAT },
		{ "route a\x01\r\n", "refused CLIENT_ERROR control character in line" },
		{ "sadd k a\tb\r\n", "refused CLIENT_ERROR control character in line" },
		{ "mg k\x01\r\n", "mg k\x01" },
		{ "mg k v\x01\r\n", "refused CLIENT_ERROR control character in line" },
	};
	CHECK(cases);
}

/* A zero byte is a control byte as well, at any position. */
TEST(zero_bytes)
{
	request_check(SLICE("get a\0\r\n"), "refused CLIENT_ERROR control character in line");
	request_check(SLICE("get a\0b\r\n"), "refused CLIENT_ERROR control character in line");
	request_check(SLICE("\0get a\r\n"), "refused ERROR");
	request_check(SLICE("set k\0 0 0 1\r\n"),
		"refused CLIENT_ERROR control character in line skip=3");
}

/* The line is wrong, but where its data ends is known: they are thrown away. */
TEST(block_is_skipped)
{
	static const struct request_case cases[] = {
		{ "set k x 0 3\n", BAD_FORMAT " skip=3 end" },
		{ "set k 0 x 3 noreply\r\n", BAD_FORMAT " skip=5 noreply" },
		{ "set k 0 4294967296 3\r\n", BAD_FORMAT " skip=5" },
		{ "set k 0 0 3 4\r\n", BAD_FORMAT " skip=5" },
		{ "cas k 0 0 3 noreply\r\n", BAD_FORMAT " skip=5 noreply" },
		{ "cas k 0 0 3 1 2\r\n", BAD_FORMAT " skip=5" },
		{ "set k 0 0 1001\r\n",
			"refused SERVER_ERROR object too large for cache skip=1003" },
		{ "set k 0 0 2147483645\r\n",
			"refused SERVER_ERROR object too large for cache skip=2147483647" },
		{ "ms k 1001\r\n", "refused SERVER_ERROR object too large for cache skip=1003" },
		{ "set k\x01 0 0 x\r\n", "fatal usage" },
		{ "ms k 3 v\x01\r\n", "refused CLIENT_ERROR control character in line skip=5" },
	};
	CHECK(cases);
}

/* The length is missing: nothing that follows is treated as data. */
TEST(no_length)
{
	static const struct request_case cases[] = {
		{ "set k 0\r\n", BAD_FORMAT },
		{ "set k 0 0 noreply\r\n", BAD_FORMAT " noreply" },
		{ "ms  k\r\n", BAD_FORMAT },
		{ "set  k\r\n", BAD_FORMAT },
	};
	CHECK(cases);
}

/* Of a client whose key is empty: two spaces, and a word less. Its data must not run as commands. */
TEST(empty_keys)
{
	static const struct request_case cases[] = {
		{ "ms  17\r\n", BAD_FORMAT " skip=19" },
		{ "ms   17\n", BAD_FORMAT " skip=17 end" },
		{ "ms  17 T0 q\r\n", BAD_FORMAT " skip=19" },
		{ "set  0 0 5\r\n", BAD_FORMAT " skip=7" },
		{ "set  0 0 5 noreply\r\n", BAD_FORMAT " skip=7 noreply" },
		{ "append    0 0 5\r\n", BAD_FORMAT " skip=7" },
		{ "set  0 0 x\r\n", "fatal usage" },
		{ "evadd  0 0 5\r\n", BAD_FORMAT " skip=7" },
		{ "evadd  0 0 5 99\r\n", "fatal usage" },
		{ "cas  0 0 5 99\r\n", "fatal usage" },
		{ "ms  k 1\r\nx\r\n", "ms k {x}" },
		{ "ms  5 1\r\nx\r\n", "ms 5 {x}" },
		{ "set  k 0 0 1\r\nx\r\n", "set k {x}" },
		{ "cas  k 0 0 1 9\r\nx\r\n", "cas k {x} number=9" },
		{ "evadd  E 0 0 1\r\nx\r\n", "evadd E {x}" },
	};
	CHECK(cases);
}

/*
 * As in memcached, a client that requests no reply receives none, whatever is wrong with its line.
 */
TEST(noreply)
{
	static const struct request_case cases[] = {
		{ "incr a\x01 1 noreply\r\n", "incr a\x01 number=1 noreply" },
		{ "sadd k \x01 noreply\r\n",
			"refused CLIENT_ERROR control character in line noreply" },
		{ "touch k\x7f 1 noreply\r\n", "touch k\x7f exptime=1 noreply" },
		{ "delete a\tb noreply\r\n", "delete a\tb noreply" },
		{ "evincr a\tb 1 noreply\r\n",
			"refused CLIENT_ERROR control character in line noreply" },
		{ "evadd k\x01 0 0 3 noreply\r\n",
			"refused CLIENT_ERROR control character in line skip=5 noreply" },
		{ "get a\x01 noreply\r\n", "get a\x01 [noreply] keys=2" },
		{ "set k 0 0 1001 noreply\r\n",
			"refused SERVER_ERROR object too large for cache skip=1003 noreply" },
	};
	CHECK(cases);
}

/* An answer of memcached to `me` names the key with all of its bytes. */
TEST(debug_keys)
{
	static const struct request_case cases[] = {
		{ "me YSBi b\r\n",
			"refused CLIENT_ERROR me takes no key with spaces or control characters" },
		{ "me ! b x\r\n", "refused CLIENT_ERROR error decoding key" },
		{ "me ! x b\r\n", "me ! [x b]" },
	};
	CHECK(cases);
}

/* An invalid length: the following bytes cannot be attributed. */
TEST(bad_length)
{
	static const struct request_case cases[] = {
		{ "set k 0 0 -1\r\n", "fatal usage" },
		{ "set k 0 0 x\r\n", "fatal usage" },
		{ "set k 0 0 1x\r\n", "fatal usage" },
		{ "set k 0 0 2147483646\r\n", "fatal usage" },
		{ "set k 0 0 4294967295\r\n", "fatal usage" },
		{ "set k 0 0 4294967297\r\n", "fatal usage" },
		{ "set k 0 0 18446744073709551616\r\n", "fatal usage" },
		{ "set k 0 0 18446744073709551615\r\n", "fatal usage" },
		{ "ms k S1\r\n", "fatal usage" },
		{ "ms k -1 q\r\n", "fatal usage" },
	};
	CHECK(cases);
}

TEST(bad_data_chunk)
{
	static const struct request_case cases[] = {
		{ "set k 0 0 3\r\nabcd\r\n", "fatal CLIENT_ERROR bad data chunk" },
		{ "set k 0 0 3\r\nabc\n", "fatal CLIENT_ERROR bad data chunk" },
		{ "set k 0 0 4\r\nabc\r\n", "fatal CLIENT_ERROR bad data chunk" },
		{ "set k 0 0 3\nabcd\n", "fatal CLIENT_ERROR bad data chunk" },
		{ "set k 0 0 3\r\nabc\rd\r\n", "fatal CLIENT_ERROR bad data chunk" },
		{ "set k 0 0 3 noreply\r\nabcdefgh\r\n", "fatal CLIENT_ERROR bad data chunk" },
		{ "ms k 3\r\nabcd\r\n", "fatal CLIENT_ERROR bad data chunk" },
	};
	CHECK(cases);
}

/* Refused as soon as it is too long, whether its end has arrived or not. */
TEST(line_too_long)
{
	struct buf in = BUF_EMPTY;
	struct request r;
	struct request_progress progress = { 0 };

	BUF_ADD(&in, "sadd k ");
	while (buf_size(&in) < request_test_limits.max_line)
		BUF_ADD(&in, "m");
	struct slice text = buf_slice(&in);
	ck_assert_int_eq(request_parse(guard_place(slice_of(text.p, text.n - 1)),
				 &request_test_limits, &progress, &r),
		REQUEST_MORE);
	ck_assert_int_eq(request_parse(guard_place(text), &request_test_limits, &progress, &r),
		REQUEST_FATAL);
	ck_assert_str_eq(r.error, "CLIENT_ERROR line too long");
	BUF_ADD(&in, "\n");
	progress = (struct request_progress){ 0 };
	ck_assert_int_eq(
		request_parse(guard_place(buf_slice(&in)), &request_test_limits, &progress, &r),
		REQUEST_FATAL);
	buf_free(&in);
}

/*
 * memcached accepts no longer ones, so they must not be passed on; but the client may receive an
 * error.
 */
TEST(meta_line_too_long)
{
	char in[META_LINE_MAX + 16], outcome[64];
	int n = snprintf(in, sizeof(in), "mg k L%0*d\r\n", META_LINE_MAX - 6, 0);

	ck_assert_int_eq(n, META_LINE_MAX + 2);
	struct request r;
	struct request_progress progress = { 0 };
	ck_assert_int_eq(request_parse(guard_place(slice_of(in, (size_t)n)), &request_test_limits,
				 &progress, &r),
		REQUEST_READY);
	n = snprintf(in, sizeof(in), "mg k L%0*d\r\n", META_LINE_MAX - 5, 0);
	request_check(slice_of(in, (size_t)n), "refused CLIENT_ERROR line too long");
	n = snprintf(in, sizeof(in), "ms k 9 L%0*d\r\n", META_LINE_MAX - 5, 0);
	snprintf(outcome, sizeof(outcome), "refused CLIENT_ERROR line too long skip=11");
	request_check(slice_of(in, (size_t)n), outcome);
}

TEST(long_keys_before_a_block)
{
	char in[512];
	int n = snprintf(in, sizeof(in), "set %0251d 0 0 3\r\n", 0);

	request_check(slice_of(in, (size_t)n), "refused CLIENT_ERROR key too long skip=5");
	n = snprintf(in, sizeof(in), "ms %0251d 3\r\n", 0);
	request_check(slice_of(in, (size_t)n), "refused CLIENT_ERROR key too long skip=5");
}
