/*
 * Bases that are read after a write, for the rewrite that is expected next: which calls are made,
 * and what is stored.
 */
#include "serving.h"

enum { SECOND = 1000, DAY = 24 * 60 * 60 };

static const struct collection_options options = {
	.log_size = 16384, .base_size = 16384, .segment_size = 16384, .cache = 1 << 22, .merges = 1
};

static void setup(void)
{
	serving_setup(&options);
}

FIXTURE(setup, serving_teardown)

/* Stored by another proxy. */
static void another_stores(const char *text)
{
	struct memcached_item *item = server_find(&server, SLICE("k"));
	int64_t expires = item ? item->expires : 0;

	server_put(&server, SLICE("k"), slice_of(text, strlen(text)));
	server_find(&server, SLICE("k"))->expires = expires;
}

static struct memcached_item *base(void)
{
	return server_find(&server, SLICE("k"));
}

static void base_is(const char *text)
{
	ck_assert_msg(slice_equal(buf_slice(&base()->value), slice_of(text, strlen(text))), "%.*s",
		(int)buf_size(&base()->value), buf_slice(&base()->value).p);
}

static void pops(const char *member, const char *calls_)
{
	char reply[64];

	snprintf(reply, sizeof(reply), "VALUE k 0 %zu\r\n%s\r\nEND\r\n", strlen(member), member);
	asks_and_hears("spop k\r\n", reply);
	makes(calls_);
}

static void takes(const char *request, const char *element, const char *calls_)
{
	char reply[64];

	snprintf(reply, sizeof(reply), "VALUE k 0 %zu\r\n%s\r\nEND\r\n", strlen(element), element);
	asks_and_hears(request, reply);
	makes(calls_);
}

static void adds(const char *member, const char *calls_)
{
	char request[64];

	snprintf(request, sizeof(request), "sadd k %s\r\n", member);
	asks_and_hears(request, "STORED\r\n");
	makes(calls_);
}

/*
 * After two pops, the next one is expected after as many additions as there were between these
 * two.
 */
static void pops_in_turn(void)
{
	another_stores("+a ");
	pops("a", "GC");
	adds("b", "P");
	pops("b", "GC");
	adds("c", "PG");
}

TEST(a_pair_in_turn)
{
	pops_in_turn();
	for (int i = 0; i < 3; i++) {
		pops("c", "C");
		adds("c", "PG");
	}
	base_is("+a -a +b -b +c -c +c -c +c -c +c ");
	/* Reads change nothing. */
	asks_and_hears("sismember k c\r\n", "1\r\n");
	makes("G");
	pops("c", "C");
}

TEST(one_after_the_other)
{
	another_stores("+a +a2 +a3 +a4 +a5 ");
	for (int i = 0; i < 4; i++) {
		client_asks("spop k\r\n");
		server_answer_all(&server);
		ck_assert_ptr_nonnull(strstr(fake_told(&fake), "VALUE"));
		makes(i == 0 ? "GC" : i == 1 ? "GCG" : "CG");
	}
	/* The last one leaves the list empty. Only the server knows that it is empty. */
	client_asks("spop k\r\n");
	server_answer_all(&server);
	(void)fake_told(&fake);
	makes("CG");
	asks_and_hears("spop k\r\n", "END\r\n");
	makes("G");
}

/*
 * The client receives its reply when the write is answered. A rewrite waits for the read that
 * follows.
 */
TEST(the_read_is_on_its_way)
{
	pops_in_turn();
	pops("c", "C");
	client_asks("sadd k c\r\n");
	server_answer_one(&server);
	client_is_told("STORED\r\n");
	makes("PG");
	client_asks("spop k\r\n");
	makes("");
	server_answer_one(&server);
	makes("C");
	hears("VALUE k 0 1\r\nc\r\nEND\r\n");
}

static void waits_for_the_read(const char *add, const char *pop)
{
	client_asks(add);
	server_answer_one(&server);
	client_is_told("STORED\r\n");
	client_asks(pop);
	makes("PG");
}

/* A read after a write that finds no base is older than the rewrite that waits for it. */
TEST(the_read_finds_nothing)
{
	pops_in_turn();
	pops("c", "C");
	waits_for_the_read("sadd k c\r\n", "spop k\r\n");
	base()->used = false;
	server_answer_one(&server);
	another_stores("+z ");
	hears("VALUE k 0 1\r\nz\r\nEND\r\n");
	makes("GC");
}

TEST(the_read_is_lost)
{
	pops_in_turn();
	pops("c", "C");
	waits_for_the_read("sadd k c\r\n", "spop k\r\n");
	fake_fail(&fake, RESULT_TIMED_OUT);
	hears("VALUE k 0 1\r\nc\r\nEND\r\n");
	makes("GC");
}

/* A queued rewrite is known to be the next one. */
TEST(one_that_waits)
{
	another_stores("+a ");
	pops("a", "GC");
	client_asks("sadd k b\r\nspop k\r\nsadd k c\r\nspop k\r\nsadd k d\r\n");
	server_answer_all(&server);
	client_is_told("STORED\r\nVALUE k 0 1\r\nb\r\nEND\r\nSTORED\r\nVALUE k 0 "
		       "1\r\nc\r\nEND\r\nSTORED\r\n");
	/* The additions are as many as the last time. */
	makes("PGCPGCPG");
}

/*
 * A client's read is as good as a read ahead, if a rewrite is expected and nothing was written
 * since.
 */
TEST(a_read_for_a_client)
{
	pops_in_turn();
	another_stores("+d ");
	asks_and_hears("touch k 0\r\n", "TOUCHED\r\n");
	(void)stored_calls(&fake, &seen);
	asks_and_hears("scard k\r\n", "1\r\n");
	makes("G");
	pops("d", "C");
	/* Two have arrived, but one was expected. */
	adds("e", "PG");
	adds("f", "P");
	asks_and_hears("scard k\r\n", "2\r\n");
	makes("G");
	asks_and_hears("spop k 2\r\n", "VALUE k 0 3\r\ne f\r\nEND\r\n");
	makes("GC");
	adds("g", "P");
	adds("h", "PG");
	another_stores("+x ");
	asks_and_hears("scard k\r\n", "1\r\n");
	makes("G");
	pops("x", "CGC");
}

/* --- others --- */

/* A popped element is a member of the base that the CAS replaces, whichever proxy wrote it. */
TEST(another_was_first)
{
	pops_in_turn();
	another_stores("+d ");
	pops("d", "CGC");
	base_is("+d -d ");
	/* It was unnecessary: the next one is omitted. */
	adds("e", "P");
	pops("e", "GC");
	adds("f", "PG");
	another_stores("+g ");
	pops("g", "CGC");
	for (int i = 0; i < 3; i++) {
		adds("h", "P");
		pops("h", "GC");
	}
	adds("h", "PG");
	pops("h", "C");
}

/* The read after a failed CAS is the next one. */
TEST(lost_with_a_read_behind)
{
	another_stores("+a +b +c +d ");
	client_asks("spop k\r\nspop k\r\n");
	server_answer_one(&server);
	another_stores("+x +y +z +w ");
	server_answer_all(&server);
	(void)fake_told(&fake);
	/* The first one is not followed by a read. */
	makes("GCGCGCG");
	client_asks("spop k\r\nspop k\r\n");
	another_stores("+f +g ");
	server_answer_all(&server);
	ck_assert_uint_eq(strlen(fake_told(&fake)), 2 * strlen("VALUE k 0 1\r\nf\r\nEND\r\n"));
	makes("CGCGCG");
	ck_assert_uint_eq(buf_size(&base()->value), strlen("+f +g -f -g "));
}

TEST(another_adds_to_what_was_empty)
{
	pops_in_turn();
	pops("c", "C");
	client_asks("srem k x\r\n");
	hears("DELETED\r\n");
	makes("PG");
	another_stores("+y ");
	pops("y", "GC");
}

TEST(gone)
{
	pops_in_turn();
	base()->used = false;
	asks_and_hears("spop k\r\n", "END\r\n");
	makes("CG");
}

TEST(another_connection)
{
	pops_in_turn();
	fake.connection = 2;
	server.memcached.cas += 100;
	another_stores("+z ");
	pops("z", "CGC");
}

/* A pop with an unknown outcome is not repeated. */
TEST(unknown_outcome)
{
	pops_in_turn();
	client_asks("spop k\r\n");
	fake_fail(&fake, RESULT_LOST);
	client_is_told("SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	makes("C");
	/* The read after a write is lost with its connection. */
	client_asks("sadd k d\r\n");
	server_answer_one(&server);
	client_is_told("STORED\r\n");
	if (fake_waiting(&fake))
		fake_fail(&fake, RESULT_LOST);
	(void)stored_calls(&fake, &seen);
	client_asks("spop k\r\n");
	hears("VALUE k 0 1\r\nd\r\nEND\r\n");
	makes("GC");
}

/* --- times to live --- */

/* The touch of another proxy appends a date, so the CAS fails. */
TEST(a_touch_of_another)
{
	pops_in_turn();
	base()->expires = SERVER_NOW + 500;
	another_stores("+c ~t1424450596 ");
	pops("c", "CGC");
	ck_assert_int_eq(base()->expires, SERVER_NOW + 500);
	adds("d", "P");
	pops("d", "GC");
	ck_assert_int_eq(base()->expires, SERVER_NOW + 500);
	/* Our own touch is known before. */
	adds("e", "PG");
	asks_and_hears("touch k 70\r\n", "TOUCHED\r\n");
	(void)stored_calls(&fake, &seen);
	pops("e", "GC");
	ck_assert_int_eq(base()->expires, SERVER_NOW + 70);
}

/* Elapsed seconds are subtracted from those of a base without a date. */
TEST(some_seconds_later)
{
	pops_in_turn();
	base()->expires = SERVER_NOW + 500;
	another_stores("+c ");
	pops("c", "CGC");
	ck_assert_int_eq(base()->expires, SERVER_NOW + 500);
	adds("e", "P");
	fake.host.env.now += 11 * SECOND;
	pops("e", "GC");
}

/* --- which bases are not kept --- */

static void nothing_is_read_ahead(void)
{
	for (int i = 0; i < 4; i++) {
		pops("a", "GC");
		adds("a", "P");
	}
}

TEST(no_memory)
{
	struct collection_options none = options;

	none.cache = 0;
	fake_takes(&none);
	another_stores("+a ");
	nothing_is_read_ahead();
}

/* This number of other keys, so that one of them has the same slot. */
TEST(another_key_in_its_place)
{
	pops_in_turn();
	for (int i = 0; i < 400; i++) {
		char request[32];
		size_t n = (size_t)snprintf(request, sizeof(request), "spop k%d\r\n", i);
		server_put(&server, slice_of(request + 5, n - 7), SLICE("+a "));
		client_asks(request);
		server_answer_all(&server);
		(void)fake_told(&fake);
		makes("GC");
	}
	pops("c", "GC");
}

/* For a rewrite that arrives later than the last time, there is no read ahead. */
TEST(another_order)
{
	pops_in_turn();
	adds("d", "P");
	adds("e", "P");
	client_asks("spop k 9\r\n");
	server_answer_all(&server);
	(void)fake_told(&fake);
	makes("GC");
	adds("f", "P");
	adds("g", "P");
	adds("h", "PG");
}

/* --- claims --- */

static void claims(const char *member, const char *reply, const char *calls_)
{
	char request[64];

	snprintf(request, sizeof(request), "sclaim k %s\r\n", member);
	asks_and_hears(request, reply);
	makes(calls_);
}

TEST(claims_one_after_the_other)
{
	another_stores("+a ");
	claims("b", "1\r\n", "GC");
	claims("c", "1\r\n", "GCG");
	claims("d", "1\r\n", "CG");
	/* Other proxies have it: only the server knows whether they still do. */
	claims("d", "0\r\n", "G");
	another_stores("+a ");
	claims("d", "1\r\n", "GCG");
	another_stores("+a +e ");
	claims("e", "0\r\n", "CG");
	base_is("+a +e ");
}

/* --- lists --- */

static void changes(const char *request, const char *reply, const char *calls_)
{
	asks_and_hears(request, reply);
	makes(calls_);
}

static void a_queue(void)
{
	another_stores("@list +a +b +c +d ");
	takes("lpop k\r\n", "a", "GC");
	changes("rpush k e\r\n", "STORED\r\n", "P");
	takes("lpop k\r\n", "b", "GC");
	changes("rpush k f\r\n", "STORED\r\n", "PG");
}

TEST(a_queue_in_turn)
{
	a_queue();
	takes("lpop k\r\n", "c", "C");
	changes("lpush k g\r\n", "STORED\r\n", "QG");
	changes("lset k 1 x\r\n", "STORED\r\n", "C");
	changes("lpush k h\r\n", "STORED\r\n", "QG");
	takes("rpop k\r\n", "f", "C");
	base_is("+h +g @list +x +e ");
	/* A read of the list requests it from the server. */
	changes("rpush k i\r\n", "STORED\r\n", "PG");
	changes("llen k\r\n", "5\r\n", "G");
	takes("lpop k 2\r\n", "h g", "C");
}

TEST(the_read_of_a_list_is_lost)
{
	a_queue();
	takes("lpop k\r\n", "c", "C");
	waits_for_the_read("rpush k g\r\n", "lpop k\r\n");
	fake_fail(&fake, RESULT_LOST);
	hears("VALUE k 0 1\r\nd\r\nEND\r\n");
	makes("GC");
}

/* A command without an effect applies to the current list. */
TEST(a_list_that_does_not_change)
{
	a_queue();
	changes("lrem k 0 x\r\n", "0\r\n", "G");
}

/* It was read ahead without the element that another has pushed. */
TEST(a_list_that_has_changed)
{
	a_queue();
	another_stores("@list +x +y ");
	changes("lrem k 0 x\r\n", "1\r\n", "GC");
	base_is("@list +y ");
}

TEST(a_list_that_another_changes)
{
	a_queue();
	another_stores("@list +x +y ");
	takes("lpop k\r\n", "x", "CGC");
	base_is("@list +y ");
	changes("rpush k z\r\n", "STORED\r\n", "P");
	takes("lpop k\r\n", "y", "GC");
	changes("rpush k z\r\n", "STORED\r\n", "PG");
	base()->used = false;
	changes("lpop k\r\n", "END\r\n", "CG");
}

/* An element is popped by the client that had the reply to its push from another proxy. */
TEST(an_empty_list)
{
	another_stores("@list +a ");
	takes("lpop k\r\n", "a", "GC");
	changes("lpop k\r\n", "END\r\n", "G");
	changes("rpush k b\r\n", "STORED\r\n", "P");
	takes("lpop k\r\n", "b", "GC");
	changes("lpop k\r\n", "END\r\n", "G");
	changes("rpush k c\r\n", "STORED\r\n", "PG");
	takes("lpop k\r\n", "c", "C");
	client_asks("lpop k\r\nlpop k\r\n");
	another_stores("@list +x ");
	hears("VALUE k 0 1\r\nx\r\nEND\r\nEND\r\n");
}

/* A segment that is missing is so only if the base is still the same. */
TEST(a_segment_is_missing)
{
	struct buf line = BUF_EMPTY;

	BUF_ADD(&line, "rpush k");
	for (int i = 0; i < 5000; i++)
		buf_printf(&line, " e%05d", i);
	BUF_ADD(&line, "\r\n\0");
	client_asks(buf_slice(&line).p);
	server_answer_all(&server);
	client_asks("scompact k\r\n");
	server_answer_all(&server);
	(void)fake_told(&fake);
	(void)stored_calls(&fake, &seen);
	buf_free(&line);
	takes("lpop k\r\n", "e00000", "GgC");
	takes("lpop k\r\n", "e00001", "GCG");
	takes("lpop k\r\n", "e00002", "CG");
	/* Its parts have not been read for so long that they are read again. */
	fake.host.env.now += 9 * SECOND;
	takes("lpop k\r\n", "e00003", "CG");
	fake.host.env.now += 9 * SECOND;
	for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
		struct memcached_item *item = &server.memcached.items[i];
		if (item->used && memchr(buf_slice(&item->key).p, '.', buf_size(&item->key)))
			item->used = false;
	}
	changes("lpop k\r\n", "END\r\n", "gGC");
	ck_assert_ptr_null(base());
}

/* A pop with an unknown outcome is not repeated. */
TEST(unknown_outcome_of_a_list)
{
	a_queue();
	client_asks("lpop k\r\n");
	fake_fail(&fake, RESULT_LOST);
	client_is_told("SERVER_ERROR upstream mc:11211 connection lost, outcome unknown\r\n");
	makes("C");
}

TEST(a_claim_behind_what_is_no_set)
{
	another_stores("+a ");
	claims("b", "1\r\n", "GC");
	claims("c", "1\r\n", "GCG");
	client_asks("sclaim k d\r\n");
	server_answer_one(&server);
	client_is_told("1\r\n");
	client_asks("sclaim k e\r\n");
	makes("CG");
	another_stores("what");
	server_answer_one(&server);
	another_stores("+a ");
	hears("1\r\n");
	makes("GCG");
	base_is("+a +e ");
}
