/* Commands as keys: the request that a key represents, and its reply to the client. */
#include "protocol/command_key.h"
#include "protocol/commands.h"
#include "requests.h"
#include "unit.h"

static const struct command_keys keys = { BYTES("q|"), ' ' };
static const struct command_keys comma = { BYTES("q|"), ',' };
static const struct command_keys lines = { BYTES("q|"), '\n' };

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
	struct slice data, const char *expected)
{
	struct request outer = outer_of(verb, ""), inner;
	struct buf text = BUF_EMPTY;
	const struct command *command;
	char *room;
	size_t words;
	bool good;

	outer.data = data;
	outer.extras.odd_key = !request_key_valid(key, KEY_MAX);
	ck_assert(command_key_is(how, key));
	command = command_key_find(how, key, &words);
	/* A sanitizer finds a byte that is outside. */
	room = malloc(command_key_room(how, &outer, key, command));
	good = command_key_parse(how, &outer, key, command, room, &inner);
	ck_assert_int_eq(good, inner.error == NULL);
	if (good)
		request_show(&inner, &text);
	else
		buf_printf(&text, "%s", inner.error);
	assert_bytes(buf_slice(&text), expected);
	buf_free(&text);
	free(room);
}

#define CHECK(how, verb, key, data, expected) check(&(how), verb, SLICE(key), SLICE(data), expected)

/* Of words in `expected`: the escapes of bytes, and the empty element. */
#define NUL "\x01\x22"
#define LF "\x01\x2c"
#define SPACE "\x01\x42"
#define EMPTY "\x01\x21"

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
		"sadd topic-1 {  ann  noreply } exptime=60");
	CHECK(keys, "set", "q|sadd|topic-1|ann", "", "sadd topic-1 [ann] exptime=60");
	CHECK(keys, "set", "q|sadd|topic-1|ann", "bob", "sadd topic-1 [ann] {bob} exptime=60");
	CHECK(keys, "set", "q|sadd", " topic-1 ann", "sadd topic-1 { ann} exptime=60");
	CHECK(keys, "set", "q|sadd", " topic-1", "sadd topic-1 exptime=60");
	CHECK(keys, "set", "q|sload|topic-1", "token ann",
		"sload topic-1 [token] { ann} exptime=60");
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
	CHECK(keys, "cas", "q|sset|topic-1", "ann", "sset topic-1 {ann} exptime=60 number=7");
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
	CHECK(comma, "set", "q|sadd|t", "ann,,b ob", "sadd t {ann,,b ob} exptime=60");
	CHECK(comma, "set", "q|sadd", "t,ann,", "sadd t {ann,} exptime=60");
	CHECK(comma, "set", "q|lset|t", "0,ann", "lset t [0 ann] exptime=60");
	CHECK(comma, "set", "q|lset|t", "0,ann,", "lset t [0 ann] exptime=60");
	CHECK(comma, "set", "q|lset|t", "0,,ann", "lset t [0 " EMPTY " ann] exptime=60");
	CHECK(comma, "set", "q|lset|t", ",ann", "lset t [" EMPTY " ann] exptime=60");
	CHECK(comma, "set", "q|lset|t", "0,a b", "lset t [0 a" SPACE "b] exptime=60");
	CHECK(comma, "set", "q|sadd", "t u,ann", "CLIENT_ERROR a key is a word");
	CHECK(comma, "set", "q|sset|t", "", "sset t exptime=60");
	CHECK(comma, "set", "q|evadd|E", "a b,,c", "evadd E {a b,,c} flags=5 exptime=60");
	CHECK(lines, "set", "q|linsert|t|after", "a b\n\r\n",
		"linsert t [after a" SPACE "b \x01\x2f] exptime=60");
	CHECK(lines, "set", "q|lset|t|0", "\n", "lset t [0 " EMPTY "] exptime=60");
	CHECK(lines, "set", "q|lset|t|0", "\n\n", "lset t [0 " EMPTY " " EMPTY "] exptime=60");
	CHECK(lines, "set", "q|lset|t|0", "", "lset t [0] exptime=60");
	CHECK(lines, "set", "q|sload|t", "tok en\na b\n",
		"sload t [tok" SPACE "en] {a b\n} exptime=60");
	CHECK(lines, "set", "q|sadd", "t\na b\n", "sadd t {a b\n} exptime=60");
	CHECK(lines, "set", "q|sadd", "\na", "CLIENT_ERROR a key is a word");
}

/* The data are one element: the last word, after those in the key. */
TEST(whole_data)
{
	CHECK(lines, "set", "q|rpush1|k", "a\n\0 b", "rpush k [a" LF NUL SPACE "b] exptime=60");
	CHECK(lines, "set", "q|rpush1|k|x|y%20z|", "",
		"rpush k [x y" SPACE "z " EMPTY "] exptime=60");
	CHECK(keys, "set", "q|sadd1|k", " ", "sadd k [" SPACE "] exptime=60");
	CHECK(lines, "set", "q|linsert1|k|before|p", "\n",
		"linsert k [before p " LF "] exptime=60");
	CHECK(lines, "set", "q|sload1|k|token", "\n", "sload k [token " LF "] exptime=60");
	CHECK(lines, "set", "q|sclaim1|k", "a", "sclaim k [a] exptime=60");
	CHECK(lines, "set", "q|smismember1|k|a", "b\n", "smismember k [a b" LF "]");
	CHECK(lines, "cas", "q|sset1|k", "a\nb", "sset k [a" LF "b] exptime=60 number=7");
	CHECK(lines, "set", "q|touch1|k", "30", "touch k exptime=30");
	CHECK(lines, "set", "q|sadd1", "a b", "CLIENT_ERROR a key is a word");
	CHECK(lines, "get", "q|rpush1|k|a", "", "CLIENT_ERROR use set for the command rpush1");
	CHECK(lines, "get", "q|sclaim1|k|a", "", "CLIENT_ERROR use set for the command sclaim1");
	CHECK(lines, "get", "q|scard1|k", "", "CLIENT_ERROR no such command");
	CHECK(lines, "set", "q|set1|k", "a", "CLIENT_ERROR no such command");
	CHECK(lines, "set", "q|rpush11|k", "a", "CLIENT_ERROR no such command");
	CHECK(lines, "set", "q|1|k", "a", "CLIENT_ERROR no such command");
	CHECK(lines, "set", "q|rpush2|k", "a", "CLIENT_ERROR no such command");
}

/* With a * the elements of the value are quoted. The request is the same. */
TEST(quoted_values)
{
	const struct command_keys star = { BYTES("q*"), '\n' };
	size_t words;

	CHECK(lines, "get", "q|smembers*|t", "", "smembers t keys=1");
	CHECK(lines, "gets", "q|lpop*|t|3", "", "lpop t [3]");
	CHECK(lines, "get", "q|sismember*|t|a", "", "sismember t [a]");
	CHECK(lines, "set", "q|sismember*|t", "a",
		"CLIENT_ERROR use get for the command sismember*");
	CHECK(lines, "incr", "q|evincr*|E", "", "CLIENT_ERROR use get for the command evincr*");
	CHECK(lines, "set", "q|sadd*|t", "a", "CLIENT_ERROR no such command");
	CHECK(lines, "get", "q|smembers**|t", "", "CLIENT_ERROR no such command");
	CHECK(lines, "get", "q|*|t", "", "CLIENT_ERROR no such command");
	ck_assert_str_eq(command_key_refusal(&lines, SLICE("q|smembers*|t")),
		"CLIENT_ERROR use get for the command smembers*");
	for (int i = 0; i < 2; i++) {
		struct slice key = i ? SLICE("q|smembers*|t") : SLICE("q|smembers|*");
		ck_assert_int_eq(
			command_key_quotes(&lines, key, command_key_find(&lines, key, &words)), i);
	}
	ck_assert(!command_key_quotes(&lines, SLICE("q|none*|t"), NULL));
	ck_assert(!command_key_quotes(&star, SLICE("q*smembers*t"), command_get(COMMAND_SMEMBERS)));
}

/* A name with a 1 or a * after it is never that of another command. */
TEST(no_name_ends_with_a_mark)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		struct slice name = command_get(i)->name;
		ck_assert_msg(!strchr("1*", name.p[name.n - 1]), "%s", name.p);
	}
}

/* However many bytes are escaped, they have room. */
TEST(room_of_escapes)
{
	static const char *const names[] = { "q|linsert|k", "q|smismember|k", "q|rpush1|k",
		"q|sadd", "q|sload", "q|sunionstore" };
	static const size_t sizes[] = { 1, 2, 100, 1000, ELEMENT_MAX, ELEMENT_MAX + 1,
		COMMAND_KEY_DATA_MAX, COMMAND_KEY_DATA_MAX + 1 };
	static char data[COMMAND_KEY_DATA_MAX + 1];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) * 6; i++) {
		struct slice key = slice_of(names[i / 6], strlen(names[i / 6]));
		struct request outer = outer_of("set", ""), inner;
		size_t words;
		const struct command *command = command_key_find(&lines, key, &words);

		for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
			char *room;
			memset(data, "\n\0a"[i % 3], sizeof(data));
			if (i % 6 >= 3)
				memset(data + sizes[size] / 2, '\n', 1);
			outer.data = slice_of(data, sizes[size]);
			room = malloc(command_key_room(&lines, &outer, key, command));
			(void)command_key_parse(&lines, &outer, key, command, room, &inner);
			ck_assert_uint_le(
				inner.rest.n, command_key_room(&lines, &outer, key, command));
			free(room);
		}
	}
}

/* %XX in a key is a byte of a word. */
TEST(encoded_words)
{
	CHECK(keys, "get", "q|sismember|t|a%7Cb%20%00%25", "", "sismember t [a|b" SPACE NUL "%]");
	CHECK(keys, "get", "q|sismember|t|%7c%7C%", "", "sismember t [||%]");
	CHECK(keys, "get", "q|sismember|t|%2", "", "sismember t [%2]");
	CHECK(keys, "get", "q|sismember|t|%%41%g1%1g%4", "", "sismember t [%A%g1%1g%4]");
	CHECK(keys, "get", "q|sismember|%61%62|a", "", "sismember ab [a]");
	CHECK(keys, "get", "q|%73card|ab", "", "CLIENT_ERROR no such command");
	CHECK(keys, "get", "q|sscan|t|1%30|%0a", "", "sscan t [10 " LF "]");
	CHECK(keys, "get", "q|get|a%62|%25", "", "get ab [%] keys=2");
	CHECK(keys, "get", "q|scard|a%20b", "", "CLIENT_ERROR a key is a word");
	CHECK(keys, "get", "q|smembers|a|b%00", "", "CLIENT_ERROR a key is a word");
	CHECK(keys, "get", "q|get|a%20b", "", "CLIENT_ERROR a key is a word");
	CHECK(keys, "get", "q|get|a|%0D%0Ab", "", "CLIENT_ERROR a key is a word");
	CHECK(keys, "get", "q|mg|%0a|v", "", "CLIENT_ERROR a key is a word");
	CHECK(keys, "get", "q|mg|a|O%0a", "", "CLIENT_ERROR usage: mg <key> <flag>*");
	CHECK(keys, "get", "q|blmove|0|a|b%20|left|left", "", "CLIENT_ERROR a key is a word");
	CHECK(keys, "get", "q|evcount|E|%20", "",
		"CLIENT_ERROR usage: evcount <type> [<from> [<to> [<type>+]]]");
	CHECK(keys, "get", "q|gat|%20|a", "", "CLIENT_ERROR invalid exptime argument");
	CHECK(keys, "incr", "q|evincr|E%20", "", "CLIENT_ERROR a key is a word");
	CHECK(keys, "incr", "q|evincr|%45", "", "evincr E [7] exptime=60");
	CHECK(keys, "set", "q|add|%61", "x y", "add a {x y} flags=5 exptime=60");
	CHECK(keys, "set", "q|add|%00", "x y", "CLIENT_ERROR a key is a word");
	CHECK(keys, "set", "q|sadd|t|%20", "a", "sadd t [" SPACE "] {a} exptime=60");
	CHECK(keys, "get", "q|scard|%", "", "scard %");
}

TEST(refused)
{
	CHECK(keys, "get", "q|mg|x|v v", "", "CLIENT_ERROR no such command");
	CHECK(keys, "get", "q|scard|a\r\nflush_all", "", "CLIENT_ERROR no such command");
	CHECK(keys, "set", "q|lset|a", "0 x\r\nflush_all", "CLIENT_ERROR bad word in the data");
	CHECK(keys, "set", "q|evadd|E|now", "x",
		"CLIENT_ERROR usage: evadd <type> <flags> <exptime> <bytes> [<unixtime>] "
		"[noreply]");
}

/* A command is got if it has an answer, and set if it changes something; no command but quit is out of reach. */
TEST(each_command_is_reached)
{
	static const char *const by_set[] = { "add", "append", "cas", "delete", "evadd",
		"flush_all", "lfill", "lload", "lpush", "lpushx", "lset", "ltrim", "ms", "prepend",
		"replace", "rpush", "rpushx", "sadd", "saddex", "saddx", "set", "sfill", "sload",
		"smove", "srem", "sset", "touch", "verbosity" };
	static const char *const by_both[] = { "decr", "evincr", "evlimit", "incr", "linsert",
		"lack", "lfail", "llease", "lrem", "md", "sclaim", "sdiffstore", "sexpire",
		"sinterstore", "sunionstore", "scompact", "repair", "sismember", "slease",
		"smismember", "sttl" };
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
	char room[KEY_MAX];

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
	assert_bytes(command_key_item(&keys, SLICE("q|mg|x|v"), room), "x");
	assert_bytes(command_key_item(&keys, SLICE("q|gat|60|x|y"), room), "x");
	assert_bytes(command_key_item(&keys, SLICE("q|get"), room), "");
	assert_bytes(command_key_item(&keys, SLICE("q|scard|x"), room), "");
	assert_bytes(command_key_item(&keys, SLICE("q|nothing|x"), room), "");
	assert_bytes(command_key_item(&keys, SLICE("q|get|%78%25y%"), room), "x%y%");
	assert_bytes(command_key_item(&keys, SLICE("q|get|x%20y"), room), "");
	assert_bytes(command_key_item(&keys, SLICE("x%20y"), room), "x%20y");
	ck_assert_str_eq(command_key_refusal(&keys, SLICE("q|x")), "CLIENT_ERROR no such command");
	ck_assert_str_eq(command_key_refusal(&keys, SLICE("q|sadd|x")),
		"CLIENT_ERROR use set for the command sadd");
	ck_assert_str_eq(command_key_refusal(&keys, SLICE("q|sadd1|x")),
		"CLIENT_ERROR use set for the command sadd1");
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

static void stores_inside(
	const char *outer, command_id inside, struct reply reply, const char *expected)
{
	struct buf text = BUF_EMPTY;
	struct reply r = command_key_stored(
		command_lookup(slice_of(outer, strlen(outer))), command_get(inside), &reply);

	reply_add_line(&text, &r);
	assert_bytes(buf_slice(&text), expected);
	buf_free(&text);
}

static void stores(const char *outer, struct reply reply, const char *expected)
{
	stores_inside(outer, COMMAND_LREM, reply, expected);
}

TEST(tests_of_members)
{
	static const command_id ids[] = { COMMAND_SCLAIM, COMMAND_SISMEMBER, COMMAND_SMISMEMBER };

	for (int i = 0; i < 3; i++) {
		stores_inside("set", ids[i], reply_number(1), "STORED");
		stores_inside("set", ids[i], reply_number(0), "NOT_STORED");
		stores_inside("set", ids[i], reply_line(SLICE("1 1 1")), "STORED");
		stores_inside("set", ids[i], reply_line(SLICE("1 0 1")), "NOT_STORED");
		stores_inside("set", ids[i], reply_word(WORD_NOT_FOUND), "NOT_STORED");
		stores_inside(
			"set", ids[i], reply_error(SLICE("SERVER_ERROR 0")), "SERVER_ERROR 0");
	}
	stores("set", reply_number(0), "STORED");
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
