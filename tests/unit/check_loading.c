/* One client at a time loads a set or list, and concurrent additions of others are kept. */
#include "collection/large.h"
#include "collection/text/lease.h"
#include "serving.h"

enum { NOW = 1000 };

static const struct collection_options options = { .base_size = 64,
	.segment_size = 64,
	.log_size = 16,
	.table_size = 60,
	.merges = 1,
	.lease_time = 10 };

static char token[LEASE_TOKEN + 1] = "--------";

static void setup(void)
{
	static struct large_filter large;

	serving_setup(&options);
	fake.host.env.large = &large;
	fake.host.env.unix_time = NOW;
}

FIXTURE(setup, serving_teardown)

/* The request, with the token of the last lease for each $. */
static const char *with_token(const char *text)
{
	static char out[512];
	char *at = out;

	for (; *text; text++) {
		if (*text == '$')
			at = slice_write(at, slice_of(token, LEASE_TOKEN));
		else
			*at++ = *text;
	}
	*at = 0;
	return out;
}

#define ask_with_token(text) client_asks(with_token(text))
#define replies(request, reply) asks_and_hears(with_token(request), reply)

/* The client has the lease: its token is kept. */
static void has_lease(void)
{
	const char *reply;

	server_answer_all(&server);
	reply = fake_told(&fake);
	ck_assert_msg(strncmp(reply, "LEASE ", 6) == 0 && strlen(reply) == 6 + LEASE_TOKEN + 2,
		"%s", reply);
	memcpy(token, reply + 6, LEASE_TOKEN);
}

static void takes(const char *request)
{
	client_asks(request);
	has_lease();
}

/* The base, with $ for the token, and each reference down to its first letter. */
static void base_is(const char *text)
{
	struct memcached_item *item = server_find(&server, SLICE("k"));
	struct slice rest = item ? buf_slice(&item->value) : SLICE("nothing "), word;
	struct buf out = BUF_EMPTY;

	while ((word = slice_token(&rest)).n) {
		if (slice_starts(word, SLICE("@fill.")) &&
			memcmp(word.p + 6, token, LEASE_TOKEN) == 0)
			buf_printf(&out, "@fill.$%.*s ", (int)word.n - 6 - LEASE_TOKEN,
				word.p + 6 + LEASE_TOKEN);
		else if (word.n > OPLOG_ID + 1 && word.p[0] == '@' && word.p[OPLOG_ID + 1] == '.')
			buf_printf(&out, "@%c ", word.p[1]);
		else
			buf_add_word(&out, word);
	}
	assert_bytes(buf_slice(&out), text);
	buf_free(&out);
}

static size_t parts(void)
{
	return server_items(&server, "k.");
}

TEST(as_the_manual_says)
{
	takes("slease k\r\n");
	base_is("@set.2 @fill.$.1010.10 ");
	replies("slease k\r\n", "WAIT\r\n");
	replies("saddx k cyd\r\nsrem k bob\r\nsadd k dan\r\n", "STORED\r\nDELETED\r\nSTORED\r\n");
	replies("smembers k\r\nscard k\r\nsismember k cyd\r\n",
		"END\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
	replies("spop k\r\nsinfo k\r\nscompact k\r\nllen k\r\n",
		"END\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
	replies("sload k $ ann bob\r\n", "STORED\r\n");
	base_is("@set.2 @fill.$.1010.10 @t +cyd -bob +dan ");
	replies("sfill k $ eve ann\r\n", "STORED\r\n");
	stores("@[+ann +bob] +eve +ann +cyd -bob +dan ");
	replies("scard k\r\nsmismember k ann bob cyd dan eve\r\n", "4\r\n1 0 1 1 1\r\n");
	replies("slease k\r\n", "EXISTS\r\n");
	replies("sfill k $ bob\r\n", "NOT_FOUND\r\n");
	replies("sload k $ bob\r\n", "NOT_FOUND\r\n");
}

TEST(a_small_one_is_one_item)
{
	takes("slease k 5\r\n");
	base_is("@set.2 @fill.$.1005.5 ");
	replies("srem k b\r\n", "DELETED\r\n");
	replies("sfill k $ a b b\r\n", "STORED\r\n");
	base_is("+a +b +b -b ");
	ck_assert_uint_eq(parts(), 0);
	/* An empty one exists, too. */
	replies("delete k\r\n", "DELETED\r\n");
	takes("slease k\r\n");
	replies("sfill k $\r\n", "STORED\r\n");
	base_is("");
	replies("slease k\r\nscard k\r\n", "EXISTS\r\n0\r\n");
}

TEST(of_those_who_ask_at_once_one_loads)
{
	const char *reply;

	client_asks("slease k\r\nslease k\r\nslease k\r\n");
	server_answer_all(&server);
	reply = fake_told(&fake);
	ck_assert_str_eq(reply + 6 + LEASE_TOKEN, "\r\nWAIT\r\nWAIT\r\n");
	/* The second and the third share a question. */
	makes("GAG");
}

/* Another client wrote between the read and the lease. */
TEST(whoever_comes_first)
{
	asks_up_to("slease k\r\n", CALL_ADD);
	server_put(&server, SLICE("k"), SLICE("+a "));
	hears("EXISTS\r\n");
	server_find(&server, SLICE("k"))->used = false;
	asks_up_to("slease k\r\n", CALL_ADD);
	server_put(&server, SLICE("k"), SLICE("@set.2 @fill.aaaaaaaa.1010.10 "));
	hears("WAIT\r\n");
	/* The same at the end of a lease. */
	fake.host.env.unix_time = NOW + 11;
	asks_up_to("slease k\r\n", CALL_CAS);
	server_put(&server, SLICE("k"), SLICE("@set.2 @fill.bbbbbbbb.1011.10 "));
	hears("WAIT\r\n");
	asks_up_to("slease k 1\r\n", CALL_GET);
	server_find(&server, SLICE("k"))->used = false;
	has_lease();
}

TEST(a_loader_that_says_nothing_is_replaced)
{
	char old[LEASE_TOKEN + 1];

	takes("slease k\r\n");
	replies("sload k $ a b\r\nsaddx k c\r\n", "STORED\r\nSTORED\r\n");
	memcpy(old, token, sizeof(old));
	fake.host.env.unix_time = NOW + 10;
	replies("slease k\r\n", "WAIT\r\n");
	/* Each load makes it longer. */
	replies("sload k $\r\n", "STORED\r\n");
	base_is("@set.2 @fill.$.1020.10 @t +c ");
	fake.host.env.unix_time = NOW + 21;
	ck_assert_uint_eq(parts(), 1);
	takes("slease k 20\r\n");
	/* The loaded members are lost, the additions of others stay. */
	base_is("@set.2 @fill.$.1041.20 +c ");
	ck_assert_uint_eq(parts(), 0);
	/* The old loader is late. */
	for (int i = 0; i < 2; i++) {
		char line[64];
		snprintf(line, sizeof(line), "%s k %s x y\r\n", i ? "sload" : "sfill", old);
		replies(line, "NOT_FOUND\r\n");
		base_is("@set.2 @fill.$.1041.20 +c ");
	}
	replies("sfill k $ d\r\n", "STORED\r\n");
	base_is("+d +c ");
}

/* No other client has taken it over, so it is still valid. */
TEST(a_late_loader_may_be_the_only_one)
{
	takes("slease k\r\n");
	fake.host.env.unix_time = NOW + 10000;
	replies("sfill k $ a\r\n", "STORED\r\n");
	base_is("+a ");
}

/* The old loader's last call and the new lease are in flight at the same time. */
TEST(a_late_fill_beside_a_new_lease)
{
	takes("slease k\r\n");
	replies("sload k $ a b\r\nsaddx k c\r\n", "STORED\r\nSTORED\r\n");
	asks_up_to(with_token("sfill k $ d\r\n"), CALL_CAS);
	server_put(&server, SLICE("k"), SLICE("@set.2 @fill.aaaaaaaa.1041.20 +c "));
	hears("NOT_FOUND\r\n");
	base_is("@set.2 @fill.aaaaaaaa.1041.20 +c ");
}

TEST(a_word_between_is_kept)
{
	takes("slease k\r\n");
	asks_up_to(with_token("sload k $ a b\r\n"), CALL_CAS);
	server_put(&server, SLICE("k"), buf_slice(&server_find(&server, SLICE("k"))->value));
	buf_add_slice(&server_find(&server, SLICE("k"))->value, SLICE("-a "));
	hears("STORED\r\n");
	base_is("@set.2 @fill.$.1010.10 @t -a ");
	asks_up_to(with_token("sfill k $ c\r\n"), CALL_CAS);
	server_find(&server, SLICE("k"))->cas++;
	buf_add_slice(&server_find(&server, SLICE("k"))->value, SLICE("-c "));
	hears("STORED\r\n");
	stores("@[+a +b] -c -a ");
}

static void changes_each_time(const char *reply)
{
	while (fake_waiting(&fake)) {
		if (fake.calls[fake_oldest(&fake)].call.verb == CALL_CAS &&
			server_find(&server, SLICE("k")))
			server_find(&server, SLICE("k"))->cas++;
		server_answer_one(&server);
	}
	client_is_told(reply);
}

/* Its parts are written once, and deleted if nothing refers to them. */
TEST(too_many_lost_races)
{
	takes("slease k\r\n");
	ask_with_token("sload k $ a b c d e f g h i j k l m n o p\r\n");
	changes_each_time("SERVER_ERROR busy\r\n");
	ck_assert_uint_eq(parts(), 0);
	base_is("@set.2 @fill.$.1010.10 ");
	ask_with_token("sfill k $ a\r\n");
	changes_each_time("SERVER_ERROR busy\r\n");
	fake.host.env.unix_time = NOW + 11;
	client_asks("slease k\r\n");
	changes_each_time("SERVER_ERROR busy\r\n");
	base_is("@set.2 @fill.$.1010.10 ");
}

TEST(failures)
{
	client_asks("slease k\r\n");
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	asks_up_to("slease k\r\n", CALL_ADD);
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	takes("slease k\r\n");
	ask_with_token("sload k $ a b\r\n");
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	/* A part that is not known to be there is not referred to. */
	asks_up_to(with_token("sload k $ a b\r\n"), CALL_ADD);
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	server_answer_all(&server);
	base_is("@set.2 @fill.$.1010.10 ");
	/* It is unknown whether the base refers to it, so it stays. */
	asks_up_to(with_token("sload k $ a b\r\n"), CALL_CAS);
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	server_answer_all(&server);
	ck_assert_uint_eq(parts(), 1);
	/* Nothing was sent: it goes. */
	asks_up_to(with_token("sload k $ a b\r\n"), CALL_CAS);
	server_find(&server, SLICE("k"))->cas++;
	server_answer_one(&server);
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	server_answer_all(&server);
	ck_assert_uint_eq(parts(), 1);
	fake.host.env.unix_time = NOW + 11;
	asks_up_to("slease k\r\n", CALL_CAS);
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
}

#define MANY "m01 m02 m03 m04 m05 m06 m07 m08 m09 m10 m11 m12 m13 m14"

TEST(what_ends_a_lease)
{
	takes("slease k\r\n");
	replies("sload k $ " MANY "\r\nsaddx k c\r\n", "STORED\r\nSTORED\r\n");
	ck_assert_uint_eq(parts(), 3);
	(void)stored_calls(&fake, &seen);
	replies("sset k x\r\n", "STORED\r\n");
	makes("GCgddd");
	base_is("+x ");
	ck_assert_uint_eq(parts(), 0);
	replies("sfill k $ y\r\nsload k $ y\r\n", "NOT_FOUND\r\nNOT_FOUND\r\n");
	base_is("+x ");
	replies("delete k\r\n", "DELETED\r\n");
	takes("slease k\r\n");
	replies("sload k $ " MANY "\r\n", "STORED\r\n");
	replies("delete k\r\n", "DELETED\r\n");
	ck_assert_uint_eq(parts(), 0);
	replies("sfill k $ y\r\nsload k $ y\r\n", "NOT_FOUND\r\nNOT_FOUND\r\n");
	base_is("nothing ");
}

static void compacted(struct op *op, const struct outcome *outcome)
{
	op->rounds = outcome->status == OUTCOME_DONE;
}

static void compacts(void)
{
	struct op op = { .kind = OP_COMPACT, .key = SLICE("k"), .done = compacted };

	lanes_submit(fake.host.lanes, &op);
	server_answer_all(&server);
	ck_assert_uint_eq(op.rounds, 1);
}

/* So they are moved to a run, and stay newer than members that are loaded before and after. */
TEST(a_long_log_of_words)
{
	takes("slease k\r\n");
	replies("sload k $ a b c\r\n", "STORED\r\n");
	replies("srem k a x\r\nsaddx k m n o p q r s t u v "
		"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\r\nsrem k m\r\n",
		"DELETED\r\nSTORED\r\nDELETED\r\n");
	compacts();
	base_is("@set.2 @i @fill.$.1010.10 @t ");
	replies("srem k b\r\nsaddx k m2\r\n", "DELETED\r\nSTORED\r\n");
	replies("sload k $ m x y\r\n", "STORED\r\n");
	replies("touch k 100\r\n", "TOUCHED\r\n");
	ck_assert_uint_eq(server_expiring(&server, 110), server_items(&server, "k."));
	replies("srem k u\r\n", "DELETED\r\n");
	compacts();
	/* A new loader gets all the words. */
	fake.host.env.unix_time = NOW + 11;
	takes("slease k\r\n");
	replies("sload k $ b c d\r\n", "STORED\r\n");
	replies("sfill k $ a m e u\r\n", "STORED\r\n");
	replies("smembers k\r\n",
		"VALUE k 0 65\r\nc d e m2 n o p q r s t v "
		"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\r\nEND\r\n");
	replies("delete k\r\n", "DELETED\r\n");
	ck_assert_uint_eq(server_items(&server, "k"), 0);
}

TEST(a_log_that_repeats_itself)
{
	takes("slease k\r\n");
	replies("saddx k a\r\nsrem k a\r\nsaddx k a\r\nsrem k a\r\nsaddx k b\r\n",
		"STORED\r\nDELETED\r\nSTORED\r\nDELETED\r\nSTORED\r\n");
	compacts();
	base_is("@set.2 @fill.$.1010.10 -a +b ");
}

/* Small loads do not make many runs. */
TEST(loaded_runs_are_merged)
{
	char line[64];

	takes("slease k\r\n");
	replies("srem k m07\r\n", "DELETED\r\n");
	for (int i = 0; i < 40; i++) {
		snprintf(line, sizeof(line), "sload k $ m%02d\r\n", i);
		replies(line, "STORED\r\n");
	}
	ck_assert_uint_lt(parts(), 20);
	replies("sfill k $\r\n", "STORED\r\n");
	replies("scard k\r\nsmismember k m00 m07 m39\r\n", "39\r\n1 0 1\r\n");
}

/* How many tables on the server are packed. */
static size_t packed(void)
{
	size_t count = 0;

	for (size_t i = 0; i < MEMCACHED_ITEMS; i++)
		count += server.memcached.items[i].used &&
			slice_starts(buf_slice(&server.memcached.items[i].value), SLICE("T2"));
	return count;
}

/*
 * A merge of loaded runs packs only if the lease says that the complete base has form 3: as soon
 * as one of these runs was packed when it was loaded.
 */
TEST(loaded_runs_are_packed)
{
	static const struct collection_options packing = { .base_size = 64,
		.segment_size = 64,
		.log_size = 16,
		.table_size = 60,
		.pack_size = 1,
		.merges = 1,
		.lease_time = 10 };
	char line[64];

	fake_takes(&packing);
	takes("slease k\r\n");
	for (char letter = 'A'; letter <= 'Z'; letter++) {
		snprintf(line, sizeof(line), "sload k $ defg%c\r\n", letter);
		replies(line, "STORED\r\n");
	}
	ck_assert_uint_lt(parts(), 20);
	ck_assert_uint_eq(packed(), 0);
	replies("sload k $ n0 n1 n2 n3 n4 n5 n6 n7 n8 n9\r\n", "STORED\r\n");
	ck_assert_uint_gt(packed(), 0);
	replies("sfill k $\r\n", "STORED\r\n");
	(void)stored_show(&server);
	ck_assert_uint_gt(stored_packed(), 0);
	replies("scard k\r\nsmismember k defgA defgZ n0 n9 o\r\n", "36\r\n1 1 1 1 0\r\n");
}

TEST(of_another_kind)
{
	takes("slease k\r\n");
	replies("llease k\r\nlload k $ a\r\nlfill k $ a\r\n", "WAIT\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
	server_put(&server, SLICE("k"), SLICE("what"));
	replies("slease k\r\nsload k $ a\r\n",
		"CLIENT_ERROR value is not a collection\r\nNOT_FOUND\r\n");
	server_put(&server, SLICE("k"), SLICE("@set.4 what"));
	replies("slease k\r\n", "SERVER_ERROR stored by a newer version of setlistd\r\n");
	server_put(&server, SLICE("k"), SLICE("@c00000000001.1.1 +a "));
	replies("slease k\r\n", "EXISTS\r\n");
}

TEST(a_list_keeps_its_order)
{
	takes("llease k\r\n");
	base_is("@list.2 @fill.$.1010.10 ");
	replies("lpush k y z\r\nrpush k p\r\nrpushx k q\r\nlpushx k x\r\n",
		"STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\n");
	replies("lrange k 0 -1\r\nlpop k\r\nllen k\r\n", "END\r\nEND\r\nNOT_FOUND\r\n");
	replies("lload k $ a b\r\nlload k $ c a\r\n", "STORED\r\nSTORED\r\n");
	replies("slease k\r\nsfill k $ e\r\n", "WAIT\r\nNOT_FOUND\r\n");
	replies("lfill k $ d\r\n", "STORED\r\n");
	replies("lrange k 0 -1\r\n", "VALUE k 0 19\r\nx z y a b c a d p q\r\nEND\r\n");
	replies("lload k $ e\r\nlfill k $\r\n", "NOT_FOUND\r\nNOT_FOUND\r\n");
}

/*
 * A part is missing, so the set reads as missing, although its base may stay. The tokens in its
 * log stay, as words.
 */
TEST(a_set_that_lost_a_part)
{
	struct slice base;
	const char *id;

	takes("slease k\r\n");
	replies("sload k $ a b\r\nsfill k $ c\r\n", "STORED\r\nSTORED\r\n");
	replies("slease k\r\n", "EXISTS\r\n");
	replies("saddx k d\r\n", "STORED\r\n");
	base = buf_slice(&server_find(&server, SLICE("k"))->value);
	id = memmem(base.p, base.n, "@t", 2);
	stored_item(&server, slice_of(id + 1, OPLOG_ID))->used = false;
	replies("llease k\r\n", "EXISTS\r\n");
	takes("slease k\r\n");
	base_is("@set.2 @fill.$.1010.10 +c +d ");
	replies("slease k\r\n", "WAIT\r\n");
	replies("sfill k $ a b\r\nscard k\r\n", "STORED\r\n4\r\n");
}

/* --- claims, which only one client gets --- */

TEST(a_claim_is_for_one)
{
	replies("sclaim k a\r\n", "1\r\n");
	makes("GA");
	base_is("+a ");
	replies("sclaim k a\r\nsclaim k b\r\nsclaim k b\r\n", "0\r\n1\r\n0\r\n");
	replies("srem k a\r\nsclaim k a\r\n", "DELETED\r\n1\r\n");
	/* Members of a run exist, too. */
	stored_put(&server, &cupboard, "", &(struct oplog_run){ 0 }, 0, "+x ");
	replies("sclaim k x\r\nsclaim k y\r\n", "0\r\n1\r\n");
	server_put(&server, SLICE("k"), SLICE("what"));
	replies("sclaim k y\r\n", "CLIENT_ERROR value is not a collection\r\n");
}

TEST(another_claims_it_meanwhile)
{
	asks_up_to("sclaim k a\r\n", CALL_ADD);
	server_put(&server, SLICE("k"), SLICE("+a "));
	hears("0\r\n");
	asks_up_to("sclaim k b\r\n", CALL_CAS);
	server_put(&server, SLICE("k"), SLICE("+a +b "));
	hears("0\r\n");
	asks_up_to("sclaim k c\r\n", CALL_CAS);
	server_put(&server, SLICE("k"), SLICE("+a +b +d "));
	hears("1\r\n");
	base_is("+a +b +d +c ");
	/* It is deleted between the two. */
	asks_up_to("sclaim k e\r\n", CALL_CAS);
	server_find(&server, SLICE("k"))->used = false;
	hears("1\r\n");
	base_is("+e ");
	ask_with_token("sclaim k f\r\n");
	changes_each_time("SERVER_ERROR busy\r\n");
	asks_up_to("sclaim k f\r\n", CALL_CAS);
	fails(RESULT_LOST, "SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
}

TEST(nothing_is_claimed_while_somebody_loads)
{
	takes("slease k\r\n");
	replies("sclaim k a\r\n", "NOT_FOUND\r\n");
	base_is("@set.2 @fill.$.1010.10 ");
}
