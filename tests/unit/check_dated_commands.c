/*
 * Commands on members that expire: saddex, sexpire and sttl, and the dates that the rule's
 * member_ttl gives to whatever the others add.
 */
#include "collection/large.h"
#include "collection/text/lease.h"
#include "dated.h"
#include "serving.h"

static const struct collection_options options = { .base_size = 1 << 14,
	.segment_size = 64,
	.log_size = 1 << 12,
	.table_size = 512,
	.cache = 1 << 20,
	.merges = 1,
	.result_max = 1 << 20,
	.lease_time = 10 };

/* Members of keys that begin with t expire after 100 seconds. */
static struct collection_rule rules[] = {
	{ .compact_waste = 0.5, .delimiter = ',' },
	{ .compact_waste = 0.5, .delimiter = ',', .member_ttl = 100, .plain_verbs = true },
	{ .compact_waste = 0.5, .delimiter = ',', .encoding = ENCODING_CSV },
	{ .compact_waste = 0.5, .delimiter = ',', .type = COLLECTION_LIST },
	{ .compact_waste = 0.5, .delimiter = ',', .type = COLLECTION_LIST, .max = 3 },
};

static int later;

static int64_t clock_of(struct env *env, struct slice key)
{
	(void)env;
	(void)key;
	return SERVER_NOW + later;
}

static void setup(void)
{
	static const char *const prefixes[] = { "", "t", "c", "l", "m" };
	static struct large_filter large;

	later = 0;
	serving_setup(&options);
	fake.host.env.server_time = clock_of;
	fake.host.env.large = &large;
	fake.host.env.unix_time = 1000;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		rules[i].prefix = slice_of(prefixes[i], strlen(prefixes[i]));
	fake.rules = (struct rules){ .collections = rules,
		.collection_count = sizeof(rules) / sizeof(rules[0]) };
}

FIXTURE(setup, serving_teardown)

static void put(const char *key, const char *log)
{
	const char *base = dated_log(log);

	server_put(&server, slice_of(key, strlen(key)), slice_of(base, strlen(base)));
}

/* Checks a base, in the notation of dates. */
static void has(const char *key, const char *log)
{
	static char text[DATED_TEXT];
	const struct memcached_item *item = server_find(&server, slice_of(key, strlen(key)));

	ck_assert_msg(item != NULL, "%s", key);
	snprintf(
		text, sizeof(text), "%.*s", (int)buf_size(&item->value), buf_slice(&item->value).p);
	ck_assert_str_eq(dated_show(text), log);
}

/* --- saddex --- */

TEST(adding)
{
	asks_and_hears("saddex k 60 a b\r\nsaddex k 0 c\r\nsadd k d\r\n",
		"STORED\r\nSTORED\r\nSTORED\r\n");
	has("k", "+a^60 +b^60 +c +d ");
	later = 59;
	asks_and_hears("smembers k\r\nscard k\r\n", "VALUE k 0 7\r\na b c d\r\nEND\r\n4\r\n");
	asks_and_hears("saddex k 60 b\r\nsttl k a\r\nsttl k b\r\n", "STORED\r\n1\r\n60\r\n");
	later = 60;
	asks_and_hears("smembers k\r\nscard k\r\n", "VALUE k 0 5\r\nb c d\r\nEND\r\n3\r\n");
	asks_and_hears("sismember k a\r\nsmismember k a b c\r\n", "0\r\n0 1 1\r\n");
	/* For ever, and not any more. */
	asks_and_hears("saddex k 0 b\r\nsaddex k 5 c\r\n", "STORED\r\nSTORED\r\n");
	later = 1000;
	asks_and_hears("smembers k\r\n", "VALUE k 0 3\r\nb d\r\nEND\r\n");
	asks_and_hears("srandmember k 10\r\nspop k 10\r\n",
		"VALUE k 0 3\r\nb d\r\nEND\r\nVALUE k 0 3\r\nb d\r\nEND\r\n");
	asks_and_hears("scard k\r\nsrandmember k\r\n", "0\r\nEND\r\n");
}

TEST(arguments)
{
	static const char usage[] =
		"CLIENT_ERROR usage: saddex <key> <seconds> <member>+ [noreply]\r\n";

	asks_and_hears("saddex k\r\n", usage);
	asks_and_hears("saddex k 5\r\n", usage);
	asks_and_hears(
		"sexpire k 5\r\n", "CLIENT_ERROR usage: sexpire <key> <seconds> <member>+\r\n");
	asks_and_hears("sttl k\r\n", "CLIENT_ERROR usage: sttl <key> <member>\r\n");
	for (const char *line = "saddex k -1 a\r\n\0saddex k x a\r\n\0saddex k 315360001 "
				"a\r\n\0sexpire k 1.5 a\r\n\0";
		*line; line += strlen(line) + 1) {
		client_asks(line);
		server_answer_all(&server);
		ck_assert_msg(strncmp(fake_told(&fake), "CLIENT_ERROR ", 13) == 0, "%s", line);
	}
	asks_and_hears("saddex k 315360000 a\r\n", "STORED\r\n");
	has("k", "+a^315360000 ");
	asks_and_hears("saddex k 5 a noreply\r\nsttl k a\r\n", "5\r\n");
	asks_and_hears("sttl k b\r\nsttl none b\r\nsttl none b\r\n",
		"NOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
}

TEST(other_encodings_and_types_refuse)
{
	static const char encoding[] =
		"CLIENT_ERROR the encoding of this key has no members that expire\r\n";
	static const char type[] = "CLIENT_ERROR elements of a list do not expire\r\n";

	asks_and_hears("saddex c 5 a\r\n", encoding);
	asks_and_hears("sexpire c 5 a\r\n", encoding);
	asks_and_hears("saddex l 5 a\r\n", type);
	asks_and_hears("sexpire l 5 a\r\n", type);
	ck_assert_uint_eq(server_items(&server, ""), 0);
	/* Their members stay for ever. */
	asks_and_hears("sadd c a\r\nsttl c a\r\nsttl c b\r\n", "STORED\r\n-1\r\nNOT_FOUND\r\n");
}

/* --- sexpire --- */

TEST(setting_dates)
{
	put("k", "+a +b^9 +c^-1 -d +e ");
	asks_and_hears("sexpire k 60 a b c d x\r\n", "2\r\n");
	has("k", "+a +b^9 +c^-1 -d +e +a^60 +b^60 ");
	asks_and_hears("sexpire k 0 b\r\nsttl k b\r\n", "1\r\n-1\r\n");
	asks_and_hears("sexpire k 5 c x\r\n", "0\r\n");
	asks_and_hears("sexpire k 0 b x b\r\n", "1\r\n");
	has("k", "+a +b^9 +c^-1 -d +e +a^60 +b^60 +b +b ");
	asks_and_hears("sexpire none 5 a\r\n", "NOT_FOUND\r\n");
	ck_assert_ptr_null(server_find(&server, SLICE("none")));
	later = 60;
	asks_and_hears("sexpire k 7 a b\r\n", "1\r\n");
	asks_and_hears("smembers k\r\nsttl k b\r\n", "VALUE k 0 3\r\nb e\r\nEND\r\n7\r\n");
}

/* The base keeps its time to live. */
TEST(the_time_to_live_stays)
{
	put("k", "+a ");
	server_find(&server, SLICE("k"))->expires = SERVER_NOW + 500;
	asks_and_hears("sexpire k 60 a\r\n", "1\r\n");
	ck_assert_int_eq(server_find(&server, SLICE("k"))->expires, SERVER_NOW + 500);
	asks_and_hears("sttl k a\r\n", "60\r\n");
}

/* Another client removes one of them, and adds another: what is there then is chosen from. */
TEST(races_that_are_lost)
{
	put("k", "+a +b ");
	asks_up_to("sexpire k 60 a b c\r\n", CALL_CAS);
	put("k", "+a +b -a +c +x ");
	hears("2\r\n");
	has("k", "+a +b -a +c +x +b^60 +c^60 ");
	/* None is left. */
	asks_up_to("sexpire k 70 b\r\n", CALL_CAS);
	put("k", "+x ");
	hears("0\r\n");
	has("k", "+x ");
	asks_up_to("sexpire k 70 x\r\n", CALL_CAS);
	server_find(&server, SLICE("k"))->used = false;
	hears("NOT_FOUND\r\n");
	ck_assert_ptr_null(server_find(&server, SLICE("k")));
	/* The same base, written again. */
	put("k", "+x ");
	asks_up_to("sexpire k 70 x\r\n", CALL_CAS);
	put("k", "+x ");
	hears("1\r\n");
	has("k", "+x +x^70 ");
}

TEST(too_many_races_are_lost)
{
	put("k", "+a ");
	client_asks("sexpire k 60 a\r\n");
	while (fake_waiting(&fake)) {
		if (fake.calls[fake_oldest(&fake)].call.verb == CALL_CAS)
			server_find(&server, SLICE("k"))->cas++;
		server_answer_one(&server);
	}
	client_is_told("SERVER_ERROR busy\r\n");
	has("k", "+a ");
}

TEST(failures_of_the_server)
{
	put("k", "+a ");
	asks_up_to("sexpire k 60 a\r\n", CALL_CAS);
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	asks_up_to("sexpire k 60 a\r\n", CALL_GET);
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	server_put(&server, SLICE("k"), SLICE("what"));
	asks_and_hears("sexpire k 60 a\r\n", "CLIENT_ERROR value is not a collection\r\n");
	put("k", "@list +a ");
	asks_and_hears("sexpire k 60 a\r\n", "CLIENT_ERROR value is not a collection\r\n");
	has("k", "@list +a ");
}

/* Many members, in a set with runs, in slices. */
TEST(many_members)
{
	enum { MANY = 1000 };
	struct buf line = BUF_EMPTY;
	size_t pauses = 0, before;

	for (int pass = 0; pass < 2; pass++) {
		buf_printf(&line, pass ? "sexpire k 60" : "sset k");
		for (int i = 0; i < MANY; i++)
			buf_printf(&line, " member-%04d", i * (pass + 1));
		BUF_ADD(&line, "\r\n\0");
		if (pass)
			break;
		asks_and_hears(buf_slice(&line).p, "STORED\r\n");
		buf_consume(&line, buf_size(&line));
	}
	fake.slice = 50;
	fake_has_time(&fake);
	before = fake.count;
	client_asks(buf_slice(&line).p);
	do {
		server_answer_all(&server);
		pauses += fake_pass(&fake, 0);
	} while (fake.turn_count || fake_waiting(&fake));
	client_is_told("500\r\n");
	ck_assert_uint_gt(pauses, 50);
	ck_assert_uint_gt(fake.count, before);
	asks_and_hears("sttl k member-0998\r\n", "60\r\n");
	later = 60;
	client_asks("scard k\r\n");
	do
		server_answer_all(&server);
	while (fake_pass(&fake, 0));
	client_is_told("500\r\n");
	buf_free(&line);
}

/* --- claims --- */

TEST(claims)
{
	put("k", "+a^5 ");
	asks_and_hears("sclaim k a\r\n", "0\r\n");
	later = 5;
	asks_and_hears("sclaim k a\r\nsclaim k a\r\n", "1\r\n0\r\n");
	has("k", "+a^5 +a ");
	/* Each claim is for as long as the rule says. */
	asks_and_hears("sclaim t a\r\nsclaim t a\r\n", "1\r\n0\r\n");
	has("t", "+a^105 ");
	later = 105;
	asks_and_hears("sclaim t a\r\nsclaim t a\r\n", "1\r\n0\r\n");
	has("t", "+a^105 +a^205 ");
	/* Another one is first. */
	later = 205;
	asks_up_to("sclaim t a\r\n", CALL_CAS);
	put("t", "+a^205 +a^305 ");
	hears("0\r\n");
	has("t", "+a^205 +a^305 ");
}

/* --- smove --- */

TEST(moving_a_member)
{
	put("k", "+a +b^9 +c^-1 ");
	put("u", "+x ");
	/* A date stays behind, and the rule of the target gives one. */
	asks_and_hears("smove k t a\r\n", "STORED\r\n");
	has("k", "+a +b^9 +c^-1 -a ");
	has("t", "+a^100 ");
	asks_and_hears("smove k u b\r\n", "STORED\r\n");
	has("k", "+a +b^9 +c^-1 -a -b ");
	has("u", "+x +b ");
	asks_and_hears("smove k t c\r\n", "NOT_FOUND\r\n");
	asks_and_hears("smove t u a\r\n", "STORED\r\n");
	has("t", "+a^100 -a ");
	has("u", "+x +b +a ");
	put("t", "+a^5 ");
	asks_and_hears("smove t t a\r\n", "STORED\r\n");
	has("t", "+a^5 ");
	asks_and_hears("smove t t2 a\r\n", "STORED\r\n");
	has("t", "+a^5 -a ");
	has("t2", "+a^100 ");
}

/* --- the rule --- */

TEST(whatever_is_added)
{
	asks_and_hears("sadd t a\r\nsadd t b c\r\nsaddx t d\r\nsrem t a\r\nsrem t x y\r\n",
		"STORED\r\nSTORED\r\nSTORED\r\nDELETED\r\nDELETED\r\n");
	has("t", "+a^100 +b^100 +c^100 +d^100 -a -x -y ");
	/* The seconds of a command are those that count. */
	asks_and_hears("saddex t 7 a\r\nsaddex t 0 b\r\n", "STORED\r\nSTORED\r\n");
	asks_and_hears("sexpire t 3 c\r\nsexpire t 0 d\r\n", "1\r\n1\r\n");
	asks_and_hears(
		"sttl t a\r\nsttl t b\r\nsttl t c\r\nsttl t d\r\n", "7\r\n-1\r\n3\r\n-1\r\n");
	later = 50;
	asks_and_hears("sset t e f\r\n", "STORED\r\n");
	has("t", "+e^150 +f^150 ");
	asks_and_hears("sset t\r\n", "STORED\r\n");
	has("t", "");
	asks_and_hears("sset k a\r\nsaddx none x\r\n", "STORED\r\nNOT_FOUND\r\n");
	has("k", "+a ");
}

TEST(a_large_set)
{
	struct buf line = BUF_EMPTY;

	BUF_ADD(&line, "sset t");
	for (int i = 0; i < 1000; i++)
		buf_printf(&line, " member-%04d", i);
	BUF_ADD(&line, "\r\n\0");
	asks_and_hears(buf_slice(&line).p, "STORED\r\n");
	ck_assert_uint_gt(server_items(&server, "t."), 5);
	asks_and_hears("sttl t member-0500\r\n", "100\r\n");
	later = 99;
	asks_and_hears("sadd t member-0001\r\nscard t\r\n", "STORED\r\n1000\r\n");
	later = 100;
	asks_and_hears("scard t\r\nsmembers t\r\n", "1\r\nVALUE t 0 11\r\nmember-0001\r\nEND\r\n");
	/* Nothing of it is left. */
	ck_assert_uint_eq(server_items(&server, "t."), 0);
	buf_free(&line);
}

TEST(loads)
{
	char token[LEASE_TOKEN + 1] = "", line[100];
	const char *reply;

	client_asks("slease t\r\n");
	server_answer_all(&server);
	reply = fake_told(&fake);
	ck_assert_int_eq(strncmp(reply, "LEASE ", 6), 0);
	memcpy(token, reply + 6, LEASE_TOKEN);
	snprintf(line, sizeof(line), "sload t %s a b\r\n", token);
	asks_and_hears(line, "STORED\r\n");
	later = 10;
	snprintf(line, sizeof(line), "sfill t %s c d\r\n", token);
	asks_and_hears(line, "STORED\r\n");
	asks_and_hears("sttl t a\r\nsttl t c\r\n", "90\r\n100\r\n");
	later = 100;
	asks_and_hears("smembers t\r\n", "VALUE t 0 3\r\nc d\r\nEND\r\n");
}

/* The target gives its dates, whatever those of the sources are. */
TEST(stores_of_sets)
{
	put("k", "+a^5 +b +c^-1 +d ");
	put("u", "+d^9 +e ");
	asks_and_hears("sunionstore t k u\r\n", "4\r\n");
	has("t", "+a^100 +b^100 +d^100 +e^100 ");
	asks_and_hears("sunionstore v t u\r\n", "4\r\n");
	has("v", "+a +b +d +e ");
	later = 5;
	asks_and_hears("sinterstore t k u\r\n", "1\r\n");
	has("t", "+d^105 ");
	asks_and_hears("sdiffstore v k u\r\n", "1\r\n");
	has("v", "+b ");
	asks_and_hears(
		"sinter k c\r\nsintercard 2 k u\r\n", "VALUE sinter 0 0\r\n\r\nEND\r\n1\r\n");
	later = 9;
	asks_and_hears("sintercard 2 k u\r\nsunioncard 2 k u\r\n", "0\r\n3\r\n");
}

TEST(a_large_store)
{
	struct buf log = BUF_EMPTY;

	for (int i = 0; i < 1000; i++)
		buf_printf(&log, "+member-%04d%s ", i, i % 2 ? "^5" : "");
	BUF_ADD(&log, "\0");
	put("k", buf_slice(&log).p);
	asks_and_hears("sunionstore t k none\r\n", "1000\r\n");
	ck_assert_uint_gt(server_items(&server, "t."), 5);
	asks_and_hears("sttl t member-0000\r\nsttl t member-0001\r\nsttl t member-0999\r\n",
		"100\r\n100\r\n100\r\n");
	later = 5;
	asks_and_hears("scard t\r\nscard k\r\nsunionstore v k none\r\n", "1000\r\n500\r\n500\r\n");
	asks_and_hears("sttl v member-0000\r\n", "-1\r\n");
	later = 100;
	asks_and_hears("scard t\r\nscard v\r\n", "0\r\n500\r\n");
	buf_free(&log);
}

TEST(plain_verbs)
{
	asks_and_hears("set t 0 0 3\r\na,b\r\n", "STORED\r\n");
	has("t", "+a^100 +b^100 ");
	asks_and_hears("append t 0 0 1\r\nc\r\nprepend t 0 0 1\r\na\r\n", "STORED\r\nSTORED\r\n");
	has("t", "+a^100 +b^100 +c^100 -a ");
	asks_and_hears("get t\r\n", "VALUE t 0 4\r\nb,c,\r\nEND\r\n");
	later = 100;
	asks_and_hears("get t\r\n", "VALUE t 0 0\r\n\r\nEND\r\n");
}

/* --- lists --- */

/* Words with dates got into a list by another rule: its elements stay. */
TEST(lists_ignore_dates)
{
	put("l", "@list +a^5 +b +c^-1 +a^7 ");
	asks_and_hears("lrange l 0 -1\r\nllen l\r\n", "VALUE l 0 7\r\na b c a\r\nEND\r\n4\r\n");
	asks_and_hears("lpos l c\r\nlindex l 2\r\n", "2\r\nVALUE l 0 1\r\nc\r\nEND\r\n");
	asks_and_hears("scard l\r\nsismember l c\r\nsttl l c\r\nsttl l x\r\n",
		"3\r\n1\r\n-1\r\nNOT_FOUND\r\n");
	later = 100;
	asks_and_hears("scard l\r\nsmembers l\r\nsttl l a\r\n",
		"3\r\nVALUE l 0 5\r\na b c\r\nEND\r\n-1\r\n");
	has("l", "@list +a^5 +b +c^-1 +a^7 ");
	asks_and_hears("lpop l\r\n", "VALUE l 0 1\r\na\r\nEND\r\n");
	has("l", "@list +b +c +a ");
}

TEST(compactions_of_lists_drop_dates)
{
	put("l", "@list +a^5 +b +c^-1 -b ");
	asks_and_hears("scompact l\r\n", "OK\r\n");
	has("l", "@list +a +c ");
	put("k", "@list +a^5 +b +c^-1 -b ");
	asks_and_hears("scompact k\r\nlrange k 0 -1\r\n", "OK\r\nVALUE k 0 3\r\na c\r\nEND\r\n");
}

/* The same for one with held elements and a time to live. */
TEST(lists_with_held_elements)
{
	put("l", "+z^3 @list +a^5 +b ");
	server_find(&server, SLICE("l"))->expires = SERVER_NOW + 500;
	client_asks("lhold l 60 left\r\n");
	server_answer_all(&server);
	ck_assert_int_eq(strncmp(fake_told(&fake), "VALUE ", 6), 0);
	asks_and_hears("lrange l 0 -1\r\n", "VALUE l 0 3\r\na b\r\nEND\r\n");
	ck_assert_int_eq(server_find(&server, SLICE("l"))->expires, SERVER_NOW + 500);
}

TEST(lists_with_segments)
{
	struct buf log = BUF_EMPTY;

	server_put(&server, SLICE("l.s0a00000001x.6.1"), SLICE("+a +b +a +c +d +b "));
	put("l", "+y^3 @list @s0a00000001x.6.1 +e^-5 +a^9 ");
	asks_and_hears("lrange l 0 -1\r\n", "VALUE l 0 17\r\ny a b a c d b e a\r\nEND\r\n");
	later = 20;
	asks_and_hears(
		"smembers l\r\nsttl l e\r\n", "VALUE l 0 11\r\ny a b c d e\r\nEND\r\n-1\r\n");
	asks_and_hears("lpop l\r\nlindex l -2\r\nrpush l q\r\n",
		"VALUE l 0 1\r\ny\r\nEND\r\nVALUE l 0 1\r\ne\r\nEND\r\nSTORED\r\n");
	asks_and_hears("spop l 100\r\nllen l\r\n", "VALUE l 0 11\r\na b c d e q\r\nEND\r\n0\r\n");
	/* A log that becomes a segment has none. */
	for (int i = 0; i < 2000; i++)
		buf_printf(&log, "+element-%04d^7 ", i);
	buf_printf(&log, "%c", 0);
	put("l", buf_slice(&log).p);
	asks_and_hears("scompact l\r\n", "OK\r\n");
	ck_assert_uint_gt(server_items(&server, "l.s"), 1);
	for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
		const struct memcached_item *item = &server.memcached.items[i];
		ck_assert(!item->used || !buf_size(&item->value) ||
			!memchr(buf_slice(&item->value).p, EXPIRY_MARK, buf_size(&item->value)));
	}
	asks_and_hears("llen l\r\n", "2000\r\n");
	buf_free(&log);
}

TEST(lists_with_a_limit)
{
	put("m", "@list +a^5 +b^-1 +c +d^9 ");
	later = 50;
	asks_and_hears("lrange m 0 -1\r\n", "VALUE m 0 5\r\nb c d\r\nEND\r\n");
	asks_and_hears("smembers m\r\nscard m\r\nsttl m d\r\n",
		"VALUE m 0 5\r\nb c d\r\nEND\r\n3\r\n-1\r\n");
	asks_and_hears(
		"rpush m e\r\nlrange m 0 -1\r\n", "STORED\r\nVALUE m 0 5\r\nc d e\r\nEND\r\n");
}
