/* Requests that are refused, and those after which nothing can be read. */
#include "requests.h"
#include "unit.h"
#include "util/buf.h"

#define CHECK(cases) request_check_all((cases), sizeof(cases) / sizeof((cases)[0]))
#define BAD_FORMAT "refused CLIENT_ERROR bad command line format"

TEST(unknown)
{
	static const struct request_case cases[] = {
		{ "\r\n", "refused ERROR" },
		{ "\n", "refused ERROR" },
		{ "   \r\n", "refused ERROR" },
		{ "GET a\r\n", "refused ERROR" },
		{ "getx a\r\n", "refused ERROR" },
		{ "ge\r\n", "refused ERROR" },
		{ "watch fetchers\r\n", "refused ERROR" },
		{ "shutdown\r\n", "refused ERROR" },
		{ "lru_crawler enable\r\n", "refused ERROR" },
		{ "cache_memlimit 1\r\n", "refused ERROR" },
		{ "\rget a\r\n", "refused ERROR" },
		{ "get\ta\r\n", "refused ERROR" },
		{ "gets\r\n", "refused ERROR" },
		{ "get  \r\n", "refused ERROR" },
		{ "gat\r\n", "refused ERROR" },
		{ "gat 10\r\n", "refused ERROR" },
		{ "incr k\r\n", BAD_FORMAT },
		{ "incr k 1 2\r\n", BAD_FORMAT },
		{ "touch k\r\n", BAD_FORMAT },
		{ "touch k 1 2\r\n", BAD_FORMAT },
		{ "smembers\r\n", BAD_FORMAT },
		{ "sunion  \r\n", BAD_FORMAT },
		{ "scard\r\n", BAD_FORMAT },
	};
	CHECK(cases);
}

TEST(other_protocols)
{
	static const struct request_case cases[] = {
		{ "GET / HTTP/1.1\r\n", "hang up" },
		{ "POST /x HTTP/1.0\r\n", "hang up" },
		{ "HTTP/\r\n", "hang up" },
		{ "*1\r\n$4\r\nPING\r\n", "fatal CLIENT_ERROR only the protocols of memcached are spoken here" },
		{ "\x80\x0b", "fatal CLIENT_ERROR only the protocols of memcached are spoken here" },
		{ "\x16\x03\x01", "fatal CLIENT_ERROR only the protocols of memcached are spoken here" },
	};
	CHECK(cases);
}

TEST(bad_lines)
{
	static const struct request_case cases[] = {
		{ "incr k -1\r\n", "refused CLIENT_ERROR invalid numeric delta argument" },
		{ "incr k 18446744073709551616\r\n", "refused CLIENT_ERROR invalid numeric delta argument" },
		{ "decr k x noreply\r\n", "refused CLIENT_ERROR invalid numeric delta argument noreply" },
		{ "incr\r\n", BAD_FORMAT },
		{ "delete\r\n", BAD_FORMAT },
		{ "delete k 1\r\n", BAD_FORMAT ".  Usage: delete <key> [noreply]" },
		{ "delete k 0 0\r\n", BAD_FORMAT ".  Usage: delete <key> [noreply]" },
		{ "touch k x\r\n", "refused CLIENT_ERROR invalid exptime argument" },
		{ "touch k 2147483648\r\n", "refused CLIENT_ERROR invalid exptime argument" },
		{ "gat x k\r\n", "refused CLIENT_ERROR invalid exptime argument" },
		{ "flush_all x\r\n", "refused CLIENT_ERROR invalid exptime argument" },
		{ "flush_all 1 2\r\n", BAD_FORMAT },
		{ "get a b c d e f\r\n", "refused CLIENT_ERROR too many keys" },
		{ "smembers a b c d e f\r\n", "refused CLIENT_ERROR too many keys" },
		{ "get a\x01\r\n", "refused CLIENT_ERROR control character in line" },
		{ "get a\x7f\r\n", "refused CLIENT_ERROR control character in line" },
		{ "get a\r b\r\n", "refused CLIENT_ERROR control character in line" },
		{ "get a\r\r\n", "refused CLIENT_ERROR control character in line" },
		{ "sadd k a\tb\r\n", "refused CLIENT_ERROR control character in line" },
		{ "mg k\x01\r\n", "refused CLIENT_ERROR control character in line" },
		{ "sadd\r\n", BAD_FORMAT },
		{ "evincr\r\n", BAD_FORMAT },
		{ "mg\r\n", BAD_FORMAT },
		{ "mg k Z\r\n", "refused CLIENT_ERROR invalid flag" },
		{ "mg k v v\r\n", "refused CLIENT_ERROR duplicate flag" },
		{ "mg ! b\r\n", "refused CLIENT_ERROR error decoding key" },
	};
	CHECK(cases);
}

/* A zero byte is a control byte as well, wherever it stands. */
TEST(zero_bytes)
{
	request_check(SLICE("get a\0\r\n"), "refused CLIENT_ERROR control character in line");
	request_check(SLICE("get a\0b\r\n"), "refused CLIENT_ERROR control character in line");
	request_check(SLICE("sadd k \0\r\n"), "refused CLIENT_ERROR control character in line");
	request_check(SLICE("\0get a\r\n"), "refused ERROR");
	request_check(SLICE("set k\0 0 0 1\r\n"), "refused CLIENT_ERROR control character in line skip=3");
}

/* The line is wrong, but where its data ends is known: they are thrown away. */
TEST(block_is_skipped)
{
	static const struct request_case cases[] = {
		{ "set k x 0 3\r\n", BAD_FORMAT " skip=5" },
		{ "set k x 0 3\n", BAD_FORMAT " skip=3 end" },
		{ "set k -1 0 3\r\n", BAD_FORMAT " skip=5" },
		{ "set k 4294967296 0 3\r\n", BAD_FORMAT " skip=5" },
		{ "set k 0 x 3 noreply\r\n", BAD_FORMAT " skip=5 noreply" },
		{ "set k 0 2147483648 3\r\n", BAD_FORMAT " skip=5" },
		{ "set k 0 0 3 4\r\n", BAD_FORMAT " skip=5" },
		{ "set k 0 0 3 4 5\r\n", BAD_FORMAT " skip=5" },
		{ "cas k 0 0 3\r\n", BAD_FORMAT " skip=5" },
		{ "cas k 0 0 3 noreply\r\n", BAD_FORMAT " skip=5 noreply" },
		{ "cas k 0 0 3 x\r\n", BAD_FORMAT " skip=5" },
		{ "cas k 0 0 3 1 2\r\n", BAD_FORMAT " skip=5" },
		{ "evadd E 0 0 3 x\r\n", BAD_FORMAT " skip=5" },
		{ "set k\x01 0 0 3\r\n", "refused CLIENT_ERROR control character in line skip=5" },
		{ "set k 0 0 1001\r\n", "refused SERVER_ERROR object too large for cache skip=1003" },
		{ "set k 0 0 2147483645\r\n", "refused SERVER_ERROR object too large for cache skip=2147483647" },
		{ "ms k 1001\r\n", "refused SERVER_ERROR object too large for cache skip=1003" },
		{ "ms k 3 Z\r\n", "refused CLIENT_ERROR invalid flag skip=5" },
		{ "ms k\x01 3\r\n", "refused CLIENT_ERROR control character in line skip=5" },
		{ "ms ! 3 b\r\n", "refused CLIENT_ERROR error decoding key skip=5" },
	};
	CHECK(cases);
}

/* No length stands where one should: nothing that follows is taken for data. */
TEST(no_length)
{
	static const struct request_case cases[] = {
		{ "set\r\n", BAD_FORMAT },
		{ "set k\r\n", BAD_FORMAT },
		{ "set k 0\r\n", BAD_FORMAT },
		{ "set k 0 0\r\n", BAD_FORMAT },
		{ "set k 0 0 noreply\r\n", BAD_FORMAT " noreply" },
		{ "evadd E 0 0\r\n", BAD_FORMAT },
		{ "ms\r\n", BAD_FORMAT },
		{ "ms k\r\n", BAD_FORMAT },
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
		{ "set  0 0 x\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "evadd  0 0 5\r\n", BAD_FORMAT " skip=7" },
		{ "evadd  0 0 5 99\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "cas  0 0 5 99\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "ms  k 1\r\nx\r\n", "ms k {x}" },
		{ "ms  5 1\r\nx\r\n", "ms 5 {x}" },
		{ "set  k 0 0 1\r\nx\r\n", "set k {x}" },
		{ "cas  k 0 0 1 9\r\nx\r\n", "cas k {x} number=9" },
		{ "evadd  E 0 0 1\r\nx\r\n", "evadd E {x}" },
	};
	CHECK(cases);
}

/* As in memcached a client that asks for no reply gets none, whatever is wrong with its line. */
TEST(noreply)
{
	static const struct request_case cases[] = {
		{ "incr a\x01 1 noreply\r\n", "refused CLIENT_ERROR control character in line noreply" },
		{ "sadd k \x01 noreply\r\n", "refused CLIENT_ERROR control character in line noreply" },
		{ "touch k\x7f 1 noreply\r\n", "refused CLIENT_ERROR control character in line noreply" },
		{ "delete a\tb noreply\r\n", "refused CLIENT_ERROR control character in line noreply" },
		{ "evincr a\tb 1 noreply\r\n", "refused CLIENT_ERROR control character in line noreply" },
		{ "set k\x01 0 0 3 noreply\r\n", "refused CLIENT_ERROR control character in line skip=5 noreply" },
		{ "set k 0 0 1001 noreply\r\n", "refused SERVER_ERROR object too large for cache skip=1003 noreply" },
		{ "incr k noreply\r\n", BAD_FORMAT " noreply" },
		{ "touch k x noreply\r\n", "refused CLIENT_ERROR invalid exptime argument noreply" },
		{ "delete k 5 noreply\r\n", BAD_FORMAT ".  Usage: delete <key> [noreply] noreply" },
		{ "flush_all x noreply\r\n", "refused CLIENT_ERROR invalid exptime argument noreply" },
		{ "get a\x01 noreply\r\n", "refused CLIENT_ERROR control character in line" },
		{ "foo a noreply\r\n", "refused ERROR" },
	};
	CHECK(cases);
}

/* An answer of memcached to `me` names the key with all of its bytes. */
TEST(debug_keys)
{
	static const struct request_case cases[] = {
		{ "me Zm9v b\r\n", "me Zm9v [b]" },
		{ "me YSBi b\r\n", "refused CLIENT_ERROR me takes no key with spaces or control characters" },
		{ "me YQ0KRU4= b\r\n", "refused CLIENT_ERROR me takes no key with spaces or control characters" },
		{ "me ! b x\r\n", "refused CLIENT_ERROR error decoding key" },
		{ "me ! x b\r\n", "me ! [x b]" },
	};
	CHECK(cases);
}

/* A length that is none: what follows cannot be told apart. */
TEST(bad_length)
{
	static const struct request_case cases[] = {
		{ "set k 0 0 -1\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "set k 0 0 x\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "set k 0 0 1x\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "set k 0 0 2147483646\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "set k 0 0 4294967295\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "set k 0 0 4294967297\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "set k 0 0 18446744073709551616\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "set k 0 0 18446744073709551615\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "ms k S1\r\n", "fatal CLIENT_ERROR bad command line format" },
		{ "ms k -1 q\r\n", "fatal CLIENT_ERROR bad command line format" },
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
		{ "evadd E 0 0 3\r\nabcd\r\n", "fatal CLIENT_ERROR bad data chunk" },
	};
	CHECK(cases);
}

/* Refused as soon as it is too long, whether its end has come or not. */
TEST(line_too_long)
{
	struct buf in = BUF_EMPTY;
	struct request r;
	struct request_progress progress = { 0 };

	BUF_ADD(&in, "sadd k ");
	while (buf_size(&in) < request_test_limits.max_line)
		BUF_ADD(&in, "m");
	struct slice text = buf_slice(&in);
	ck_assert_int_eq(request_parse(guard_place(slice_of(text.p, text.n - 1)), &request_test_limits, &progress, &r),
		REQUEST_MORE);
	ck_assert_int_eq(request_parse(guard_place(text), &request_test_limits, &progress, &r), REQUEST_FATAL);
	ck_assert_str_eq(r.error, "CLIENT_ERROR line too long");
	BUF_ADD(&in, "\n");
	progress = (struct request_progress){ 0 };
	ck_assert_int_eq(
		request_parse(guard_place(buf_slice(&in)), &request_test_limits, &progress, &r), REQUEST_FATAL);
	buf_free(&in);
}

/* memcached takes no longer ones, so they must not be passed on; but the client may be told. */
TEST(meta_line_too_long)
{
	char in[META_LINE_MAX + 16], outcome[64];
	int n = snprintf(in, sizeof(in), "mg k L%0*d\r\n", META_LINE_MAX - 6, 0);

	ck_assert_int_eq(n, META_LINE_MAX + 2);
	struct request r;
	struct request_progress progress = { 0 };
	ck_assert_int_eq(request_parse(guard_place(slice_of(in, (size_t)n)), &request_test_limits, &progress, &r),
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
