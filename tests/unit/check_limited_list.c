/*
 * Lists whose rule has a limit: no command sees more, and elements beyond it are dropped when the
 * base is rewritten.
 */
#include "serving.h"

#define SEGMENT "l00000000001.4.1"

static const struct collection_options options = { .base_size = 64,
	.segment_size = 4096,
	.log_size = 4096,
	.table_size = 4096,
	.cache = 1 << 20,
	.merges = 1 };
static struct collection_rule rule;

static void put(const char *key, const char *value)
{
	server_put(&server, slice_of(key, strlen(key)), slice_of(value, strlen(value)));
}

static void setup(void)
{
	serving_setup(&options);
	rule = (struct collection_rule){ .prefix = SLICE(""),
		.type = COLLECTION_LIST,
		.compact_waste = 0.5,
		.delimiter = ',',
		.max = 3 };
	fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	put("k." SEGMENT, "+a +b +c +d ");
}

static void is_stored(const char *base)
{
	assert_bytes(buf_slice(&server_find(&server, SLICE("k"))->value), base);
}

/* Each command on each form of a list, of which `has` is left. A push is one call, whatever is there. */
static void shows(const char *base, const char *has)
{
	char all[64], first[64];

	put("k", base);
	snprintf(all, sizeof(all), "VALUE k 0 %zu\r\n%s\r\nEND\r\n", strlen(has), has);
	asks_and_hears("lrange k 0 -1\r\n", all);
	asks_and_hears("llen k\r\n", "3\r\n");
	snprintf(first, sizeof(first), "VALUE k 0 1\r\n%c\r\nEND\r\n", has[0]);
	asks_and_hears("lindex k 0\r\n", first);
	asks_and_hears("lpos k b\r\n", strchr(has, 'b') ? "1\r\n" : "NOT_FOUND\r\n");
	asks_and_hears("scard k\r\n", "3\r\n");
	asks_and_hears("sismember k a\r\n", strchr(has, 'a') ? "1\r\n" : "0\r\n");
	asks_and_hears("smembers k\r\n", all);
	is_stored(base);
}

TEST(the_last_are_left)
{
	shows("+a +b +c +d +e ", "c d e");
	shows("@list +a +b +c +d +e ", "c d e");
	shows("+a +b @list +c +d +e ", "c d e");
	shows("@list @" SEGMENT " +e ", "c d e");
	shows("@list @" SEGMENT ":0:2 +c +d +e ", "c d e");
}

static void pays(const char *request, const char *reply, size_t bytes)
{
	size_t before = fake.account.rewritten;

	asks_and_hears(request, reply);
	ck_assert_uint_eq(fake.account.rewritten - before, bytes);
}

/*
 * The client that causes a rewrite pays for all of it, a reader or an append does not. Two that
 * are carried out together share it.
 */
TEST(who_pays)
{
	struct account other = { 0 };

	rule.max = 9;
	put("k", "@list +a +b +c ");
	pays("lset k 0 xy\r\n", "STORED\r\n", 16);
	is_stored("@list +xy +b +c ");
	pays("rpush k d\r\n", "STORED\r\n", 0);
	pays("lrange k 0 -1\r\n", "VALUE k 0 8\r\nxy b c d\r\nEND\r\n", 0);
	client_asks("llen k\r\nlpop k\r\n");
	fake.other = &other;
	pays("lpop k\r\n", "4\r\nVALUE k 0 2\r\nxy\r\nEND\r\nVALUE k 0 1\r\nb\r\nEND\r\n", 6);
	ck_assert_uint_eq(other.rewritten, 6);
}

TEST(the_first_are_left)
{
	rule.newest = NEWEST_FIRST;
	shows("+a +b +c +d +e ", "a b c");
	shows("+a +b @list +c +d +e ", "a b c");
	shows("@list @" SEGMENT " +e ", "a b c");
	shows("@list @" SEGMENT ":0:2 +c +d +e ", "a b c");
}

TEST(changes_cut)
{
	put("k", "@list @" SEGMENT " +e ");
	asks_and_hears("lpop k\r\n", "VALUE k 0 1\r\nc\r\nEND\r\n");
	is_stored("@list @" SEGMENT ":3:1 +e ");
	put("k", "@list @" SEGMENT " +e +f +g ");
	asks_and_hears("lset k 0 x\r\n", "STORED\r\n");
	is_stored("@list +x +f +g ");
	ck_assert_ptr_null(server_find(&server, SLICE("k." SEGMENT)));
	put("k", "+a +b +c +d +e ");
	asks_and_hears("ltrim k 0 0\r\n", "STORED\r\n");
	is_stored("@list +c ");
	put("k", "+a +b +c +d +e ");
	asks_and_hears("lrem k 0 a\r\n", "0\r\n");
	is_stored("+a +b +c +d +e ");
}

/* A push is one call. */
TEST(pushes)
{
	put("k", "@list +a +b +c ");
	fake_calls(&fake);
	exchanges("rpush k d\r\n", "STORED\r\n", "STORED\r\n");
	server_is_asked(APPEND("k", 3, "+d "));
}

/* The read of a list with removals requests a compaction. */
TEST(removals)
{
	put("k", "@list +a +b +c +d +e +f -f ");
	asks_and_hears("lrange k 0 -1\r\n", "VALUE k 0 5\r\nc d e\r\nEND\r\n");
	is_stored("@list +c +d +e ");
	put("k", "@list @" SEGMENT " +e +f -f ");
	asks_and_hears("scard k\r\n", "3\r\n");
	asks_and_hears("llen k\r\n", "3\r\n");
	is_stored("@list +c +d +e ");
}

TEST(compaction_cuts)
{
	put("k", "@list @" SEGMENT " +e +f +g +h ");
	asks_and_hears("scompact k\r\n", "OK\r\n");
	is_stored("@list +f +g +h ");
	ck_assert_ptr_null(server_find(&server, SLICE("k." SEGMENT)));
	put("k", "@list +a +b +c ");
	asks_and_hears("scompact k\r\n", "OK\r\n");
	is_stored("@list +a +b +c ");
}

/*
 * A random pop removes some of the rest. This is recorded after the log, so that elements beyond
 * the limit may be visible for a while.
 */
TEST(random_pops)
{
	put("k", "@list +a +b +c +c +c ");
	asks_and_hears("spop k\r\n", "VALUE k 0 1\r\nc\r\nEND\r\n");
	is_stored("@list +a +b +c +c +c -c ");
	asks_and_hears("lrange k 0 -1\r\n", "VALUE k 0 3\r\na b\r\nEND\r\n");
}

/* A set that is stored under a key of the rule has no limit. */
TEST(a_set_has_none)
{
	rule.type = COLLECTION_SET;
	put("k", "+a +b +c +d +e ");
	asks_and_hears("scard k\r\n", "5\r\n");
}

FIXTURE(setup, serving_teardown)
