/* Commands as keys: the request that a key represents, and its reply to the client. */
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

static void check(const struct command_keys *how, const char *verb, struct slice key,
	const char *data, const char *expected)
{
	struct request outer = outer_of(verb, data), inner;
	struct buf text = BUF_EMPTY;
	char room[200];
	size_t words;
	bool good;

	outer.extras.odd_key = !request_key_valid(key, KEY_MAX);
	ck_assert(command_key_is(how, key));
	ck_assert_uint_le(command_key_room(&outer, key), sizeof(room));
	good = command_key_parse(
		how, &outer, key, command_key_find(how, key, &words), room, &inner);
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

/* The data are words, or one block for a command that has a data block. */
TEST(requests_of_set)
{
	CHECK(keys, "set", "q|sadd|topic-1", "  ann  noreply ",
		"sadd topic-1 [ann  noreply] exptime=60");
	CHECK(keys, "set", "q|sadd|topic-1|ann", "", "sadd topic-1 [ann] exptime=60");
	CHECK(keys, "set", "q|sadd", "topic-1 ann", "sadd topic-1 [ann] exptime=60");
	CHECK(keys, "set", "q|sset|topic-1", "", "sset topic-1 exptime=60");
	CHECK(keys, "set", "q|lset|jobs|0", "x", "lset jobs [0 x] exptime=60");
	CHECK(keys, "set", "q|evadd|E", "the event", "evadd E {the event} flags=5 exptime=60");
	CHECK(keys, "set", "q|evadd|E|1424448000", "x\r\n",
		"evadd E {x\r\n} flags=5 exptime=60 number=1424448000");
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
	CHECK(keys, "incr", "q|evincr|E|4", "",
		"CLIENT_ERROR incr needs the type as the only word of the key");
	CHECK(keys, "incr", "q|evincr", "",
		"CLIENT_ERROR incr needs the type as the only word of the key");
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
		"CLIENT_ERROR usage: evadd <type> <flags> <exptime> <bytes> [<unixtime>] "
		"[noreply]");
}

/* A command is got if it has an answer, and set if it changes something; no command but quit is out of reach. */
TEST(each_command_is_reached)
{
	static const char *const by_set[] = { "add", "append", "cas", "delete", "evadd",
		"flush_all", "lfill", "lload", "lpush", "lpushx", "lset", "ltrim", "ms", "prepend",
		"replace", "rpush", "rpushx", "sadd", "saddx", "set", "sfill", "sload", "smove",
		"srem", "sset", "touch", "verbosity" };
	static const char *const by_both[] = { "decr", "evincr", "evlimit", "incr", "linsert",
		"llease", "lrem", "md", "sclaim", "sdiffstore", "sinterstore", "sunionstore",
		"scompact", "slease" };
	unsigned reach[COMMAND_COUNT];

	for (int i = 0; i < COMMAND_COUNT; i++)
		reach[i] = COMMAND_KEY_GET;
	reach[COMMAND_QUIT] = 0;
	for (size_t i = 0; i < sizeof(by_set) / sizeof(by_set[0]); i++)
		reach[command_lookup(slice_of(by_set[i], strlen(by_set[i])))->id] = COMMAND_KEY_SET;
	for (size_t i = 0; i < sizeof(by_both) / sizeof(by_both[0]); i++)
		reach[command_lookup(slice_of(by_both[i], strlen(by_both[i])))->id] =
			COMMAND_KEY_GET | COMMAND_KEY_SET;
	for (int i = 0; i < COMMAND_COUNT; i++)
		ck_assert_msg(command_key_reach(command_get(i)) == reach[i], "%s",
			command_get(i)->name.p);
}

TEST(which_keys)
{
	const struct command_keys none = { { NULL, 0 }, ' ' };
	size_t words;

	ck_assert(!command_key_is(&none, SLICE("q|scard|a")));
	ck_assert(!command_key_is(&keys, SLICE("q")));
	ck_assert(!command_key_is(&keys, SLICE("p|scard|a")));
	ck_assert_ptr_null(command_key_find(&keys, SLICE("q|nothing|a"), &words));
	ck_assert_ptr_eq(
		command_key_find(&keys, SLICE("q|help"), &words), command_get(COMMAND_HELP));
	ck_assert_uint_eq(words, 1);
	ck_assert_ptr_eq(command_key_find(&keys, SLICE("q|smembers"), &words),
		command_get(COMMAND_SMEMBERS));
	ck_assert_uint_eq(words, 0);
	ck_assert_ptr_eq(command_key_find(&keys, SLICE("q|smembers|a|b|"), &words),
		command_get(COMMAND_SMEMBERS));
	ck_assert_uint_eq(words, 2);
	assert_bytes(command_key_item(&keys, SLICE("q|mg|x|v")), "x");
	assert_bytes(command_key_item(&keys, SLICE("q|gat|60|x|y")), "x");
	assert_bytes(command_key_item(&keys, SLICE("q|get")), "");
	assert_bytes(command_key_item(&keys, SLICE("q|scard|x")), "");
	assert_bytes(command_key_item(&keys, SLICE("q|nothing|x")), "");
	ck_assert_str_eq(command_key_refusal(&keys, SLICE("q|x")), "CLIENT_ERROR no such command");
	ck_assert_str_eq(command_key_refusal(&keys, SLICE("q|sadd|x")),
		"CLIENT_ERROR use set for the command sadd");
}

/* --- replies --- */

static void shows(const struct reply *r, struct buf *text)
{
	if (r->kind == REPLY_VALUE)
		BUF_ADD(text, "value ");
	else if (r->kind == REPLY_ERROR)
		BUF_ADD(text, "failed ");
	if (r->kind == REPLY_WORD)
		reply_add_line(text, r);
	else
		buf_add_slice(text, reply_bytes(r));
}

static void reads(struct reply reply, const char *expected)
{
	struct buf line = BUF_EMPTY, text = BUF_EMPTY;
	struct reply r = command_key_read(&reply, &line);

	ck_assert_uint_eq(r.flags, 0);
	ck_assert_uint_eq(r.cas, r.kind == REPLY_VALUE ? reply.cas : 0);
	shows(&r, &text);
	assert_bytes(buf_slice(&text), expected);
	buf_free(&line);
	buf_free(&text);
}

TEST(values)
{
	struct reply value = reply_value(SLICE("a"), SLICE("ann cyd")),
		     lease = reply_word(WORD_LEASE), met = reply_line(SLICE("EN ka"));

	value.flags = 7;
	value.cas = 9;
	lease.bytes = SLICE("5");
	reads(value, "value ann cyd");
	reads(reply_value(SLICE("a"), SLICE("")), "value ");
	reads(reply_number(17), "value 17");
	reads(reply_line(SLICE("1 0")), "value 1 0");
	reads(lease, "value LEASE 5");
	reads(reply_word(WORD_EXISTS), "value EXISTS");
	reads(reply_word(WORD_END), "END");
	reads(reply_word(WORD_NOT_FOUND), "END");
	reads((struct reply){ .kind = REPLY_NOTHING }, "END");
	reads(met, "value EN ka");
	met.word = WORD_END;
	reads(met, "END");
	met.word = WORD_NOT_FOUND;
	reads(met, "END");
}

/* An error of a subject that is missing is an error still. */
TEST(failures)
{
	struct reply unknown = reply_error(SLICE("CLIENT_ERROR usage"));

	unknown.word = WORD_NOT_FOUND;
	reads(unknown, "failed CLIENT_ERROR usage");
	reads(reply_error(SLICE("SERVER_ERROR busy")), "failed SERVER_ERROR busy");
}

static void stores(const char *outer, struct reply reply, const char *expected)
{
	struct buf text = BUF_EMPTY;
	struct reply r = command_key_stored(command_lookup(slice_of(outer, strlen(outer))), &reply);

	reply_add_line(&text, &r);
	assert_bytes(buf_slice(&text), expected);
	buf_free(&text);
}

TEST(stored)
{
	struct reply event = reply_word(WORD_EVENT), met = reply_line(SLICE("NF kx"));

	event.bytes = SLICE("E::2015022016::1");
	stores("set", reply_word(WORD_STORED), "STORED");
	stores("set", reply_word(WORD_DELETED), "STORED");
	stores("set", reply_number(5), "STORED");
	stores("set", event, "STORED");
	stores("set", (struct reply){ .kind = REPLY_NOTHING }, "STORED");
	stores("set", reply_line(SLICE("HD Oabc")), "STORED");
	stores("set", reply_word(WORD_NOT_FOUND), "NOT_STORED");
	stores("set", reply_word(WORD_NOT_STORED), "NOT_STORED");
	met.word = WORD_NOT_FOUND;
	stores("set", met, "NOT_STORED");
	met.word = WORD_NOT_STORED;
	stores("set", met, "NOT_STORED");
	met.word = WORD_EXISTS;
	stores("set", met, "EXISTS");
	stores("cas", reply_word(WORD_NOT_FOUND), "NOT_FOUND");
	stores("cas", reply_word(WORD_EXISTS), "EXISTS");
	stores("incr", reply_number(5), "5");
	stores("set", reply_error(SLICE("CLIENT_ERROR bad member")), "CLIENT_ERROR bad member");
	stores("set", reply_error(SLICE("SERVER_ERROR busy")), "SERVER_ERROR busy");
}
