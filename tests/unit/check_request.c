/* Requests that are carried out. */
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
		{ "set k 0 0 4 noreply\r\na\r\nb\r\n", "set k {a\r\nb} noreply" },
		{ "set  k  0  0  1  \r\nx\r\n", "set k {x}" },
		{ "set noreply 0 0 1\r\nx\r\n", "set noreply {x}" },
		{ "set k 0 0 1\nx\n", "set k {x}" },
		{ "set k 0 0 1\nx\r\n", "set k {x}" },
		{ "set k 0 0 1\r\n\r\r\n", "set k {\r}" },
		{ "set k 0 0 1\n\n\n", "set k {\n}" },
		{ "set k 0 0 2\r\n\r\n\r\n", "set k {\r\n}" },
		{ "set \x80\xff 0 0 1\r\nx\r\n", "set \x80\xff {x}" },
		{ "add k 0 0 1\r\nx\r\n", "add k {x}" },
		{ "replace k 0 0 1\r\nx\r\n", "replace k {x}" },
		{ "append k 0 0 1\r\nx\r\n", "append k {x}" },
		{ "prepend k 0 0 1\r\nx\r\n", "prepend k {x}" },
		{ "cas k 1 2 1 18446744073709551615\r\nx\r\n",
			"cas k {x} flags=1 exptime=2 number=18446744073709551615" },
		{ "cas k 0 0 1 0 noreply\r\nx\r\n", "cas k {x} number=0 noreply" },
	};
	CHECK(cases);
}

TEST(reading)
{
	static const struct request_case cases[] = {
		{ "get a\r\n", "get a keys=1" },
		{ "get a\n", "get a keys=1" },
		{ " get  a \r\n", "get a keys=1" },
		{ "get a b  c\r\n", "get a [b  c] keys=3" },
		{ "get a b c d e\r\n", "get a [b c d e] keys=5" },
		{ "get a noreply\r\n", "get a [noreply] keys=2" },
		{ "gets a b\r\n", "gets a [b] keys=2" },
		{ "gat 10 a\r\n", "gat a exptime=10 keys=1" },
		{ "gat -1 a b\r\n", "gat a [b] exptime=-1 keys=2" },
		{ "gats 0 a b\r\n", "gats a [b] keys=2" },
	};
	CHECK(cases);
}

TEST(one_line)
{
	static const struct request_case cases[] = {
		{ "incr k 1\r\n", "incr k number=1" },
		{ "incr k 18446744073709551615\r\n", "incr k number=18446744073709551615" },
		{ "incr k 0 noreply\r\n", "incr k noreply" },
		{ "decr k 5\r\n", "decr k number=5" },
		{ "delete k\r\n", "delete k" },
		{ "delete k 0\r\n", "delete k" },
		{ "delete noreply\r\n", "delete noreply" },
		{ "delete noreply noreply\r\n", "delete noreply noreply" },
		{ "delete k noreply\r\n", "delete k noreply" },
		{ "delete k 0 noreply\r\n", "delete k noreply" },
		{ "touch k 10\r\n", "touch k exptime=10" },
		{ "touch k -1 noreply\r\n", "touch k exptime=-1 noreply" },
		{ "flush_all\r\n", "flush_all " },
		{ "flush_all 10\r\n", "flush_all  exptime=10" },
		{ "flush_all noreply\r\n", "flush_all  noreply" },
		{ "flush_all 0 noreply\r\n", "flush_all  noreply" },
		{ "version\r\n", "version " },
		{ "verbosity 1 noreply\r\n", "verbosity  [1] noreply" },
		{ "stats settings\r\n", "stats  [settings]" },
		{ "help sadd\r\n", "help  [sadd]" },
		{ "route k\r\n", "route k" },
		{ "quit\r\n", "quit " },
		{ "mn\r\n", "mn " },
		{ "mn anything\r\n", "mn  [anything]" },
	};
	CHECK(cases);
}

TEST(meta)
{
	static const struct request_case cases[] = {
		{ "mg k\r\n", "mg k" },
		{ "mg k v q O1 k\r\n", "mg k [v q O1 k]" },
		{ "mg Zm9v b v\r\n", "mg Zm9v [b v]" },
		{ "mg k noreply\r\n", "refused CLIENT_ERROR invalid flag" },
		{ "ms k 3\r\nabc\r\n", "ms k {abc}" },
		{ "ms k 3 T10 F1\r\nabc\r\n", "ms k [T10 F1] {abc}" },
		{ "ms k 0 q\r\n\r\n", "ms k [q] {}" },
		{ "ms k 1\nx\n", "ms k {x}" },
		{ "md k q\r\n", "md k [q]" },
		{ "ma k N0 J5 v\r\n", "ma k [N0 J5 v]" },
		{ "me k\r\n", "me k" },
	};
	CHECK(cases);
}

TEST(sets)
{
	static const struct request_case cases[] = {
		{ "sadd k a b\r\n", "sadd k [a b]" },
		{ "sadd k a b noreply\r\n", "sadd k [a b] noreply" },
		{ "sadd k a noreply b\r\n", "sadd k [a noreply b]" },
		{ "sadd k noreply noreply  \r\n", "sadd k [noreply] noreply" },
		{ "sadd k xnoreply\r\n", "sadd k [xnoreply]" },
		{ "sadd k noreplyx\r\n", "sadd k [noreplyx]" },
		{ "saddx k a\r\n", "saddx k [a]" },
		{ "srem k a noreply\r\n", "srem k [a] noreply" },
		{ "sset k\r\n", "sset k" },
		{ "sset k noreply\r\n", "sset k noreply" },
		{ "scard k\r\n", "scard k" },
		{ "sismember k noreply\r\n", "sismember k [noreply]" },
		{ "smismember k a b noreply\r\n", "smismember k [a b noreply]" },
		{ "smembers a b c\r\n", "smembers a [b c] keys=3" },
		{ "sinfo k\r\n", "sinfo k" },
	};
	CHECK(cases);
}

TEST(events)
{
	static const struct request_case cases[] = {
		{ "evincr E\r\n", "evincr E" },
		{ "evincr E 5 1424450096 noreply\r\n", "evincr E [5 1424450096] noreply" },
		{ "evcount E -3 now\r\n", "evcount E [-3 now]" },
		{ "evadd E 1 2 3\r\nabc\r\n", "evadd E {abc} flags=1 exptime=2" },
		{ "evadd E 1 2 3 0\r\nabc\r\n", "evadd E {abc} flags=1 exptime=2 number=0" },
		{ "evadd E 0 0 3 1424450096 noreply\r\nabc\r\n", "evadd E {abc} number=1424450096 noreply" },
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

/*
 * What was read is not looked at again, however the rest comes: bytes that would be read as something else by now are not
 * noticed.
 */
TEST(nothing_is_read_twice)
{
	char in[] = "set   k 0 0 12\r\nhello, world\r\nget";
	const size_t line = strlen("set   k 0 0 12\r\n"), whole = sizeof(in) - 1 - strlen("get");
	struct request_progress progress = { 0 };
	struct request r;

	for (size_t n = 1; n < line; n++) {
		ck_assert_int_eq(request_parse(slice_of(in, n), &request_test_limits, &progress, &r), REQUEST_MORE);
		in[n - 1] = '\n';
	}
	memcpy(in, "set   k 0 0 12\r\n", line);
	ck_assert_int_eq(request_parse(slice_of(in, line), &request_test_limits, &progress, &r), REQUEST_MORE);
	memset(in, '\n', line);
	for (size_t n = line + 1; n <= line + 12; n++)
		ck_assert_int_eq(request_parse(slice_of(in, n), &request_test_limits, &progress, &r), REQUEST_MORE);
	memcpy(in, "set   k 0 0 12\r\n", line);
	ck_assert_int_eq(request_parse(slice_of(in, whole - 1), &request_test_limits, &progress, &r), REQUEST_MORE);
	ck_assert_int_eq(request_parse(slice_of(in, whole), &request_test_limits, &progress, &r), REQUEST_READY);
	ck_assert_uint_eq(r.consumed, whole);
	assert_bytes(r.data, "hello, world");
}

/* `before`, a key of `n` bytes, `after`. */
static enum request_status parse_key(const char *before, int n, const char *after, struct request *r)
{
	char in[512];
	struct request_progress progress = { 0 };
	int length = snprintf(in, sizeof(in), "%s%0*d%s", before, n, 0, after);

	return request_parse(guard_place(slice_of(in, (size_t)length)), &request_test_limits, &progress, r);
}

TEST(longest_keys)
{
	const struct {
		const char *before, *after;
		int max;
	} lines[] = {
		{ "get ", "\r\n", KEY_MAX },
		{ "get a ", "\r\n", KEY_MAX },
		{ "delete ", "\r\n", KEY_MAX },
		{ "incr ", " 1\r\n", KEY_MAX },
		{ "touch ", " 1\r\n", KEY_MAX },
		{ "set ", " 0 0 1\r\nx\r\n", KEY_MAX },
		{ "mg ", " v\r\n", KEY_MAX },
		{ "ms ", " 1\r\nx\r\n", KEY_MAX },
		{ "sadd ", " m\r\n", COLLECTION_KEY_MAX },
		{ "smembers a ", "\r\n", COLLECTION_KEY_MAX },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct request r;
		ck_assert_int_eq(parse_key(lines[i].before, lines[i].max, lines[i].after, &r), REQUEST_READY);
		ck_assert_int_eq(parse_key(lines[i].before, lines[i].max + 1, lines[i].after, &r), REQUEST_REFUSED);
		ck_assert_str_eq(r.error, "CLIENT_ERROR key too long");
	}
}

TEST(valid_keys)
{
	char key[] = "k?y";

	for (int c = 0; c < 256; c++) {
		key[1] = (char)c;
		ck_assert_int_eq(request_key_valid(guard_place(slice_of(key, 3)), 3), c > 0x20 && c != 0x7f);
	}
	ck_assert(!request_key_valid(SLICE(""), 3));
	ck_assert(!request_key_valid(SLICE("abcd"), 3));
	ck_assert(request_key_valid(SLICE("abc"), 3));
}
