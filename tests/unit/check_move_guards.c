/* Calls that meet the late claim of a mover: when the item has moved, and was deleted. */
#include "two_servers.h"

FIXTURE(two_servers_set_up, two_servers_tear_down)

static const struct {
	enum call_verb verb;
	enum result_status status; /* of a key that is missing */
} missing[] = {
	{ CALL_APPEND, RESULT_NOT_STORED },
	{ CALL_PREPEND, RESULT_NOT_STORED },
	{ CALL_REPLACE, RESULT_NOT_STORED },
	{ CALL_TOUCH, RESULT_MISS },
	{ CALL_DELETE, RESULT_MISS },
	{ CALL_CAS, RESULT_MISS },
	{ CALL_INCR, RESULT_MISS },
	{ CALL_DECR, RESULT_MISS },
	{ CALL_GAT, RESULT_MISS },
	{ CALL_GET, RESULT_MISS },
	{ CALL_ADD, RESULT_DONE },
	{ CALL_SET, RESULT_DONE },
};

LOOP_TEST(a_late_claim_is_no_item, sizeof(missing) / sizeof(*missing))
{
	bool stores = missing[_i].status == RESULT_DONE;

	reads(&proxies[0], "k", NULL);
	put_claim("k");
	does(&proxies[0], missing[_i].verb, "k", "x");
	ck_assert_int_eq(got.status, missing[_i].status);
	has(N, "k", stores ? "x" : NULL);
	/* With an item it behaves as usual. */
	put(N, "k", "7", 0);
	does(&proxies[0], missing[_i].verb, "k", "x");
	ck_assert_int_ne(got.status, RESULT_MISS);
	ck_assert_int_eq(got.status == RESULT_NOT_STORED, missing[_i].verb == CALL_ADD);
}

/* The claim of a second mover arrives after that of the first one was removed. */
LOOP_TEST(a_second_late_claim, sizeof(missing) / sizeof(*missing))
{
	bool stores = missing[_i].status == RESULT_DONE, again = false;
	struct proxy *p = &proxies[0];
	struct waiter waiter;

	reads(p, "k", NULL);
	put_claim("k");
	sends(p, missing[_i].verb, "k", "x", &waiter);
	while (step(p)) {
		if (!again && !item(N, "k"))
			again = true, put_claim("k");
	}
	ck_assert_int_eq(got.status, missing[_i].status);
	reads(&proxies[1], "k", stores ? "x" : NULL);
}

/* A client may store an item with the flags of a mark. */
LOOP_TEST(what_only_looks_like_a_mark, sizeof(missing) / sizeof(*missing))
{
	struct buf value = BUF_EMPTY;

	BUF_ADD(&value, "7");
	put_mark(N, "k", &value);
	reads(&proxies[0], "k", "7");
	put_mark(N, "l", &value);
	does(&proxies[0], missing[_i].verb, "l", "7");
	ck_assert_int_ne(got.status, RESULT_MISS);
	ck_assert_int_ne(got.status, RESULT_REFUSED);
	ck_assert_int_eq(got.status == RESULT_NOT_STORED, missing[_i].verb == CALL_ADD);
	does(&proxies[0], missing[_i].verb, "k", "7");
	ck_assert_int_ne(got.status, RESULT_REFUSED);
	ck_assert_int_eq(got.status == RESULT_NOT_STORED, missing[_i].verb == CALL_ADD);
	buf_free(&value);
}

/* The key is read first, until it was read at a time when no claim can arrive any more. */
TEST(a_guard_ends)
{
	unsigned calls;

	put(N, "k", "+a ", 0);
	reads(&proxies[0], "k", "+a ");
	calls = proxies[0].calls[N];
	does(&proxies[0], CALL_APPEND, "k", "+b ");
	ck_assert_uint_eq(proxies[0].calls[N], calls + 2);
	/* The knowledge does not expire within this time. */
	proxies[0].env.now += MOVES_LOOK_MS - 1;
	does(&proxies[0], CALL_APPEND, "k", "+c ");
	ck_assert_uint_eq(proxies[0].calls[N], calls + 4);
	for (int i = 0; i <= MARGIN; i++) {
		proxies[0].env.now += MOVES_LOOK_MS;
		reads(&proxies[0], "k", "+a +b +c ");
	}
	calls = proxies[0].calls[N];
	does(&proxies[0], CALL_APPEND, "k", "+d ");
	ck_assert_uint_eq(proxies[0].calls[N], calls + 2);
	does(&proxies[0], CALL_APPEND, "k", "+e ");
	ck_assert_uint_eq(proxies[0].calls[N], calls + 3);
	has(N, "k", "+a +b +c +d +e ");
}

/* Calls queued after one that needs a read wait as well. */
TEST(a_guard_keeps_the_order)
{
	static const enum call_verb verbs[] = { CALL_SET, CALL_APPEND, CALL_ADD, CALL_APPEND,
		CALL_SET, CALL_APPEND, CALL_DELETE, CALL_ADD, CALL_APPEND };
	static const char *const words[] = { "a", "b", "-", "c", "d", "e", "", "f", "g" };
	struct waiter waiters[9];

	reads(&proxies[0], "k", NULL);
	put_claim("k");
	ends = 0;
	for (int i = 0; i < 9; i++) {
		waiters[i] = (struct waiter){ on_result, SLICE("k") };
		moves_call(proxies[0].moves,
			&(struct call){ .verb = verbs[i],
				.server = CALL_ANY_SERVER,
				.key = SLICE("k"),
				.value = text(words[i]) },
			&waiters[i]);
	}
	run(&proxies[0]);
	ck_assert_uint_eq(ends, 9);
	has(N, "k", "fg");
}

/* A read says nothing about calls that arrived after it. */
TEST(a_guard_of_earlier_calls)
{
	struct waiter waiters[2];
	struct proxy *p = &proxies[0];

	reads(p, "k", NULL);
	ends = 0;
	sends(p, CALL_APPEND, "k", "+a ", &waiters[0]);
	ck_assert_uint_eq(p->sent, p->answered + 1);
	/* Another proxy stores the item when the look has been answered. */
	p->letters[p->answered % QUEUE].call.key = SLICE("no such key");
	put(N, "k", "+b ", 0);
	sends(p, CALL_APPEND, "k", "+c ", &waiters[1]);
	steps(p, 1);
	ck_assert_uint_eq(ends, 1);
	ck_assert_int_eq(got.status, RESULT_NOT_STORED);
	run(p);
	ck_assert_int_eq(got.status, RESULT_DONE);
	has(N, "k", "+b +c ");
}

/* A deleted item may be followed by a claim that arrives late. */
TEST(a_guard_behind_a_delete)
{
	struct waiter waiters[2];
	struct proxy *p = &proxies[0];

	put(N, "k", "+a ", 0);
	reads(p, "k", "+a ");
	ends = 0;
	sends(p, CALL_DELETE, "k", "", &waiters[0]);
	sends(p, CALL_APPEND, "k", "+b ", &waiters[1]);
	/* Looks at both servers, the look for the cas id, and the delete. */
	steps(p, 4);
	ck_assert_uint_eq(ends, 1);
	ck_assert_int_eq(got.status, RESULT_DONE);
	put_claim("k");
	run(p);
	ck_assert_uint_eq(ends, 2);
	ck_assert_int_eq(got.status, RESULT_NOT_STORED);
	has(N, "k", NULL);
}

/* Another client deletes the item, and leaves a claim that is late. */
static void loses_to_claim(const char *key)
{
	const struct call delete = { .verb = CALL_DELETE, .key = text(key) };

	ck_assert_int_eq(
		memcached_call(servers[N], &delete, (uint64_t)AT * 1000).status, RESULT_DONE);
	put_claim(key);
}

static const struct {
	enum call_verb verb;
	enum result_status
		status; /* DONE: it may have been before the delete, and nothing of it may be left */
} overtaken[] = {
	{ CALL_APPEND, RESULT_DONE },
	{ CALL_PREPEND, RESULT_DONE },
	{ CALL_REPLACE, RESULT_NOT_STORED },
	{ CALL_DELETE, RESULT_MISS },
};

/* Another client deletes the item between the look of a guard and its call. */
LOOP_TEST(a_guard_that_is_overtaken, sizeof(overtaken) / sizeof(*overtaken))
{
	struct waiter waiter;
	struct proxy *p = &proxies[0];

	put(N, "k", "+a ", 0);
	reads(p, "k", "+a ");
	ends = 0;
	sends(p, overtaken[_i].verb, "k", "+b ", &waiter);
	steps(p, 1);
	ck_assert_uint_eq(ends, 0);
	loses_to_claim("k");
	run(p);
	ck_assert_uint_eq(ends, 1);
	ck_assert_int_eq(got.status, overtaken[_i].status);
	reads(&proxies[1], "k", NULL);
	has(N, "k", NULL);
}

/* Such a call is not refused while others write the item. After some retries the plain call is sent. */
LOOP_TEST(a_guard_among_many_writers, sizeof(overtaken) / sizeof(*overtaken))
{
	struct waiter waiter;
	struct proxy *p = &proxies[0];
	int writes = 0;

	put(N, "k", "+a ", 0);
	reads(p, "k", "+a ");
	ends = 0;
	for (sends(p, overtaken[_i].verb, "k", "+b ", &waiter); step(p); writes++)
		(void)(ends == 0 && (put(N, "k", "+c ", 0), true));
	ck_assert_uint_eq(ends, 1);
	ck_assert_int_eq(got.status, RESULT_DONE);
	ck_assert_int_lt(writes, 16);
}

/* A look does not cover calls received after it was sent: the item may have been deleted in between. */
LOOP_TEST(what_was_seen_by_an_earlier_look, 3)
{
	static const char *const first[] = { "a look of a guard", "a read", "the end of a move" };
	struct waiter waiters[2];
	struct proxy *p = &proxies[0];

	put(_i < 2 ? N : O, "k", "+a ", 0);
	if (_i == 0)
		reads(p, "k", "+a ");
	ends = 0;
	sends(p, _i == 1 ? CALL_GET : CALL_APPEND, "k", "+b ", &waiters[0]);
	/* All steps of the mover but the last one. */
	while (_i == 2 &&
		!(p->letters[(p->sent - 1) % QUEUE].call.verb == CALL_CAS && item(N, "k") &&
			!item(O, "k")))
		steps(p, 1);
	execute_all(p);
	loses_to_claim("k");
	sends(p, CALL_APPEND, "k", "+c ", &waiters[1]);
	run(p);
	ck_assert_uint_eq(ends, 2);
	ck_assert_msg(got.status == RESULT_NOT_STORED, "%s", first[_i]);
	has(N, "k", NULL);
}

/*
 * The call meets a mark, the read after it finds the item, and the call meets a late claim. None
 * of this is an error of the item.
 */
LOOP_TEST(an_item_between_two_marks, 2)
{
	struct waiter waiter;
	struct proxy *p = &proxies[0];

	reads(p, "k", NULL);
	put_claim("k");
	ends = 0;
	sends(p, _i ? CALL_DECR : CALL_INCR, "k", "", &waiter);
	steps(p, 1);
	put(N, "k", "14", 0);
	steps(p, 1);
	ck_assert_uint_eq(ends, 0);
	loses_to_claim("k");
	run(p);
	ck_assert_uint_eq(ends, 1);
	ck_assert_int_eq(got.status, RESULT_MISS);
	has(N, "k", NULL);
}

/* An error of arithmetic is one. */
TEST(a_guard_tells_errors)
{
	put(N, "k", "text", 0);
	reads(&proxies[0], "k", "text");
	does(&proxies[0], CALL_INCR, "k", "");
	ck_assert_int_eq(got.status, RESULT_REFUSED);
	has(N, "k", "text");
}

/* An item that only looks like a mark is recognized by its value, without another read. */
TEST(a_read_of_an_imitation_costs_no_more)
{
	struct buf value = BUF_EMPTY;
	unsigned calls;

	BUF_ADD(&value, "@claim.1 ");
	put_mark(N, "k", &value);
	reads(&proxies[0], "k", "@claim.1 ");
	calls = proxies[0].calls[N] + proxies[0].calls[O];
	reads(&proxies[0], "k", "@claim.1 ");
	ck_assert_uint_eq(proxies[0].calls[N] + proxies[0].calls[O], calls + 1);
	/* Another one that has not found it reads it in one trip. */
	calls = proxies[1].calls[N] + proxies[1].calls[O];
	reads(&proxies[1], "k", "@claim.1 ");
	ck_assert_uint_eq(proxies[1].calls[N] + proxies[1].calls[O], calls + 2);
	buf_free(&value);
}

/* It moves as any other item, with its flags. */
TEST(an_imitation_moves)
{
	struct buf value = BUF_EMPTY;

	BUF_ADD(&value, "@copy.1.2.3.4.5 value");
	put_mark(O, "k", &value);
	does(&proxies[0], CALL_APPEND, "k", "+w");
	has(O, "k", NULL);
	reads(&proxies[0], "k", "@copy.1.2.3.4.5 value+w");
	ck_assert_uint_eq(got.flags, MARK_FLAGS);
	buf_free(&value);
}

/*
 * A client that stores the bytes of a mark has created one. It is completed like any other, and
 * nothing else is changed.
 */
TEST(a_forged_mark)
{
	struct buf value = BUF_EMPTY;

	put_claim("k");
	does(&proxies[0], CALL_APPEND, "k", "+w");
	ck_assert_int_eq(got.status, RESULT_NOT_STORED);
	has(N, "k", NULL);
	mark_add_copy(&value, SLICE("l"), 3, 1, 1, 3);
	BUF_ADD(&value, "xyz");
	put_mark(N, "l", &value);
	reads(&proxies[0], "l", "xyz");
	/* On the former server it moves first. */
	put_mark(O, "l", &value);
	item(N, "l")->used = false;
	reads(&proxies[1], "l", "xyz");
	has(O, "l", NULL);
	buf_free(&value);
}

/* A meta get that shows no flags, of an item whose value is that of a mark, and whose flags are not. */
TEST(the_value_of_a_mark_is_none)
{
	struct waiter waiter = { on_result, SLICE("k") };
	struct buf value = BUF_EMPTY;
	struct proxy *p = &proxies[0];

	mark_add_claim(&value, SLICE("k"));
	put_bytes(N, "k", buf_slice(&value));
	does(p, CALL_GET, "k", "");
	ck_assert_int_eq(got.status, RESULT_HIT);
	ends = 0;
	moves_call(p->moves,
		&(struct call){ .verb = CALL_META,
			.server = CALL_ANY_SERVER,
			.key = SLICE("k"),
			.line = SLICE("mg k v") },
		&waiter);
	while (ends == 0) {
		struct letter *letter = &p->letters[p->answered % QUEUE];
		ck_assert(p->answered < p->sent);
		if (letter->call.verb == CALL_META) {
			letter->executed = true;
			letter->result = (struct result){ .status = RESULT_TEXT,
				.line = SLICE("VA 28"),
				.value = buf_slice(&value) };
		}
		steps(p, 1);
	}
	ck_assert_int_eq(got.status, RESULT_TEXT);
	buf_free(&value);
}
