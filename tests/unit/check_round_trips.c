/*
 * The number of round trips of each command, counted by the fake: calls that are in flight
 * together count once, on however many servers. A change that increases a number must explain it;
 * one that reduces it records it here.
 */
#include <stdio.h>

#include "collection/adopted/encodings/encodings.h"
#include "collection/large.h"
#include "protocol/commands.h"
#include "serving.h"

enum { LARGE = 5000, SMALL = 20, MEMBERS_OF_A_LINE = 500 };

static const struct collection_options options = { .base_size = 16384,
	.segment_size = 16384,
	.log_size = 4096,
	.table_size = 2048,
	.cache = 1 << 24,
	.merges = 1,
	.lease_time = 10 };

static const struct event_rule with_types = {
	.prefix = BYTES("T"), .bucket = GRANULARITY_HOUR, .separator = BYTES("::"), .types = true
};

static void another_proxy(void)
{
	static struct large_filter large;
	static uint64_t random;

	fake_fini(&fake);
	fake_init(&fake);
	fake_takes(&options);
	fake.host.env.large = &large;
	/* Unique ids. */
	fake.host.env.random = random += 1000000;
	fake.rules.events = &with_types;
	fake.rules.event_count = 1;
}

static void setup(void)
{
	serving_setup(&options);
	another_proxy();
}

FIXTURE(setup, serving_teardown)

static void answer(size_t i)
{
	const struct call *call = &fake.calls[i].call;
	const struct result header = { .status = RESULT_TEXT, .line = SLICE("HD") };
	const struct result done = { .status = RESULT_DONE };

	if (call->verb == CALL_META || call->verb == CALL_FLUSH_ALL)
		fake_result(&fake, i, call->verb == CALL_META ? &header : &done);
	else
		server_answer(&server, i);
}

/*
 * Answers the calls in flight, then those that were made meanwhile. Returns how many rounds there
 * are until the client has its reply.
 */
static unsigned trips(const char *request)
{
	unsigned count = 0;

	client_asks(request);
	while (!STAILQ_EMPTY(&fake.tasks)) {
		count++;
		for (size_t i = fake.first, end = fake.count; i < end; i++) {
			if (!fake.calls[i].answered)
				answer(i);
		}
	}
	/* Background work after the reply. */
	server_answer_all(&server);
	return count;
}

static void fill(const char *verb, const char *key, int members)
{
	struct buf line = BUF_EMPTY;

	for (int i = 0; i < members; i++) {
		if (i % MEMBERS_OF_A_LINE == 0)
			buf_printf(&line, "%s%s %s", i ? "\r\n" : "", verb, key);
		buf_printf(&line, " m%06d", i);
	}
	BUF_ADD(&line, "\r\n\0");
	client_asks(buf_slice(&line).p);
	server_answer_all(&server);
	client_asks("scompact K\r\n");
	server_answer_all(&server);
	(void)fake_told(&fake);
	buf_free(&line);
}

/*
 * The sets k and l have 20 members, and K and L have 5,000, which fill some 20 tables. The lists i
 * and I are the same. c is a counter, v a value, and E and Te types of events with one event. The key n
 * is missing. `first`: by a proxy without cached data; `again`: immediately after that.
 */
static const struct {
	const char *line;
	unsigned first, again;
} rows[] = {
	{ "get v\r\n", 1, 1 },
	{ "get k\r\n", 1, 1 },
	{ "get v c n\r\n", 1, 1 },
	{ "gets v\r\n", 1, 1 },
	{ "gat 0 v\r\n", 1, 1 },
	{ "gats 0 v\r\n", 1, 1 },
	{ "mg v v\r\n", 1, 1 },
	{ "me v\r\n", 1, 1 },
	{ "set v 0 0 1\r\ny\r\n", 1, 1 },
	{ "add n 0 0 1\r\ny\r\n", 1, 1 },
	{ "replace v 0 0 1\r\ny\r\n", 1, 1 },
	{ "append v 0 0 1\r\ny\r\n", 1, 1 },
	{ "prepend v 0 0 1\r\ny\r\n", 1, 1 },
	{ "cas v 0 0 1 5\r\ny\r\n", 1, 1 },
	{ "ms v 1\r\ny\r\n", 1, 1 },
	{ "incr c 1\r\n", 1, 1 },
	{ "decr c 1\r\n", 1, 1 },
	{ "ma c\r\n", 1, 1 },
	{ "touch v 0\r\n", 2, 2 },
	{ "touch K 0\r\n", 5, 5 },
	{ "delete v\r\n", 1, 1 },
	{ "delete K\r\n", 1, 1 },
	{ "md v\r\n", 1, 1 },

	{ "sadd k x\r\n", 1, 1 },
	{ "sadd K x\r\n", 1, 1 },
	{ "sadd n x\r\n", 3, 1 },
	{ "saddx k x\r\n", 1, 1 },
	{ "saddx K x\r\n", 1, 1 },
	{ "saddex k 60 x\r\n", 1, 1 },
	{ "saddex n 60 x\r\n", 3, 1 },
	{ "sexpire k 60 m000001\r\n", 2, 2 },
	{ "sexpire K 60 m000500\r\n", 4, 2 },
	{ "sttl k m000001\r\n", 1, 1 },
	{ "sttl K m000500\r\n", 3, 1 },
	{ "srem k x\r\n", 1, 1 },
	{ "srem K m000500\r\n", 1, 1 },
	{ "sset k x y\r\n", 2, 2 },
	{ "sset K x y\r\n", 2, 2 },
	{ "smove k n m000001\r\n", 5, 1 },
	{ "smove K l m000500\r\n", 5, 1 },
	{ "sclaim k x\r\n", 2, 1 },
	{ "sclaim K x\r\n", 4, 1 },
	{ "sclaim n x\r\n", 2, 1 },
	{ "spop k\r\n", 2, 2 },
	{ "spop K\r\n", 4, 3 },
	{ "spop K 5\r\n", 4, 3 },
	{ "stake k\r\n", 2, 1 },
	{ "stake K\r\n", 5, 1 },
	{ "scompact k\r\n", 2, 2 },
	{ "scompact K\r\n", 2, 2 },

	{ "smembers k\r\n", 1, 1 },
	{ "smembers K\r\n", 3, 1 },
	{ "smembers k l n\r\n", 1, 1 },
	{ "scard k\r\n", 1, 1 },
	{ "scard K\r\n", 1, 1 },
	{ "scard n\r\n", 1, 1 },
	{ "sismember k x\r\n", 1, 1 },
	{ "sismember K m000500\r\n", 3, 1 },
	{ "smismember k x y\r\n", 1, 1 },
	{ "smismember K m000500 m004900 x\r\n", 3, 1 },
	{ "srandmember k\r\n", 1, 1 },
	{ "srandmember K\r\n", 3, 2 },
	{ "srandmember K 5\r\n", 3, 2 },
	{ "sscan k 5\r\n", 1, 1 },
	{ "sscan K 5 m002500\r\n", 3, 1 },
	{ "sscan K 5 match m00250*\r\n", 3, 1 },
	{ "srange k a z 5\r\n", 1, 1 },
	{ "srange K m002500 z 5\r\n", 3, 1 },
	{ "scount k a z\r\n", 1, 1 },
	{ "scount K m000100 m004900\r\n", 3, 1 },
	{ "sinfo k\r\n", 2, 2 },
	{ "sinfo K\r\n", 2, 2 },

	{ "sunion k l\r\n", 1, 1 },
	{ "sunion K L\r\n", 5, 2 },
	{ "sinter k l\r\n", 1, 1 },
	{ "sinter K L\r\n", 5, 2 },
	{ "sinter k K\r\n", 3, 1 },
	{ "sdiff k l\r\n", 1, 1 },
	{ "sdiff K L\r\n", 7, 3 },
	{ "sunioncard 2 k l\r\n", 1, 1 },
	{ "sunioncard 2 K L limit 5\r\n", 3, 1 },
	{ "sintercard 2 k l\r\n", 1, 1 },
	{ "sintercard 2 K L\r\n", 5, 2 },
	{ "sintercard 2 K L limit 1\r\n", 3, 1 },
	{ "sdiffcard 2 k l\r\n", 1, 1 },
	{ "sdiffcard 2 K L\r\n", 7, 3 },

	{ "sunionstore n k l\r\n", 3, 3 },
	{ "sinterstore n k l\r\n", 3, 3 },
	{ "sdiffstore n K l\r\n", 8, 5 },
	{ "slease n\r\n", 2, 1 },
	{ "slease k\r\n", 1, 1 },
	{ "slease K\r\n", 3, 3 },
	{ "sload k 8f3k2w0q x\r\n", 1, 1 },
	{ "sfill k 8f3k2w0q x\r\n", 1, 1 },
	{ "llease n\r\n", 2, 1 },
	{ "llease i\r\n", 1, 1 },
	{ "lload i 8f3k2w0q x\r\n", 1, 1 },
	{ "lfill i 8f3k2w0q x\r\n", 1, 1 },

	{ "rpush i x\r\n", 1, 1 },
	{ "rpush I x\r\n", 1, 1 },
	{ "rpush n x\r\n", 3, 1 },
	{ "lpush i x\r\n", 1, 1 },
	{ "lpush I x\r\n", 1, 1 },
	{ "rpushx i x\r\n", 1, 1 },
	{ "rpushx I x\r\n", 1, 1 },
	{ "lpushx i x\r\n", 1, 1 },
	{ "lpushx I x\r\n", 1, 1 },
	{ "lpop i\r\n", 2, 2 },
	{ "lpop I\r\n", 3, 2 },
	{ "rpop i\r\n", 2, 2 },
	{ "blhold 5 i 60\r\n", 2, 2 },
	{ "blmove 5 i l left right\r\n", 4, 4 },
	{ "blpop 5 i\r\n", 2, 2 },
	{ "brpop 5 i\r\n", 2, 2 },
	{ "blmpop 5 3 left i\r\n", 2, 2 },
	{ "rpop I\r\n", 3, 2 },
	{ "lrange i 0 -1\r\n", 1, 1 },
	{ "lrange I 0 -1\r\n", 2, 2 },
	{ "lrange I 0 5\r\n", 2, 1 },
	{ "lrange I 2500 2505\r\n", 2, 1 },
	{ "lindex i 5\r\n", 1, 1 },
	{ "lindex I 2500\r\n", 2, 1 },
	{ "llen i\r\n", 1, 1 },
	{ "llen I\r\n", 1, 1 },
	{ "lpos i m000005\r\n", 1, 1 },
	{ "lpos I m002500\r\n", 2, 2 },
	{ "lpos I m002500 rank -1\r\n", 2, 2 },
	{ "lpos I m000005 maxlen 6\r\n", 2, 1 },
	{ "linsert i after m000005 x\r\n", 2, 2 },
	{ "linsert I after m000005 x\r\n", 4, 4 },
	{ "lack i 0123456789ab\r\n", 1, 1 },
	{ "lfail i 0123456789ab\r\n", 1, 1 },
	{ "lhold i 60\r\n", 2, 2 },
	{ "lhold I 60\r\n", 3, 2 },
	{ "lmove i l left right\r\n", 4, 4 },
	{ "lmove I i right left\r\n", 5, 4 },
	{ "lmove i i left right\r\n", 2, 2 },
	{ "rpoplpush i n\r\n", 6, 4 },
	{ "lmpop 5 left n i\r\n", 3, 3 },
	{ "lrem i 1 m000005\r\n", 2, 1 },
	{ "lrem I 1 m002500\r\n", 4, 2 },
	{ "lset i 5 x\r\n", 2, 2 },
	{ "lset I 2500 x\r\n", 4, 4 },
	{ "ltrim i 0 5\r\n", 2, 1 },
	{ "ltrim I 100 -100\r\n", 2, 2 },

	{ "evincr E\r\n", 1, 1 },
	{ "evincr N\r\n", 2, 1 },
	{ "evadd E 0 0 1\r\nx\r\n", 2, 2 },
	{ "evcount E\r\n", 1, 1 },
	{ "evcount E -20 now\r\n", 1, 1 },
	{ "evrange E now\r\n", 2, 2 },
	{ "evcount E -20 now N\r\n", 1, 1 },
	{ "evlast E 5\r\n", 2, 2 },
	{ "evincr T\r\n", 3, 1 },
	{ "evadd T 0 0 1\r\nx\r\n", 4, 2 },
	{ "evtop T 5\r\n", 2, 2 },
	{ "evtop T 5 24\r\n", 25, 25 },
	{ "evlimit E 5 3600\r\n", 1, 1 },
	{ "evlimit E 5 72000\r\n", 1, 1 },

	{ "flush_all\r\n", 1, 1 },
};

static void stock(void)
{
	server_free(&server);
	server_init(&server, &fake);
	another_proxy();
	fill("sadd", "k", SMALL);
	fill("sadd", "l", SMALL);
	fill("sadd", "K", LARGE);
	fill("sadd", "L", LARGE);
	fill("rpush", "i", SMALL);
	fill("rpush", "I", LARGE);
	client_asks("evincr Te\r\nevadd E 0 0 1\r\nx\r\nset v 0 0 1\r\nx\r\nset c 0 0 1\r\n1\r\n");
	server_answer_all(&server);
	(void)fake_told(&fake);
	another_proxy();
}

/* --- rewrites of a key again and again, which are read ahead: see rewrite/ahead.h --- */

static const struct {
	const char *first, *second; /* requests in turn; NULL for the same again */
} turns[] = {
	{ "spop k\r\n", "sadd k m000001\r\n" },
	{ "spop K\r\n", "sadd K m000001\r\n" },
	{ "sclaim k x\r\n", "srem k x\r\n" },
	{ "spop k\r\n", NULL },
	{ "lhold i 60\r\n", "rpush i x\r\n" },
	{ "lpop i\r\n", "rpush i x\r\n" },
	{ "lpop I\r\n", "rpush I x\r\n" },
	{ "rpop i\r\n", "lpush i x\r\n" },
	{ "blpop 5 i\r\n", "rpush i x\r\n" },
	{ "lpop i\r\n", NULL },
	{ "rpop I\r\n", NULL },
	{ "lset i 5 x\r\n", "lset i 6 x\r\n" },
	{ "lmove i i left right\r\n", NULL },
	{ "ltrim i 0 5\r\n", "rpush i a b\r\n" },
};

static void one_trip(const char *request)
{
	ck_assert_uint_eq(trips(request), 1);
	ck_assert(!strstr(fake_told(&fake), "ERROR"));
}

/* Once the order of both is known, and the table of a randomly drawn member is in memory. */
TEST(rewrites_in_turn)
{
	for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		stock();
		(void)trips("smembers K\r\n");
		for (int n = 0; n < 2; n++) {
			(void)trips(turns[i].first);
			if (turns[i].second)
				(void)trips(turns[i].second);
		}
		(void)fake_told(&fake);
		for (int n = 0; n < 3; n++) {
			one_trip(turns[i].first);
			if (turns[i].second)
				one_trip(turns[i].second);
		}
	}
}

/* --- the other encodings, for which setlistd-encodings(7) has the numbers --- */

/* The last two columns of the row: those of an addition and of a removal. */
static void read_manual(const char *encoding, unsigned number[2])
{
	FILE *manual = fopen("man/setlistd-encodings.7", "r");
	char line[1000], head[100];

	ck_assert_ptr_nonnull(manual);
	snprintf(head, sizeof(head), ".It Cm %s Ta ", encoding);
	while (fgets(line, sizeof(line), manual)) {
		char *behind = strrchr(line, 'T');
		if (strncmp(line, head, strlen(head)) != 0 || !behind)
			continue;
		number[1] = (unsigned)strtoul(behind + 2, NULL, 10);
		*behind = 0;
		number[0] = (unsigned)strtoul(strrchr(line, 'T') + 2, NULL, 10);
		fclose(manual);
		return;
	}
	ck_abort_msg("the manual has no row for %s", encoding);
}

TEST(each_encoding)
{
	for (int id = ENCODING_OPLOG; id <= ENCODING_INDEXED; id++) {
		const char *name =
			id == ENCODING_OPLOG ? "oplog" : encoding_get((enum encoding_id)id)->name;
		struct collection_rule rule = { .prefix = SLICE("s"),
			.encoding = (enum encoding_id)id,
			.delimiter = ',',
			.removed = SLICE("t"),
			.pointer = true };
		unsigned number[2] = { 0 };
		read_manual(name, number);
		server_free(&server);
		another_proxy();
		fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
		asks_and_hears("sadd s1 1 2 3\r\n", "STORED\r\n");
		ck_assert_msg(trips("sadd s1 4\r\n") == number[0], "sadd in %s", name);
		client_is_told("STORED\r\n");
		ck_assert_msg(trips("srem s1 2\r\n") == number[1], "srem in %s", name);
		client_is_told("DELETED\r\n");
		another_proxy();
	}
}

/* --- oplog, and the other encodings --- */

/* Commands of the proxy itself are not tasks. */
static bool has_task(int id)
{
	static const bool has[COMMAND_COUNT] = {
#define COMMAND(id, ...) [COMMAND_##id] = true,
#define PROXY_COMMAND(...)
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
	};

	return has[id];
}

TEST(each_command)
{
	bool has[COMMAND_COUNT] = { false };
	char wrong[8192] = "", *at = wrong;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice line = slice_of(rows[i].line, strcspn(rows[i].line, "\r"));
		unsigned first, again;
		const char *told;
		stock();
		first = trips(rows[i].line);
		told = fake_told(&fake);
		ck_assert_msg(!strstr(told, "ERROR"), "%s%s", rows[i].line, told);
		again = trips(rows[i].line);
		(void)fake_told(&fake);
		has[command_lookup(slice_token(&line))->id] = true;
		if ((first != rows[i].first || again != rows[i].again) &&
			at < wrong + sizeof(wrong) - 100)
			at += snprintf(at, 100, "%.60s: %u, %u\n", rows[i].line, first, again);
	}
	ck_assert_msg(at == wrong, "\n%s", wrong);
	for (int id = 0; id < COMMAND_COUNT; id++)
		ck_assert_msg(has[id] || !has_task(id), "%s has no row",
			command_get((command_id)id)->name.p);
}
