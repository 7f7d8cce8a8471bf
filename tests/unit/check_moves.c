/* Moves to another server: a mover among others, on two servers in memory. */
#include "collection/rewrite/cas.h"
#include "collection/text/packed.h"
#include "two_servers.h"

FIXTURE(two_servers_set_up, two_servers_tear_down)

TEST(moves_an_item)
{
	put(O, "k", "value", 100);
	reads(&proxies[0], "k", "value");
	ck_assert_uint_eq(got.flags, 5);
	has(O, "k", NULL);
	has(N, "k", "value");
	ck_assert_int_eq(item(N, "k")->expires, AT + 100);
	ck_assert_uint_eq(moves_statistics(proxies[0].moves)->moved, 1);
	ck_assert_uint_eq(moves_statistics(proxies[0].moves)->merged, 0);
}

/* Both servers are read at the same time, and the move follows. */
TEST(what_only_reads_does_not_wait)
{
	struct waiter waiters[3];
	struct proxy *p = &proxies[0];

	put(O, "k", "+a ", 0);
	ends = 0;
	sends(p, CALL_GET, "k", "", &waiters[0]);
	steps(p, 2);
	ck_assert_uint_eq(ends, 1);
	assert_bytes(buf_slice(&got_value), "+a ");
	has(O, "k", "+a ");
	/* The same while it is moved, except for a read after a write. */
	sends(p, CALL_GET, "k", "", &waiters[0]);
	sends(p, CALL_APPEND, "k", "+b ", &waiters[1]);
	sends(p, CALL_GET, "k", "", &waiters[2]);
	steps(p, 4);
	ck_assert_uint_eq(ends, 2);
	has(O, "k", "+a ");
	run(p);
	ck_assert_uint_eq(ends, 4);
	assert_bytes(buf_slice(&got_value), "+a +b ");
	has(O, "k", NULL);
	ck_assert_uint_eq(moves_statistics(p->moves)->moved, 1);
	buf_free(&got_value);
}

/*
 * Moves without a waiting command are done one after the other. A write moves its key immediately.
 */
TEST(reads_move_few_keys_at_once)
{
	struct proxy *p = &proxies[0];

	put(O, "k", "1", 0);
	put(O, "l", "2", 0);
	put(O, "m", "3", 0);
	reads(p, "k", "1");
	reads(p, "l", "2");
	has(O, "k", NULL);
	has(O, "l", "2");
	does(p, CALL_APPEND, "m", "4");
	has(N, "m", "34");
	p->env.now += 5;
	reads(p, "l", "2");
	has(N, "l", "2");
	has(O, "l", NULL);
}

/* In one trip, with one call more. */
TEST(a_read_of_what_has_moved_finds_it_at_once)
{
	struct waiter waiter;
	struct proxy *p = &proxies[0];

	put(N, "k", "v", 0);
	ends = 0;
	sends(p, CALL_GET, "k", "", &waiter);
	steps(p, 2);
	ck_assert_uint_eq(ends, 1);
	assert_bytes(buf_slice(&got_value), "v");
	ck_assert(moves_idle(p->moves));
	ck_assert_uint_eq(p->calls[O] + p->calls[N], 2);
	sends(p, CALL_GET, "k", "", &waiter);
	run(p);
	ck_assert_uint_eq(p->calls[O] + p->calls[N], 3);
	/* If neither has it, another proxy may just have moved it. */
	sends(p, CALL_GET, "l", "", &waiter);
	steps(p, 2);
	put(N, "l", "w", 0);
	run(p);
	ck_assert_uint_eq(ends, 3);
	assert_bytes(buf_slice(&got_value), "w");
	buf_free(&got_value);
}

/*
 * While it is moved by another proxy, reads and writes are executed between any two steps. A read
 * sees all earlier data.
 */
LOOP_TEST(a_read_while_another_moves, 16)
{
	static const char *const values[] = { "+a ", "+a +b " };
	struct waiter mover, waiters[2];
	struct proxy *p = &proxies[0];

	put(O, "k", "+a ", 0);
	sends(&proxies[1], CALL_APPEND, "k", "+b ", &mover);
	for (int i = 0; i < _i; i++)
		(void)step(&proxies[1]);
	sends(p, CALL_GET, "k", "", &waiters[0]);
	(void)step(p);
	run(&proxies[1]);
	ends = 0;
	run(p);
	ck_assert_uint_eq(ends, 1);
	ck_assert(slice_equal(buf_slice(&got_value), text(values[0])) ||
		slice_equal(buf_slice(&got_value), text(values[1])));
	sends(p, CALL_GET, "k", "", &waiters[1]);
	run(p);
	assert_bytes(buf_slice(&got_value), values[1]);
	has(O, "k", NULL);
	has(N, "k", values[1]);
	buf_free(&got_value);
}

/* Carries out all calls. The patient ones are of this account, and are answered before its call. */
static void runs_for(struct proxy *p, const struct account *account)
{
	size_t looked_at = p->answered, patient = 0;

	do {
		for (; looked_at < p->sent; looked_at++) {
			const struct call *call = &p->letters[looked_at % QUEUE].call;
			if (!call->patient)
				continue;
			ck_assert_ptr_eq(call->account, account);
			ck_assert_uint_eq(ends, 0);
			patient++;
		}
	} while (step(p));
	ck_assert_uint_eq(ends, 1);
	ck_assert_uint_gt(patient, 0);
}

/* A server queues patient calls for their client, so they are not refused for those of others. */
TEST(patient_calls_have_their_account)
{
	static const char *const keys[] = { "k", "gone", "l" };
	struct account account = { 0 };
	struct proxy *p = &proxies[0];
	struct waiter waiter;

	put(O, "k", "v", 0);
	put(N, "l", "v", 0);
	for (int later = 0; later < 2; later++) {
		for (int i = 0; i < 3; i++) {
			waiter = (struct waiter){ on_result, text(keys[i]) };
			p->env.unix_time = later ? AT + 1 : AT - 1;
			ends = 0;
			moves_call(p->moves,
				&(struct call){ .verb = CALL_GET,
					.want = WANT_VALUE,
					.only_reads = true,
					.server = CALL_ANY_SERVER,
					.key = waiter.key,
					.patient = true,
					.account = &account },
				&waiter);
			runs_for(p, &account);
		}
	}
	buf_free(&got_value);
}

/* One call more, once in a while. */
TEST(what_has_moved_is_asked_for_at_its_place)
{
	unsigned former;

	put(N, "k", "+a ", 0);
	reads(&proxies[0], "k", "+a ");
	former = proxies[0].calls[O];
	for (int i = 0; i < 10; i++)
		does(&proxies[0], CALL_APPEND, "k", "+b ");
	ck_assert_uint_eq(proxies[0].calls[O], former);
	proxies[0].env.now += MOVES_LOOK_MS;
	reads(&proxies[0], "k", "+a +b +b +b +b +b +b +b +b +b +b ");
	ck_assert_uint_eq(proxies[0].calls[O], former + 1);
}

/* Its bytes are never in the line of a call that is not in base64. */
TEST(moves_an_odd_key)
{
	static const enum call_verb verbs[] = { CALL_GET, CALL_APPEND, CALL_INCR, CALL_ADD,
		CALL_REPLACE, CALL_DELETE };

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		char key[] = "a b0";
		key[3] = (char)('0' + i);
		put(O, key, "1", 100);
		does(&proxies[0], verbs[i], key, "1");
		ck_assert(!item(O, key));
		ck_assert(!item(N, key) == (verbs[i] == CALL_DELETE));
	}
	ck_assert_uint_eq(proxies[0].bare, 0);
	ck_assert_uint_gt(moves_statistics(proxies[0].moves)->moved, 1);
}

TEST(what_does_not_move_is_left_alone)
{
	put(O, "=k", "1", 0);
	does(&proxies[0], CALL_INCR, "=k", "");
	ck_assert_uint_eq(got.number, 2);
	ck_assert_uint_eq(proxies[0].calls[O], 1);
	ck_assert_uint_eq(proxies[0].calls[N], 0);
}

#define TABLE "t0a000000001"
#define REFERENCE "@" TABLE ".1.1.0.9.0123456789abcdef "
#define OTHER_TABLE "t0b000000001"
#define OTHER_REFERENCE "@" OTHER_TABLE ".1.1.0.9.0123456789abcdef "

TEST(moves_a_set_with_its_parts)
{
	put(O, "s", "@set.1 " REFERENCE "+b ", 0);
	put(O, "s." TABLE, "table", 0);
	does(&proxies[0], CALL_APPEND, "s", "+c ");
	ck_assert_int_eq(got.status, RESULT_DONE);
	has(N, "s", "@set.1 " REFERENCE "+b +c ");
	has(N, "s." TABLE, "table");
	has(O, "s", NULL);
	has(O, "s." TABLE, NULL);
	/* A new part goes where its base is. */
	does(&proxies[0], CALL_ADD, "s.t0b000000001", "x");
	has(N, "s.t0b000000001", "x");
}

/* The writer lets the base refer to it only after the base has moved. */
TEST(a_part_that_its_base_did_not_know)
{
	put(N, "s", "@set.1 " REFERENCE "+b ", 0);
	put(O, "s." TABLE, "table", 100);
	reads(&proxies[0], "s." TABLE, "table");
	has(N, "s." TABLE, "table");
	ck_assert_int_eq(item(N, "s." TABLE)->expires, AT + 100);
	reads(&proxies[0], "s.t0b000000001", NULL);
	put(O, "s.t0c000000001", "other", 0);
	does(&proxies[0], CALL_TOUCH, "s.t0c000000001", "");
	ck_assert_int_eq(got.status, RESULT_DONE);
	has(N, "s.t0c000000001", "other");
}

/*
 * A client creates an item where another one was deleted, and its mover has not yet turned the
 * copy into the item.
 */
TEST(a_copy_that_is_all_that_is_left)
{
	struct buf mark = BUF_EMPTY;

	put(O, "s", "+new ", 0);
	mark_add_copy(&mark, SLICE("s"), 3, item(O, "s")->cas + 1, 1, 5);
	BUF_ADD(&mark, "+old ");
	put_mark(N, "s", &mark);
	reads(&proxies[0], "s", "+new +old ");
	ck_assert_uint_eq(got.flags, 3);
	buf_free(&mark);
	/* It is the same that has changed. */
	put(O, "t", "+old +new ", 0);
	mark_add_copy(&mark, SLICE("t"), 3, item(O, "t")->cas + 1, 1, 5);
	BUF_ADD(&mark, "+old ");
	put_mark(N, "t", &mark);
	reads(&proxies[0], "t", "+old +new ");
	buf_free(&mark);
}

/* Whatever a mover that was killed has left. */
TEST(another_goes_on)
{
	struct buf mark = BUF_EMPTY;

	mark_add_claim(&mark, SLICE("k"));
	put_mark(N, "k", &mark);
	reads(&proxies[0], "k", NULL);
	has(N, "k", NULL);
	put(O, "l", "new", 0);
	mark.start = mark.end = 0;
	mark_add_copy(&mark, SLICE("l"), 3, 7, 1, 3);
	BUF_ADD(&mark, "old");
	put_mark(N, "l", &mark);
	reads(&proxies[0], "l", "new");
	has(O, "l", NULL);
	/* After the deletion. */
	mark.start = mark.end = 0;
	mark_add_copy(&mark, SLICE("m"), 3, 7, 1, 4);
	BUF_ADD(&mark, "last+w ");
	put_mark(N, "m", &mark);
	reads(&proxies[0], "m", "last+w ");
	ck_assert_uint_eq(got.flags, 3);
	buf_free(&mark);
}

/* None is lost, and they keep their order. */
TEST(calls_that_wait)
{
	static const char *const words[] = { "+b ", "+c ", "+d ", "+e ", "+f " };
	struct waiter waiters[5];

	put(O, "k", "+a ", 0);
	ends = 0;
	for (int i = 0; i < 5; i++) {
		waiters[i] = (struct waiter){ on_result, SLICE("k") };
		moves_call(proxies[0].moves,
			&(struct call){ .verb = CALL_APPEND,
				.server = CALL_ANY_SERVER,
				.key = SLICE("k"),
				.value = text(words[i]) },
			&waiters[i]);
	}
	run(&proxies[0]);
	ck_assert_uint_eq(ends, 5);
	has(N, "k", "+a +b +c +d +e +f ");
}

/* Two proxies move the same item; steps of the second follow each number of steps of the first. */
LOOP_TEST(two_at_once, 12)
{
	struct waiter first = { on_result, SLICE("k") };
	const struct call append = { .verb = CALL_APPEND,
		.server = CALL_ANY_SERVER,
		.key = SLICE("k"),
		.value = SLICE("+b ") };

	put(O, "k", "+a ", 0);
	moves_call(proxies[0].moves, &append, &first);
	for (int i = 0; i < _i; i++)
		(void)step(&proxies[0]);
	does(&proxies[1], CALL_DELETE, "k", "");
	ck_assert_int_eq(got.status, RESULT_DONE);
	run(&proxies[0]);
	/* The append was before the deletion, or it met nothing. */
	ck_assert(got.status == RESULT_NOT_STORED || got.status == RESULT_DONE);
	has(O, "k", NULL);
	has(N, "k", NULL);
}

/* A client writes to the former server between any two steps. */
LOOP_TEST(a_late_write, 12)
{
	struct waiter first = { on_result, SLICE("k") };
	const struct call get = {
		.verb = CALL_GET, .want = WANT_VALUE, .server = CALL_ANY_SERVER, .key = SLICE("k")
	};
	const struct call append = {
		.verb = CALL_APPEND, .key = SLICE("k"), .value = SLICE("+b ")
	};
	struct result late;

	put(O, "k", "+a ", 0);
	moves_call(proxies[0].moves, &get, &first);
	for (int i = 0; i < _i; i++)
		(void)step(&proxies[0]);
	late = memcached_call(servers[O], &append, (uint64_t)AT * 1000);
	run(&proxies[0]);
	has(O, "k", NULL);
	has(N, "k", late.status == RESULT_DONE ? "+a +b " : "+a ");
	buf_free(&got_value);
}

/*
 * Before the time everything is in its former place; shortly before it, reads continue and writes
 * wait.
 */
TEST(until_the_time)
{
	struct proxy *p = &proxies[0];

	put(O, "k", "+a ", 0);
	p->env.unix_time = AT - MARGIN - 1;
	does(p, CALL_APPEND, "k", "+b ");
	does(p, CALL_SET, "l", "x");
	has(O, "k", "+a +b ");
	has(O, "l", "x");
	p->env.unix_time = AT - MARGIN;
	reads(p, "k", "+a +b ");
	put(N, "m", "moved", 0);
	reads(p, "m", "moved");
	has(O, "k", "+a +b ");
	does(p, CALL_APPEND, "k", "+c ");
	ck_assert_int_ge(p->env.unix_time, AT);
	ck_assert_uint_eq(moves_statistics(p->moves)->waited, 1);
	has(N, "k", "+a +b +c ");
}

TEST(a_server_fails)
{
	struct waiter waiter = { on_result, SLICE("k") };
	const struct call get = { .verb = CALL_GET, .server = CALL_ANY_SERVER, .key = SLICE("k") };
	const struct result lost = { .status = RESULT_TIMED_OUT, .server = "o" };
	struct proxy *p = &proxies[0];

	ends = 0;
	moves_call(p->moves, &get, &waiter);
	moves_call(p->moves, &get, &waiter);
	free(p->letters[0].bytes);
	p->answered = 1;
	p->letters[0].waiter->done(p->letters[0].waiter, &lost);
	ck_assert(step(p));
	ck_assert_uint_eq(ends, 2);
	ck_assert_int_eq(got.status, RESULT_UNAVAILABLE);
	ck_assert_uint_eq(moves_statistics(p->moves)->failed, 1);
}

/* --- keys on both servers --- */

static const struct {
	const char *former, *here;
} plain[] = {
	{ "older", "newer" },
	{ "9", "7" },
	{ "7", "9" },
	{ "+a ", "no set" },
	{ "no set", "+a " },
	{ "@set.2 @fill.abcdefg0.1700000010.10 ", "no set" },
	{ "", "x" },
	{ "x", "" },
};

/*
 * A setlistd without the new ring wrote to the former server. Acknowledged writes of the others
 * stay valid, with all their data.
 */
LOOP_TEST(the_item_of_the_new_server_stays, sizeof(plain) / sizeof(*plain))
{
	struct proxy *p = &proxies[0];
	uint64_t cas;

	put(N, "k", plain[_i].here, 100);
	cas = item(N, "k")->cas;
	reads(p, "k", plain[_i].here);
	put(O, "k", plain[_i].former, 0);
	item(O, "k")->flags = 6;
	/* Known to a proxy, and to another one not. */
	reads(&proxies[1], "k", plain[_i].here);
	ck_assert_uint_eq(got.flags, 5);
	p->env.now += MOVES_LOOK_MS;
	reads(p, "k", plain[_i].here);
	has(O, "k", NULL);
	ck_assert_uint_eq(item(N, "k")->cas, cas);
	ck_assert_int_eq(item(N, "k")->expires, AT + 100);
	ck_assert_uint_eq(moves_statistics(proxies[1].moves)->moved, 1);
	ck_assert_uint_eq(moves_statistics(proxies[1].moves)->merged, 0);
	ck_assert_uint_eq(moves_statistics(proxies[1].moves)->dropped, 1);
}

/* A touch of the dropped item does not affect the time to live of the other one. */
TEST(the_time_to_live_of_the_new_server_stays)
{
	const struct call touch = { .verb = CALL_TOUCH, .key = SLICE("k"), .exptime = 7000 };
	struct waiter waiter;
	struct proxy *p = &proxies[0];

	put(N, "k", "newer", 100);
	put(O, "k", "older", 0);
	sends(p, CALL_GET, "k", "", &waiter);
	while (p->letters[(p->sent - 1) % QUEUE].call.verb != CALL_CAS)
		steps(p, 1);
	memcached_call(servers[O], &touch, (uint64_t)AT * 1000);
	run(p);
	has(O, "k", NULL);
	ck_assert_int_eq(item(N, "k")->expires, AT + 100);
	/* Also for a set that is joined, in seconds and as a date. */
	put(N, "s", "+a ", 100);
	put(O, "s", "+b ", 0);
	reads(p, "s", "+b +a ");
	ck_assert_int_eq(item(N, "s")->expires, AT + 100);
	put(N, "t", "+a ", 0);
	put(O, "t", "+b ", 100);
	reads(p, "t", "+b +a ");
	ck_assert_int_eq(item(N, "t")->expires, 0);
	put(N, "u", "+a ", AT + 5000000);
	put(O, "u", "+b ", 100);
	reads(p, "u", "+b +a ");
	ck_assert_int_eq(item(N, "u")->expires, AT + 5000000);
	buf_free(&got_value);
}

/* A base expires at its date, wherever it is. A joined one has the last date of the two. */
TEST(dates)
{
	static const struct {
		const char *former, *here, *moved;
		int64_t expires;
	} cases[] = {
		{ "+b ~t1700000200 ", NULL, "+b ~t1700000200 ", 1700000200 },
		{ "+b ~t0 ", NULL, "+b ~t0 ", 0 },
		{ "+b ~t1700000200 ", "+a ~t1700000300 ", "+b +a ~t1700000300 ", 1700000300 },
		{ "+b ~t1700000200 ", "+a ", "+b +a ~t1700000200 ", 1700000200 },
		{ "+b ", "+a ~t1700000300 ", "+b +a ~t1700000300 ", 1700000300 },
		{ "~t1700000200 +b ", "+x @list +a ", "+b +x @list +a ~t1700000200 ", 1700000200 },
		{ "+b ~t1700000200 @list +c ~t0 ", "@list +a ~t1700000300 ",
			"+b @list +c +a ~t1700000300 ", 1700000300 },
		{ "hello ~t1700000200 ", NULL, "hello ~t1700000200 ", AT + 50 },
	};
	char key[] = "a";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++, key[0]++) {
		if (cases[i].here)
			put(N, key, cases[i].here, 0);
		put(O, key, cases[i].former, 50);
		proxies[0].env.now += MOVES_LOOK_MS;
		reads(&proxies[0], key, cases[i].moved);
		has(O, key, NULL);
		ck_assert_int_eq(item(N, key)->expires, cases[i].expires);
	}
	buf_free(&got_value);
}

/* Both servers have the key: the new one a copy with this text. */
static void put_copy(const char *key, const char *text)
{
	struct buf mark = BUF_EMPTY;

	mark_add_copy(&mark, slice_of(key, strlen(key)), 3, 77, 1, 4);
	buf_add(&mark, text, strlen(text));
	put_mark(N, key, &mark);
	put(O, key, "other", 0);
	buf_free(&mark);
}

/* The words around a copy were written by a proxy with the new ring. No proxy with the new ring has acknowledged a bare copy. */
TEST(words_around_a_copy_stay)
{
	put_copy("k", "copy+word");
	reads(&proxies[0], "k", "copy+word");
	ck_assert_uint_eq(got.flags, 3);
	has(O, "k", NULL);
	put_copy("l", "copy");
	reads(&proxies[0], "l", "other");
	ck_assert_uint_eq(got.flags, 5);
	ck_assert_uint_eq(moves_statistics(proxies[0].moves)->dropped, 1);
}

/* Of a set that is dropped no part stays. */
TEST(the_parts_of_an_item_that_is_dropped)
{
	put(O, "k", "@set.1 " REFERENCE "+b ", 0);
	put(O, "k." TABLE, "table", 0);
	put(N, "k", "no set", 0);
	reads(&proxies[0], "k", "no set");
	has(O, "k", NULL);
	has(O, "k." TABLE, NULL);
	has(N, "k." TABLE, NULL);
}

static struct call removal(int number)
{
	static const struct call removals[] = {
		{ .verb = CALL_DELETE },
		{ .verb = CALL_TOUCH, .exptime = -1 },
		{ .verb = CALL_SET, .exptime = -1 },
		{ .verb = CALL_SET, .exptime = AT - 1 },
		{ .verb = CALL_GAT, .exptime = -1 },
	};
	struct call call = removals[number];

	call.server = CALL_ANY_SERVER;
	call.key = SLICE("k");
	call.value = SLICE("");
	return call;
}

/*
 * Writes of a proxy without the new ring before a deletion do not return, although the key was
 * found before.
 */
LOOP_TEST(a_deletion_asks_the_former_server, 10)
{
	struct call call = removal(_i / 2);
	struct waiter waiters[2] = { { on_result, call.key }, { on_result, call.key } };
	struct proxy *p = &proxies[0];

	put(N, "k", "newer", 0);
	reads(p, "k", "newer");
	put(O, "k", "older", 0);
	if (_i % 2)
		sends(p, CALL_APPEND, "k", "+w", &waiters[0]);
	moves_call(p->moves, &call, &waiters[1]);
	run(p);
	ck_assert_int_ne(got.status, RESULT_MISS);
	has(O, "k", NULL);
	p->env.now += MOVES_LOOK_MS;
	reads(p, "k", NULL);
}

/* A set of which a setlistd with another list of servers wrote a part. */
TEST(both_have_it)
{
	put(N, "s", "+a +b ", 0);
	reads(&proxies[0], "s", "+a +b ");
	put(O, "s", "+c -a ", 0);
	proxies[0].env.now += MOVES_LOOK_MS;
	reads(&proxies[0], "s", "+a +b ");
	reads(&proxies[0], "s", "+c -a +a +b ");
	has(O, "s", NULL);
	ck_assert_uint_eq(moves_statistics(proxies[0].moves)->merged, 1);
}

#define DATE "\0021700000100"

TEST(both_have_members_that_expire)
{
	put(N, "s", "+a" DATE " +b ", 0);
	put(O, "s", "+c" DATE " +a ", 0);
	reads(&proxies[0], "s", "+c" DATE " +a +a" DATE " +b ");
	has(O, "s", NULL);
}

/*
 * A log overrides runs, so words that are older than a run are dropped. Those on other members
 * stay.
 */
/* The words of the new server decide about their members; the former ones about all others. */
LOOP_TEST(a_run_of_a_forgotten_proxy, 2)
{
	struct table_writer table = { .count = 0 };
	struct buf value = BUF_EMPTY, text = BUF_EMPTY;
	struct table opened;

	table_writer_add(&table, SLICE("b"), false);
	table_writer_add(&table, SLICE("c"), true);
	for (char letter = 'f'; letter < 'z'; letter++)
		table_writer_add(&table, slice_of(&letter, 1), false);
	table_writer_finish(&table, &text);
	table_writer_free(&table);
	if (_i)
		ck_assert(table_trust(&opened, buf_slice(&text)) && packed_write(&value, &opened));
	else
		buf_add_slice(&value, buf_slice(&text));
	buf_free(&text);
	put_bytes(O, "s." TABLE, buf_slice(&value));
	put(O, "s", "@set.1 " REFERENCE "+d ", 0);
	put(N, "s", "+a -b +c +e ", 0);
	reads(&proxies[0], "s", "@set.1 " REFERENCE "+d +a -b +c +e ");
	ck_assert(item(N, "s." TABLE));
	/* A run that both have is older than both logs. */
	put(O, "r", "@set.1 " REFERENCE "+d ", 0);
	put_bytes(O, "r." TABLE, buf_slice(&value));
	put(N, "r", "@set.1 " REFERENCE "-b +c ", 0);
	reads(&proxies[0], "r", "@set.1 " REFERENCE "+d -b +c ");
	/* A run of the new server decides about its members. */
	put(O, "q", "+c @set.1 " REFERENCE "+b +d -c ", 0);
	put_bytes(O, "q." TABLE, buf_slice(&value));
	put(N, "q", "+c -a @set.1 " OTHER_REFERENCE "-e ", 0);
	put_bytes(N, "q." OTHER_TABLE, buf_slice(&value));
	reads(&proxies[0], "q", "@set.1 " REFERENCE OTHER_REFERENCE "+d -a -e ");
	/* The same of words with dates. */
	put(O, "p", "+c" DATE " @set.1 " REFERENCE "+b" DATE " +d" DATE " -c ", 0);
	put_bytes(O, "p." TABLE, buf_slice(&value));
	put(N, "p", "+c" DATE " -a @set.1 " OTHER_REFERENCE "+e" DATE " ", 0);
	put_bytes(N, "p." OTHER_TABLE, buf_slice(&value));
	reads(&proxies[0], "p", "@set.1 " REFERENCE OTHER_REFERENCE "+d" DATE " -a +e" DATE " ");
	buf_free(&value);
}

#define EVENT "e::2023111422"

/*
 * A proxy with the old configuration counts after each number of steps of the mover. Nothing is
 * counted twice.
 */
LOOP_TEST(an_item_that_changes_while_it_moves, 14)
{
	const struct call count = { .verb = CALL_INCR, .key = SLICE(EVENT), .number = 1 };
	struct waiter waiter = { on_result, SLICE(EVENT) };
	bool counted;

	put(O, EVENT, "5", 0);
	moves_call(proxies[0].moves,
		&(struct call){ .verb = CALL_GET, .server = CALL_ANY_SERVER, .key = SLICE(EVENT) },
		&waiter);
	for (int i = 0; i < _i; i++)
		step(&proxies[0]);
	counted = memcached_call(servers[O], &count, (uint64_t)AT * 1000).status == RESULT_NUMBER;
	run(&proxies[0]);
	has(O, EVENT, NULL);
	has(N, EVENT, counted ? "6" : "5");
}

/*
 * A correction of the time to live after a rewrite must not be late: a touch, and the clock of the
 * server.
 */
TEST(a_touch_does_not_wait_for_the_time)
{
	proxies[0].env.unix_time = AT - 1;
	put(O, "k", "v", 0);
	does(&proxies[0], CALL_TOUCH, "k", "");
	ck_assert_int_eq(got.status, RESULT_DONE);
	does(&proxies[0], CALL_STATS, "k", "");
	ck_assert_int_eq(got.status, RESULT_TEXT);
	ck_assert_int_eq(proxies[0].env.unix_time, AT - 1);
	has(O, "k", "v");
	/* It may have moved, by another's clock. */
	put(N, "l", "v", 0);
	does(&proxies[0], CALL_TOUCH, "l", "");
	ck_assert_int_eq(got.status, RESULT_DONE);
	ck_assert_int_ge(proxies[0].env.unix_time, AT);
}

/* --- a rewrite --- */

static struct env rewriter;
static unsigned rewrites;

static void call_moves(struct env *env, const struct call *call, struct waiter *waiter)
{
	(void)env;
	moves_call(proxies[0].moves, call, waiter);
}

static void on_rewrite(struct cas *cas, const struct result *r)
{
	(void)cas;
	ck_assert_int_eq(r->status, RESULT_DONE);
	rewrites++;
}

/*
 * A rewrite waits for the time, and so does the read of the time to live right before its write:
 * another client, for whose proxy the time has come, may touch the item meanwhile.
 */
LOOP_TEST(a_touch_while_a_rewrite_waits, 2)
{
	static const int64_t exptimes[] = { 100, AT + 5000000 };
	const struct call touch = {
		.verb = CALL_TOUCH, .key = SLICE("k"), .exptime = exptimes[_i]
	};
	struct call call = { .verb = CALL_CAS, .key = SLICE("k"), .value = SLICE("+b ") };
	struct proxy *p = &proxies[0];
	struct cas cas;
	int64_t expires;

	put(N, "k", "+a ", 0);
	call.number = item(N, "k")->cas;
	p->env.unix_time = AT - 1;
	rewriter = p->env;
	rewriter.call = call_moves;
	rewrites = 0;
	cas_send(&cas, &rewriter, call, SLICE("k"), TTL_NEVER, on_rewrite);
	while (p->letters[(p->sent - 1) % QUEUE].call.verb != CALL_CAS)
		steps(p, 1);
	memcached_call(servers[N], &touch, (uint64_t)p->env.unix_time * 1000);
	expires = item(N, "k")->expires;
	ck_assert_int_eq(expires, _i ? exptimes[1] : p->env.unix_time + 100);
	run(p);
	ck_assert_uint_eq(rewrites, 1);
	has(N, "k", "+b ");
	ck_assert_int_eq(item(N, "k")->expires, expires);
}
