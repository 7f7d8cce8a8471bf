/* Arguments that are refused, one line for each way of each grammar. Transcripts have them for each command. */
#include "conversations.h"

#define USAGE(usage) "CLIENT_ERROR usage: " usage "\r\n"

#define PART "k.s0k4zq81mfwx.3.1"
#define COPY_REFUSED "CLIENT_ERROR the key is that of a second copy, and can only be read\r\n"
#define PART_REFUSED "CLIENT_ERROR the key is a part of a set or list, and can only be read\r\n"

static const struct {
	const char *line, *reply;
} cases[] = {
	{ "scard k x\r\n", USAGE("scard <key>") },
	{ "sismember k\r\n", USAGE("sismember <key> <member>") },
	{ "sismember k a b\r\n", USAGE("sismember <key> <member>") },
	{ "lpop k -1\r\n", "CLIENT_ERROR invalid count\r\n" },
	{ "rpop k 1 2\r\n", USAGE("rpop <key> [<count>]") },
	{ "lindex k\r\n", USAGE("lindex <key> <index>") },
	{ "lindex k x\r\n", "CLIENT_ERROR invalid index\r\n" },
	{ "lrange k 1 2 3\r\n", USAGE("lrange <key> <start> <stop>") },
	{ "lpos k\r\n", USAGE("lpos <key> <element> [rank <n>] [count <n>] [maxlen <n>]") },
	{ "lpos k a rank\r\n", USAGE("lpos <key> <element> [rank <n>] [count <n>] [maxlen <n>]") },
	{ "lpos k a first 1\r\n",
		USAGE("lpos <key> <element> [rank <n>] [count <n>] [maxlen <n>]") },
	{ "lpos k a rank 0\r\n", "CLIENT_ERROR invalid rank\r\n" },
	{ "lpos k a rank x\r\n", "CLIENT_ERROR invalid rank\r\n" },
	{ "lpos k a count -1\r\n", "CLIENT_ERROR invalid count\r\n" },
	{ "lpos k a count 1 maxlen -1\r\n", "CLIENT_ERROR invalid maxlen\r\n" },
	{ "linsert k beside a b\r\n", USAGE("linsert <key> before|after <pivot> <element>") },
	{ "linsert k after a\r\n", USAGE("linsert <key> before|after <pivot> <element>") },
	{ "lmove k l left\r\n", USAGE("lmove <source> <target> left|right left|right") },
	{ "lmove k l left up\r\n", USAGE("lmove <source> <target> left|right left|right") },
	{ "lmove k " PART " left right\r\n", PART_REFUSED },
	{ "lmove " PART " k left right\r\n", PART_REFUSED },
	{ "lmove k l.~copy left right\r\n", COPY_REFUSED },
	{ "lmove k.~copy l left right\r\n", COPY_REFUSED },
	{ "lmove k l.~copy.s0k4zq81mfwx.3.1 left right\r\n", PART_REFUSED },
	{ "lmove k Signed left right\r\n",
		"CLIENT_ERROR the encoding of this key is only for sets\r\n" },
	{ "rpoplpush k\r\n", USAGE("rpoplpush <source> <target>") },
	{ "rpoplpush Signed k\r\n", "CLIENT_ERROR the encoding of this key is only for sets\r\n" },
	{ "lmpop 1 left Signed k\r\n",
		"CLIENT_ERROR the encoding of this key is only for sets\r\n" },
	{ "blmpop 1 1 left Signed k\r\n",
		"CLIENT_ERROR the encoding of this key is only for sets\r\n" },
	{ "smove k l\r\n", USAGE("smove <source> <target> <member> [noreply]") },
	{ "smove k \"l\\x7f\" a\r\n", "CLIENT_ERROR a key is a word\r\n" },
	{ "smove k \"l l\" a\r\n", "CLIENT_ERROR a key is a word\r\n" },
	{ "smove k Signed a+b\r\n",
		"CLIENT_ERROR member contains a byte that its encoding reserves\r\n" },
	{ "lrem k 1\r\n", USAGE("lrem <key> <count> <element>") },
	{ "lrem k x a\r\n", "CLIENT_ERROR invalid count\r\n" },
	{ "lset k 1\r\n", USAGE("lset <key> <index> <element> [noreply]") },
	{ "evincr E x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n" },
	{ "evincr E 9223372036854775808\r\n", "CLIENT_ERROR delta too large\r\n" },
	{ "evincr E 1 x\r\n", USAGE("evincr <type> [<delta> [<unixtime>]] [noreply]") },
	{ "evincr E 1 2 3\r\n", USAGE("evincr <type> [<delta> [<unixtime>]] [noreply]") },
	{ "evincr E 1 253402300800\r\n", "CLIENT_ERROR unixtime out of range\r\n" },
	{ "evlimit E 1\r\n", USAGE("evlimit <type> <limit> <seconds>") },
	{ "evlimit E 1 2 3\r\n", USAGE("evlimit <type> <limit> <seconds>") },
	{ "evlimit E -1 60\r\n", "CLIENT_ERROR invalid limit\r\n" },
	{ "evlimit E 1 x\r\n", "CLIENT_ERROR invalid seconds\r\n" },
	{ "evlimit E 1 0\r\n", "CLIENT_ERROR invalid seconds\r\n" },
	{ "evlimit E 1 230401\r\n", "CLIENT_ERROR too many buckets\r\n" },
	{ "evlimit Short 1 7201\r\n", "CLIENT_ERROR counters of this type expire too early\r\n" },
	{ "evadd E 0 0 1 253402300800\r\nx\r\n", "CLIENT_ERROR unixtime out of range\r\n" },
	{ "evcount E 20150230\r\n", "CLIENT_ERROR bad bucket\r\n" },
	{ "evcount E now -1\r\n", "CLIENT_ERROR bad bucket\r\n" },
	{ "evcount E x now\r\n", "CLIENT_ERROR bad bucket\r\n" },
	{ "evcount E -30000 now F\r\n", "CLIENT_ERROR too many buckets\r\n" },
	{ "evcount E now now q|F\r\n", "CLIENT_ERROR no such command\r\n" },
	{ "evcount E now now q|scard|F\r\n", "CLIENT_ERROR use get for the command scard\r\n" },
	{ "evcount E 1970 9999\r\n", "CLIENT_ERROR too many buckets\r\n" },
	{ "evrange E\r\n", USAGE("evrange <type> <bucket> [<first> [<last>]]") },
	{ "evrange E now x\r\n", USAGE("evrange <type> <bucket> [<first> [<last>]]") },
	{ "evrange E now 1 x\r\n", USAGE("evrange <type> <bucket> [<first> [<last>]]") },
	{ "evrange E now 1 2 3\r\n", USAGE("evrange <type> <bucket> [<first> [<last>]]") },
	{ "evrange M 2015\r\n", "CLIENT_ERROR too many buckets\r\n" },
	{ "evlast E\r\n", USAGE("evlast <type> <n> [<bucket> [<type>+]]") },
	{ "evlast E x\r\n", "CLIENT_ERROR invalid count\r\n" },
	{ "evlast E 1000001\r\n", "CLIENT_ERROR too many events\r\n" },
	{ "evlast E 1 then\r\n", "CLIENT_ERROR bad bucket\r\n" },
	{ "evlast E 500001 now F\r\n", "CLIENT_ERROR too many events\r\n" },
	{ "evlast E 1 then F\r\n", "CLIENT_ERROR bad bucket\r\n" },
};

TEST(refused)
{
	static const struct event_rule of_events[] = {
		{ { "Short", 5 }, GRANULARITY_HOUR, 7200, { "::", 2 }, 24, false, false, 1, 0 },
		{ { "M", 1 }, GRANULARITY_MINUTE, 0, { "::", 2 }, 24, false, false, 1, 0 },
	};
	static const struct collection_rule of_sets[] = {
		{ .prefix = { "Signed", 6 }, .encoding = ENCODING_SIGNED }, { .prefix = { "", 0 } }
	};
	static char line[140000];

	fake.rules = (struct rules){ .events = of_events,
		.event_count = 2,
		.collections = of_sets,
		.collection_count = 2,
		.commands = { { "q|", 2 }, ' ' } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		client_asks(cases[i].line);
		client_is_told(cases[i].reply);
	}
	snprintf(line, sizeof(line), "sset k a %01001d\r\n", 0);
	client_asks(line);
	client_is_told("CLIENT_ERROR member too long\r\n");
	snprintf(line, sizeof(line), "linsert k after %065537d a\r\nlinsert k after a %065537d\r\n",
		0, 0);
	client_asks(line);
	client_is_told("CLIENT_ERROR element too long\r\nCLIENT_ERROR element too long\r\n");
	snprintf(line, sizeof(line), "smove k %0221d a\r\n", 0);
	client_asks(line);
	client_is_told("CLIENT_ERROR key too long\r\n");
	snprintf(line, sizeof(line), "evcount E now now F %0250d\r\n", 0);
	client_asks(line);
	client_is_told("CLIENT_ERROR key too long\r\n");
	snprintf(line, sizeof(line), "evlast E 1 now%*s\r\n", 2000, "");
	for (int i = 0; i < 1000; i++)
		memcpy(strstr(line, "now") + 3 + 2 * i, " F", 2);
	client_asks(line);
	client_is_told("CLIENT_ERROR too many types\r\n");
	server_hears_nothing();
}

/* The key of the second copy has six bytes more, and the same parts. */
TEST(keys_with_two_copies)
{
	enum { MOST = COLLECTION_KEY_MAX - 6, EVENT_MOST = 214 - 6 };
	static const struct collection_rule of_sets[] = {
		{ .prefix = { "c", 1 }, .copies = 2, .only = true }
	};
	static const struct event_rule of_events[] = {
		{ .prefix = { "c", 1 }, .separator = { "::", 2 }, .copies = 2 }
	};
	/* What precedes and follows the key. */
	static const char *const sets[][2] = { { "sadd ", " a" }, { "smembers ", "" },
		{ "sset ", " a" }, { "sunion c ", "" }, { "smove c ", " a" },
		{ "sdiffstore c c ", "" }, { "sintercard 2 c ", "" } };
	static const char *const lists[] = { "rpush c a\r\n", "lpop c\r\n", "lrange c 0 1\r\n",
		"lmove k c left right\r\n", "lmove c k left right\r\n", "lmpop 1 left c\r\n",
		"blmpop 1 1 left c\r\n", "blpop 1 c\r\n", "blmove 1 k c left right\r\n",
		"rpoplpush k c\r\n", "lhold c 5\r\n", "llen c\r\n" };
	char line[600], key[300];

	fake.rules = (struct rules){ .collections = of_sets,
		.collection_count = 1,
		.events = of_events,
		.event_count = 1,
		.copies = true };
	snprintf(key, sizeof(key), "%0*d", MOST, 0);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		snprintf(line, sizeof(line), "%sc%s%s\r\n", sets[i][0], key, sets[i][1]);
		client_asks(line);
		client_is_told("CLIENT_ERROR key too long\r\n");
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		client_asks(lists[i]);
		client_is_told("CLIENT_ERROR keys with two copies are only for sets\r\n");
	}
	snprintf(line, sizeof(line), "evincr c%0*d\r\nevcount c%0*d\r\n", EVENT_MOST, 0, EVENT_MOST,
		0);
	client_asks(line);
	client_is_told("CLIENT_ERROR key too long\r\nCLIENT_ERROR key too long\r\n");
	server_hears_nothing();
	snprintf(line, sizeof(line), "sadd c%.*s a\r\n", MOST - 1, key);
	client_asks(line);
	snprintf(line, sizeof(line), "sadd %.*s a\r\n", MOST + 1, key);
	client_asks(line);
	snprintf(line, sizeof(line), "evincr c%0*d\r\n", EVENT_MOST - 1, 0);
	client_asks(line);
	relays("STORED\r\nSTORED\r\n1\r\n", "STORED\r\nSTORED\r\n1\r\n");
}
