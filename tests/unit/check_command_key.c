/* Commands as keys: the request that a key stands for, and what its reply is for the client. */
#include "protocol/command_key.h"
#include "protocol/commands.h"
#include "requests.h"
#include "unit.h"

static const struct command_keys keys = { BYTES("q|"), ' ' };
static const struct command_keys comma = { BYTES("q|"), ',' };

static const char *const verbs[] = { "get", "gets", "set", "cas" };

static struct request outer_of(const char *verb, const char *data)
{
	return (struct request){
		.command = command_lookup(slice_of(verb, strlen(verb))),
		.data = slice_of(data, strlen(data)),
		.flags = 5,
		.exptime = 60,
		.number = 7,
	};
}

static void check(
	const struct command_keys *how, const char *verb, struct slice key, const char *data, const char *expected)
{
	struct request outer = outer_of(verb, data), inner;
	struct buf text = BUF_EMPTY;
	char room[200];
	size_t words;
	bool good;

	outer.extras.odd_key = !request_key_valid(key, KEY_MAX);
	ck_assert(command_key_is(how, key));
	ck_assert_uint_le(command_key_room(&outer, key), sizeof(room));
	good = command_key_parse(how, &outer, key, command_key_find(how, key, &words), room, &inner);
	ck_assert_int_eq(good, inner.error == NULL);
	if (good)
		request_show(&inner, &text);
	else
		buf_printf(&text, "%s", inner.error);
	assert_bytes(buf_slice(&text), expected);
	buf_free(&text);
}

#define CHECK(how, verb, key, data, expected) check(&(how), verb, SLICE(key), data, expected)

TEST(requests_of_get)
{
	for (int i = 0; i < 2; i++) {
		CHECK(keys, verbs[i], "q|smembers|a|b", "", "smembers a [b] keys=2");
		CHECK(keys, verbs[i], "q|sscan|a|10|", "", "sscan a [10]");
		CHECK(keys, verbs[i], "q|sismember|a|noreply", "", "sismember a [noreply]");
		CHECK(keys, verbs[i], "q|evincr|E|4|noreply", "", "evincr E [4 noreply]");
		CHECK(keys, verbs[i], "q|incr|n|3", "", "incr n number=3");
		CHECK(keys, verbs[i], "q|gat|30|n", "", "gat n exptime=30 keys=1");
		CHECK(keys, verbs[i], "q|mg|x|v|t", "", "mg x [v t]");
		CHECK(keys, verbs[i], "q|help", "", "help ");
		CHECK(keys, verbs[i], "q|stats|upstream", "", "stats  [upstream]");
	}
}

/* The data are words, or one block for a command that has a block of its own. */
TEST(requests_of_set)
{
	CHECK(keys, "set", "q|sadd|topic-1", "  ann  noreply ", "sadd topic-1 [ann  noreply] exptime=60");
	CHECK(keys, "set", "q|sadd|topic-1|ann", "", "sadd topic-1 [ann] exptime=60");
	CHECK(keys, "set", "q|sadd", "topic-1 ann", "sadd topic-1 [ann] exptime=60");
	CHECK(keys, "set", "q|sset|topic-1", "", "sset topic-1 exptime=60");
	CHECK(keys, "set", "q|lset|jobs|0", "x", "lset jobs [0 x] exptime=60");
	CHECK(keys, "set", "q|evadd|E", "the event", "evadd E {the event} flags=5 exptime=60");
	CHECK(keys, "set", "q|evadd|E|1424448000", "x\r\n", "evadd E {x\r\n} flags=5 exptime=60 number=1424448000");
	CHECK(keys, "set", "q|cas|k|9", "x", "cas k {x} flags=5 exptime=60 number=9");
	CHECK(keys, "set", "q|ms|k|T5", "x", "ms k [T5] {x} flags=5 exptime=60");
	/* These have a time of their own. */
	CHECK(keys, "set", "q|touch|k", "30", "touch k exptime=30");
	CHECK(keys, "set", "q|flush_all", "", "flush_all ");
	CHECK(keys, "cas", "q|sset|topic-1", "ann", "sset topic-1 [ann] exptime=60 number=7");
}

/* The number of an incr is the delta of an evincr. */
TEST(requests_of_incr)
{
	CHECK(keys, "incr", "q|evincr|E", "", "evincr E [7] exptime=60");
	CHECK(comma, "incr", "q|evincr|E|", "", "evincr E [7] exptime=60");
	CHECK(keys, "incr", "q|evincr|E|4", "", "CLIENT_ERROR incr needs the type as the only word of the key");
	CHECK(keys, "incr", "q|evincr", "", "CLIENT_ERROR incr needs the type as the only word of the key");
	CHECK(keys, "incr", "q|incr|n", "", "CLIENT_ERROR use get or set for the command incr");
}

TEST(delimiters)
{
	CHECK(comma, "set", "q|sadd|t", "ann,bob", "sadd t [ann bob] exptime=60");
	CHECK(comma, "set", "q|sadd|t", "ann,bob,", "sadd t [ann bob] exptime=60");
	CHECK(comma, "set", "q|sadd|t", "ann,,bob", "CLIENT_ERROR bad word in the data");
	CHECK(comma, "set", "q|sadd|t", ",ann", "CLIENT_ERROR bad word in the data");
	CHECK(comma, "set", "q|sadd|t", "ann bob", "CLIENT_ERROR bad word in the data");
	CHECK(comma, "set", "q|sset|t", "", "sset t exptime=60");
	CHECK(comma, "set", "q|evadd|E", "a b,,c", "evadd E {a b,,c} flags=5 exptime=60");
}

TEST(refused)
{
	CHECK(keys, "get", "q|mg|x|v v", "", "CLIENT_ERROR no such command");
	CHECK(keys, "get", "q|scard|a\r\nflush_all", "", "CLIENT_ERROR no such command");
	CHECK(keys, "set", "q|sadd|a", "x\r\nflush_all", "CLIENT_ERROR bad word in the data");
	CHECK(keys, "set", "q|evadd|E|now", "x",
		"CLIENT_ERROR usage: evadd <type> <flags> <exptime> <bytes> [<unixtime>] [noreply]");
}

/* A command is got if it has an answer, and set if it changes something; no command but quit is out of reach. */
TEST(each_command_is_reached)
{
	static const char *const by_set[] = { "add", "append", "cas", "delete", "evadd", "flush_all", "lfill", "lload",
		"lpush", "lpushx", "lset", "ltrim", "ms", "prepend", "replace", "rpush", "rpushx", "sadd", "saddx",
		"set", "sfill", "sload", "smove", "srem", "sset", "touch", "verbosity" };
	static const char *const by_both[] = { "decr", "evincr", "evlimit", "incr", "linsert", "llease", "lrem", "md",
		"sclaim", "sdiffstore", "sinterstore", "sunionstore", "scompact", "slease" };
	unsigned reach[COMMAND_COUNT];

	for (int i = 0; i < COMMAND_COUNT; i++)
		reach[i] = COMMAND_KEY_GET;
	reach[COMMAND_QUIT] = 0;
	for (size_t i = 0; i < sizeof(by_set) / sizeof(by_set[0]); i++)
		reach[command_lookup(slice_of(by_set[i], strlen(by_set[i])))->id] = COMMAND_KEY_SET;
	for (size_t i = 0; i < sizeof(by_both) / sizeof(by_both[0]); i++)
		reach[command_lookup(slice_of(by_both[i], strlen(by_both[i])))->id] = COMMAND_KEY_GET | COMMAND_KEY_SET;
	for (int i = 0; i < COMMAND_COUNT; i++)
		ck_assert_msg(command_key_reach(command_get(i)) == reach[i], "%s", command_get(i)->name.p);
}

TEST(which_keys)
{
	const struct command_keys none = { { NULL, 0 }, ' ' };
	size_t words;

	ck_assert(!command_key_is(&none, SLICE("q|scard|a")));
	ck_assert(!command_key_is(&keys, SLICE("q")));
	ck_assert(!command_key_is(&keys, SLICE("p|scard|a")));
	ck_assert_ptr_null(command_key_find(&keys, SLICE("q|nothing|a"), &words));
	ck_assert_ptr_eq(command_key_find(&keys, SLICE("q|help"), &words), command_get(COMMAND_HELP));
	ck_assert_uint_eq(words, 1);
	ck_assert_ptr_eq(command_key_find(&keys, SLICE("q|smembers"), &words), command_get(COMMAND_SMEMBERS));
	ck_assert_uint_eq(words, 0);
	ck_assert_ptr_eq(command_key_find(&keys, SLICE("q|smembers|a|b|"), &words), command_get(COMMAND_SMEMBERS));
	ck_assert_uint_eq(words, 2);
	assert_bytes(command_key_item(&keys, SLICE("q|mg|x|v")), "x");
	assert_bytes(command_key_item(&keys, SLICE("q|gat|60|x|y")), "x");
	assert_bytes(command_key_item(&keys, SLICE("q|get")), "");
	assert_bytes(command_key_item(&keys, SLICE("q|scard|x")), "");
	assert_bytes(command_key_item(&keys, SLICE("q|nothing|x")), "");
	ck_assert_str_eq(command_key_refusal(&keys, SLICE("q|x")), "CLIENT_ERROR no such command");
	ck_assert_str_eq(command_key_refusal(&keys, SLICE("q|sadd|x")), "CLIENT_ERROR use set for the command sadd");
}

/* --- replies --- */

static void check_value(const char *line, const char *reply, const char *expected)
{
	struct request outer = outer_of("get", ""), inner;
	struct buf text = BUF_EMPTY;
	struct slice out = { "", 0 }, key = slice_of(line, strlen(line));
	char room[200];
	size_t words;

	ck_assert(command_key_parse(&keys, &outer, key, command_key_find(&keys, key, &words), room, &inner));
	switch (command_key_value(inner.command, inner.keys, guard_text(reply), &out)) {
	case COMMAND_KEY_VALUE:
		BUF_ADD(&text, "value ");
		break;
	case COMMAND_KEY_MISS:
		BUF_ADD(&text, "miss");
		break;
	case COMMAND_KEY_FAILED:
		BUF_ADD(&text, "failed ");
	}
	buf_add_slice(&text, out);
	assert_bytes(buf_slice(&text), expected);
	buf_free(&text);
}

TEST(values)
{
	check_value("q|smismember|a|x|y", "1 0\r\n", "value 1 0");
	check_value("q|smembers|a", "VALUE a 0 7\r\nann cyd\r\nEND\r\n", "value ann cyd");
	check_value("q|smembers|a", "VALUE a 0 0\r\n\r\nEND\r\n", "value ");
	check_value("q|get|a", "VALUE a 0 14\r\n\r\nERROR\r\nEND\r\n\r\nEND\r\n", "value \r\nERROR\r\nEND\r\n");
	check_value("q|smembers|a|b", "VALUE a 0 1\r\nx\r\nVALUE b 0 1\r\ny\r\nEND\r\n",
		"value VALUE a 0 1\r\nx\r\nVALUE b 0 1\r\ny");
	check_value("q|smembers|a|b", "VALUE b 0 1\r\ny\r\nEND\r\n", "value VALUE b 0 1\r\ny");
	check_value("q|evlast|E|1", "END\r\n", "miss");
	check_value("q|evcount|E", "COUNT 2015022016 5\r\nCOUNT 2015022017 6\r\nEND\r\n",
		"value COUNT 2015022016 5\r\nCOUNT 2015022017 6");
	check_value("q|mg|a|v", "VA 3\r\nEND\r\n", "value VA 3\r\nEND");
	check_value("q|mg|a|v", "EN\r\n", "miss");
	check_value("q|mg|a|v|k", "EN ka\r\n", "miss");
	check_value("q|md|a|k", "NF ka\r\n", "miss");
	check_value("q|mg|a|v|q", "", "miss");
}

TEST(failures)
{
	check_value("q|scard|a", "CLIENT_ERROR value is not a collection\r\n",
		"failed CLIENT_ERROR value is not a collection");
	check_value("q|scard|a", "SERVER_ERROR busy\r\n", "failed SERVER_ERROR busy");
	check_value("q|mg|a|v", "ERROR\r\n", "failed ERROR");
	check_value("q|evlast|E|2", "VALUE E::1 5 21\r\nSERVER_ERROR x\r\nEND\r\n\r\nSERVER_ERROR busy\r\n",
		"failed SERVER_ERROR busy");
	/* What is stored may look like an error. */
	check_value("q|evlast|E|2", "VALUE E::1 5 17\r\nSERVER_ERROR busy\r\nEND\r\n",
		"value VALUE E::1 5 17\r\nSERVER_ERROR busy");
}

TEST(stored)
{
	static const char *const cases[][3] = {
		{ "set", "STORED\r\n", "STORED" },
		{ "set", "DELETED\r\n", "STORED" },
		{ "set", "5\r\n", "STORED" },
		{ "set", "EVENT E::2015022016::1\r\n", "STORED" },
		{ "set", "", "STORED" },
		{ "set", "NOT_FOUND\r\n", "NOT_STORED" },
		{ "set", "NOT_STORED\r\n", "NOT_STORED" },
		{ "set", "NF\r\n", "NOT_STORED" },
		{ "set", "NS Oabc\r\n", "NOT_STORED" },
		{ "set", "NF kx\r\n", "NOT_STORED" },
		{ "set", "EX kx Oabc\r\n", "EXISTS" },
		{ "set", "HD Oabc\r\n", "STORED" },
		{ "cas", "NOT_FOUND\r\n", "NOT_FOUND" },
		{ "cas", "EXISTS\r\n", "EXISTS" },
		{ "set", "CLIENT_ERROR bad member\r\n", "CLIENT_ERROR bad member" },
		{ "set", "SERVER_ERROR busy\r\n", "SERVER_ERROR busy" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct command *outer = command_lookup(slice_of(cases[i][0], 3));
		assert_bytes(command_key_stored(outer, guard_text(cases[i][1])), cases[i][2]);
	}
}
