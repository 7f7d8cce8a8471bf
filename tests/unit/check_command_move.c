/*
 * Commands that move something from one key to another, with the end of their proxy before each call, and with other clients between
 * any two calls. Whatever happens, nothing is lost, and without the end of a proxy nothing is there twice.
 */
#include "serving.h"

static const struct collection_options options = { .base_size = 16384,
	.segment_size = 16384,
	.log_size = 4096,
	.table_size = 2048,
	.cache = 1 << 20,
	.merges = 1,
	.result_max = 1 << 20,
	.lease_time = 10 };

static void setup(void)
{
	serving_setup(&options);
}

FIXTURE(setup, serving_teardown)

static void put(const char *key, const char *value)
{
	server_put(&server, slice_of(key, strlen(key)), slice_of(value, strlen(value)));
}

static void has(const char *key, const char *value)
{
	struct memcached_item *item = server_find(&server, slice_of(key, strlen(key)));

	ck_assert_ptr_nonnull(item);
	assert_bytes(buf_slice(&item->value), value);
}

/* How often the token is in the items. */
static int copies(const char *token)
{
	static const char *const keys[] = { "k", "l" };
	int count = 0;

	for (size_t i = 0; i < 2; i++) {
		struct memcached_item *item = server_find(&server, slice_of(keys[i], 1));
		struct slice rest = item ? buf_slice(&item->value) : SLICE(""), word;
		bool there = false;
		while ((word = slice_token(&rest)).n) {
			if (slice_equal(
				    slice_skip(word, 1), slice_of(token + 1, strlen(token) - 1)))
				there = word.p[0] == '+';
		}
		count += there;
	}
	return count;
}

/* The proxy ends before its call number `calls`. Returns false if it makes fewer. */
static bool is_killed(const char *line, int calls)
{
	client_asks(line);
	while (fake_waiting(&fake) && calls-- > 0)
		server_answer_one(&server);
	if (!fake_waiting(&fake))
		return false;
	while (fake_waiting(&fake))
		fake_fail(&fake, RESULT_LOST);
	(void)fake_told(&fake);
	return true;
}

static void killed_at_each_call(const char *line, const char *k, const char *l, const char *done)
{
	int calls = 0, twice = 0;

	for (bool killed = true; killed; calls++) {
		put("k", k);
		put("l", l);
		killed = is_killed(line, calls);
		ck_assert_int_ge(copies("+a"), 1);
		ck_assert_int_eq(copies("+b"), 1);
		ck_assert_int_eq(copies("+c"), 1);
		twice += copies("+a") == 2;
	}
	client_is_told(done);
	ck_assert_int_eq(copies("+a"), 1);
	ck_assert_int_gt(twice, 0);
	ck_assert_int_ge(calls, 4);
}

TEST(killed)
{
	killed_at_each_call("lmove k l left right\r\n", "@list +a +b ", "@list +c ",
		"VALUE k 0 1\r\na\r\nEND\r\n");
	has("k", "@list +b ");
	has("l", "@list +c +a ");
	killed_at_each_call(
		"rpoplpush k l\r\n", "@list +b +a ", "@list +c ", "VALUE k 0 1\r\na\r\nEND\r\n");
	has("l", "+a @list +c ");
	killed_at_each_call("smove k l a\r\n", "+a +b ", "+c ", "STORED\r\n");
}

/*
 * Between any two calls another client does this, once. `result` is the final state of both,
 * whenever that was.
 */
static void beside(const char *line, const char *key, const char *was, const char *value,
	const char *k, const char *l)
{
	int calls = 1;

	for (bool more = true; more; calls++) {
		put("k", "@list +a +b ");
		put("l", "@list +c ");
		client_asks(line);
		for (int i = 0; i < calls && fake_waiting(&fake); i++)
			server_answer_one(&server);
		more = fake_waiting(&fake) > 0;
		struct memcached_item *item = server_find(&server, slice_of(key, 1));
		if (more && slice_equal(buf_slice(&item->value), slice_of(was, strlen(was))))
			put(key, value);
		server_answer_all(&server);
		(void)fake_told(&fake);
		if (more && calls < 4) {
			has("k", k);
			has("l", l);
		}
		for (const char *each = "+a\0+b\0+c\0"; *each; each += 3)
			ck_assert_int_le(copies(each), 1);
	}
	ck_assert_int_gt(calls, 3);
}

TEST(others_pop_it)
{
	beside("lmove k l left right\r\n", "k", "@list +a +b ", "@list +b ", "@list ",
		"@list +c +b ");
	beside("lmove k l left left\r\n", "k", "@list +a +b ", "@list +b ", "@list ",
		"+b @list +c ");
}

/* Source and target are read, and the element is pushed. */
static void up_to_push(void)
{
	for (int calls = 0; calls < 3; calls++)
		server_answer_one(&server);
}

/* The copy is no longer at its end when it is removed again. */
TEST(others_push_behind_the_copy)
{
	put("k", "@list +a +b ");
	put("l", "@list +c ");
	client_asks("lmove k l left right\r\n");
	up_to_push();
	has("l", "@list +c +a ");
	put("k", "@list +b ");
	put("l", "@list +c +a +a +d ");
	server_answer_all(&server);
	client_is_told("VALUE k 0 1\r\nb\r\nEND\r\n");
	has("l", "@list +c +a +d +b ");
}

/* Another client pops the element while it is moved. */
static void lose_the_element(void)
{
	put("k", "@list +a +b ");
	put("l", "@list +c ");
	client_asks("lmove k l left right\r\n");
	up_to_push();
	put("k", "@list +b ");
}

/* Of many that lose a race, each waits for a different time. */
TEST(whoever_loses_waits)
{
	fake_has_time(&fake);
	lose_the_element();
	server_answer_all(&server);
	client_hears_nothing();
	has("l", "@list +c ");
	for (int ms = 0; ms < 10 && !fake_waiting(&fake); ms++)
		(void)fake_pass(&fake, 1);
	server_answer_all(&server);
	client_is_told("VALUE k 0 1\r\nb\r\nEND\r\n");
	has("l", "@list +c +b ");
}

/* However often others write in between, the copy is removed again. */
TEST(others_write_while_the_copy_is_taken_back)
{
	int races = 0;

	lose_the_element();
	while (fake_waiting(&fake) && races < 20) {
		const struct call *call = &fake.calls[fake_oldest(&fake)].call;
		if (call->verb == CALL_CAS && slice_equal(call->key, SLICE("l"))) {
			put("l", "@list +c +a ");
			races++;
		}
		server_answer_one(&server);
	}
	ck_assert_int_eq(races, 20);
	server_answer_all(&server);
	client_is_told("VALUE k 0 1\r\nb\r\nEND\r\n");
	has("l", "@list +c +b ");
}

/*
 * If a server returns no cas ids, or no times to live, nothing can be removed: then nothing is
 * pushed.
 */
TEST(what_cannot_be_taken_is_not_pushed)
{
	static const struct {
		uint64_t cas;
		int64_t ttl;
		const char *reply;
	} servers[] = { { 0, TTL_NEVER,
				"SERVER_ERROR the server returns no cas ids (memcached -C)\r\n" },
		{ 5, TTL_UNKNOWN, "SERVER_ERROR busy\r\n" } };

	for (size_t i = 0; i < 2; i++) {
		struct result r = { .status = RESULT_HIT,
			.value = SLICE("@list +a "),
			.cas = servers[i].cas,
			.ttl = servers[i].ttl };
		client_asks("lmove k l left right\r\n");
		fake_result(&fake, fake_oldest(&fake), &r);
		server_answer_one(&server);
		client_is_told(servers[i].reply);
		ck_assert_uint_eq(fake_waiting(&fake), 0);
	}
}

/* The source was missing when the element was pushed. */
TEST(the_source_goes)
{
	put("k", "@list +a ");
	put("l", "@list +c ");
	client_asks("lmove k l left right\r\n");
	up_to_push();
	put("k", "@list ");
	hears("END\r\n");
	has("l", "@list +c ");
}

/* An element that the encoding of the target cannot hold stays where it is. */
TEST(another_encoding)
{
	static const struct collection_rule rules[] = { { .prefix = { "l", 1 },
								.type = COLLECTION_LIST,
								.encoding = ENCODING_CSV,
								.delimiter = ',' },
		{ .prefix = { "", 0 } } };

	fake.rules = (struct rules){ .collections = rules, .collection_count = 2 };
	put("k", "@list +x,y +a ");
	put("l", "c,");
	asks_and_hears(
		"lmove k l left right\r\n", "CLIENT_ERROR member contains the delimiter\r\n");
	has("k", "@list +x,y +a ");
	asks_and_hears("lmove l k right right\r\n", "VALUE l 0 1\r\nc\r\nEND\r\n");
}

TEST(pops_of_several_lists)
{
	put("k", "@list ");
	put("l", "@list +a +b +c ");
	asks_and_hears("lmpop 2 right n k l\r\n", "VALUE l 0 3\r\nc b\r\nEND\r\n");
	asks_and_hears("lmpop 5 left l k\r\n", "VALUE l 0 1\r\na\r\nEND\r\n");
	asks_and_hears("lmpop 5 left l k n\r\n", "END\r\n");
	put("k", "no collection");
	asks_and_hears("lmpop 5 left l k n\r\n", "CLIENT_ERROR value is not a collection\r\n");
}

/* --- targets that are no collections --- */

static const char *const moves[] = { "lmove k l left right\r\n", "lmove k l left left\r\n",
	"rpoplpush k l\r\n", "blmove 5 k l left right\r\n", "smove k l a\r\n" };

enum { MOVES = sizeof(moves) / sizeof(moves[0]), SMOVE = MOVES - 1 };

/* Nothing is removed from the source, and the target is unchanged. */
static void moves_nothing(const char *line, const char *target, const char *reply)
{
	put("k", "@list +a ");
	put("l", target);
	asks_and_hears(line, reply);
	has("k", "@list +a ");
	has("l", target);
}

TEST(nothing_is_moved_to_a_plain_item)
{
	static const char *const items[] = { "nolist", "9", "a b", "+a b", "@copy", "{\"a\": 1}",
		"+a +" };

	for (size_t i = 0; i < MOVES; i++) {
		for (size_t n = 0; n < sizeof(items) / sizeof(items[0]); n++)
			moves_nothing(
				moves[i], items[n], "CLIENT_ERROR value is not a collection\r\n");
	}
}

TEST(nothing_is_moved_to_another_form)
{
	for (size_t i = 0; i < MOVES; i++) {
		moves_nothing(moves[i], "@list.9 +b ",
			"SERVER_ERROR stored by a newer version of setlistd\r\n");
		moves_nothing(moves[i], "@set.9 +b ",
			"SERVER_ERROR stored by a newer version of setlistd\r\n");
		if (i != SMOVE)
			moves_nothing(moves[i], "@set.1 +b ",
				"CLIENT_ERROR value is a set, not a list\r\n");
	}
	/* A list can be read as a set. */
	put("k", "+a ");
	put("l", "@list +b ");
	asks_and_hears("smove k l a\r\n", "STORED\r\n");
	asks_and_hears("smembers l\r\n", "VALUE l 0 3\r\nb a\r\nEND\r\n");
}

/* The source decides first: without an element there is no reason to look at the target. */
TEST(nothing_to_move_to_a_plain_item)
{
	put("l", "nolist");
	asks_and_hears("lmove k l left right\r\n", "END\r\n");
	asks_and_hears("smove k l a\r\n", "NOT_FOUND\r\n");
	put("k", "no collection");
	put("l", "@list.9 +b ");
	asks_and_hears("lmove k l left right\r\n", "CLIENT_ERROR value is not a collection\r\n");
	asks_and_hears("smove k l a\r\n", "CLIENT_ERROR value is not a collection\r\n");
	has("l", "@list.9 +b ");
}

/* Whichever of both reads is answered first. */
TEST(the_reads_end_in_any_order)
{
	for (int target_first = 0; target_first < 2; target_first++) {
		put("k", "@list +a ");
		put("l", "nolist");
		client_asks("lmove k l left right\r\n");
		ck_assert_uint_eq(fake_waiting(&fake), 2);
		server_answer(&server, fake_oldest(&fake) + (target_first ? 1 : 0));
		client_hears_nothing();
		hears("CLIENT_ERROR value is not a collection\r\n");
		has("k", "@list +a ");
		has("l", "nolist");
	}
}

/* The target cannot be read. */
TEST(the_target_is_not_known)
{
	put("k", "@list +a ");
	client_asks("lmove k l left right\r\n");
	server_answer_one(&server);
	fake_fail(&fake, RESULT_LOST);
	ck_assert(strstr(fake_told(&fake), "SERVER_ERROR "));
	ck_assert_uint_eq(fake_waiting(&fake), 0);
	has("k", "@list +a ");
}

/* The element is in one of both, as the commands see them. */
static bool is_found(const char *key, bool in_set)
{
	char line[40];

	snprintf(line, sizeof(line), in_set ? "smembers %s\r\n" : "lrange %s 0 -1\r\n", key);
	client_asks(line);
	server_answer_all(&server);
	return strstr(fake_told(&fake), "elem");
}

/*
 * Whatever the target is, in any encoding: it receives the element, or the source keeps it and the
 * target is unchanged.
 */
TEST(in_each_encoding)
{
	static const char *const items[] = { "nolist", "9", "a b", "+a b", "@copy", "{\"a\": 1}",
		",", "-", " ", "+", "1,2,", "+x ", "0 1", "a;b", "\1" };
	char line[80];

	for (int id = ENCODING_OPLOG; id <= ENCODING_INDEXED; id++) {
		const struct collection_rule rules[] = { { .prefix = { "l", 1 },
								 .encoding = (enum encoding_id)id,
								 .delimiter = ',',
								 .removed = SLICE("t"),
								 .pointer = true },
			{ .prefix = { "", 0 } } };
		fake.rules = (struct rules){ .collections = rules, .collection_count = 2 };
		for (size_t n = 0; n < 2 * sizeof(items) / sizeof(items[0]); n++) {
			const char *item = items[n / 2];
			bool in_set = n % 2, refused;
			put("k", in_set ? "+elem " : "@list +elem ");
			put("l", item);
			snprintf(line, sizeof(line),
				in_set ? "smove k l elem\r\n" : "lmove k l left right\r\n");
			client_asks(line);
			server_answer_all(&server);
			refused = strstr(fake_told(&fake), "ERROR");
			ck_assert_msg(is_found("k", in_set) == refused, "%d: %s on '%s': source",
				id, line, item);
			ck_assert_msg(is_found("l", in_set) != refused, "%d: %s on '%s': target",
				id, line, item);
			if (refused)
				has("l", item);
		}
	}
}
