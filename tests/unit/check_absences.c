/* Absences of servers: each step by itself, and three proxies in a random order. */
#include "collection/copies/absences.h"

#include "absent.h"
#include "util/random.h"

FIXTURE(start_four, end_proxies)

/* --- reads --- */

TEST(reads_all_witnesses)
{
	struct asked a;

	for (int n = 3; n <= SERVERS; n++) {
		size_t i = 0;
		restart(n);
		ck_assert(!reads(&a));
		ck_assert_uint_eq(sent_count, (size_t)(n * (n - 1)));
		for (int y = 0; y < n; y++) {
			for (int w = 1; w < n; w++, i++) {
				ck_assert_int_eq(sent[i].call.verb, CALL_GET);
				ck_assert_int_eq(sent[i].call.server, (y + w) % n);
				ck_assert_str_eq(sent[i].key + 8, names[y]);
			}
		}
		answer_all(0);
		has_result(a, true);
		ck_assert(reads(&a));
		ck_assert_uint_eq(absences_of(proxies[0].absences, 1), 0);
	}
}

/* The witness may have answered right after the read was sent. */
TEST(a_lease_counts_from_the_sending)
{
	struct asked a, shared, late;

	ck_assert(!reads(&a));
	pass(300);
	ck_assert(!reads(&shared));
	ck_assert_uint_eq(sent_count, 12);
	answer_all(0);
	has_result(a, true);
	has_result(shared, true);
	ck_assert_int_lt(a.order, shared.order);
	pass(ABSENCE_LEASE_MS - 300);
	ck_assert(reads(&late));
	pass(1);
	ck_assert(!reads(&late));
	ck_assert_uint_eq(sent_count, 24);
	answer_all(0);
	has_result(late, true);
}

/* It is answered to the requests that share it, and to no later ones. */
TEST(a_read_that_takes_longer_than_the_lease)
{
	struct asked first, shared, late;

	ck_assert(!reads(&first));
	pass(ABSENCE_LEASE_MS);
	ck_assert(!reads(&shared));
	ck_assert_uint_eq(sent_count, 12);
	pass(1);
	ck_assert(!reads(&late));
	ck_assert_uint_eq(sent_count, 24);
	has_item(1, 0, 99);
	for (size_t i = 12; i < 24; i++)
		answer(i);
	has_result(late, true);
	has_none(first);
	ck_assert_uint_eq(absences_of(proxies[0].absences, 0), 99);
	pass(10);
	for (size_t i = 0; i < 12; i++)
		answer(i);
	has_result(first, true);
	has_result(shared, true);
	/* The lease is that of the second read. */
	pass(ABSENCE_LEASE_MS - 10);
	ck_assert(reads(&late));
	pass(1);
	ck_assert(!reads(&late));
	answer_all(0);
}

/* The other order: the first read, whose lease is over, is answered first. */
TEST(a_late_answer_is_not_kept)
{
	struct asked first, second, third;

	ck_assert(!reads(&first));
	pass(ABSENCE_WAIT_MS);
	ck_assert(!reads(&second));
	for (size_t i = 0; i < 12; i++)
		answer(i);
	has_result(first, true);
	has_none(second);
	ck_assert(!reads(&third));
	ck_assert_uint_eq(sent_count, 24);
	answer_all(0);
	has_result(second, true);
	has_result(third, true);
}

static const enum result_status failures[] = { RESULT_REFUSED, RESULT_TOO_LARGE, RESULT_BUSY,
	RESULT_UNAVAILABLE, RESULT_TIMED_OUT, RESULT_LOST };
enum { FAILURES = sizeof(failures) / sizeof(failures[0]) };

/* Of three witnesses two must answer, of two witnesses one. */
LOOP_TEST(a_majority_must_answer, FAILURES)
{
	for (int n = 3; n <= SERVERS; n++) {
		size_t count = (size_t)(n * (n - 1));
		for (size_t failing = 0; failing < (size_t)n; failing++) {
			struct asked a;
			bool ok = failing < 2;
			restart(n);
			ck_assert(!reads(&a));
			for (size_t i = (size_t)n - 1; i < count; i++)
				answer(i);
			has_none(a);
			for (size_t i = 0; i < (size_t)n - 1; i++)
				i < failing ? fail_call(i, failures[_i]) : answer(i);
			has_result(a, ok);
			/* A failed read is not used. */
			ck_assert_int_eq(reads(&a), ok);
			answer_all(0);
			ck_assert(reads(&a));
		}
	}
}

/* A server that hangs delays no read: a majority is enough, for success and for failure. */
TEST(late_answers)
{
	struct asked a, b;

	ck_assert(!reads(&a));
	for (size_t i = 0; i < 12; i++) {
		if (sent[i].call.server != 2)
			answer(i);
	}
	has_result(a, true);
	ck_assert(!absences_idle(proxies[0].absences));
	pass(ABSENCE_WAIT_MS);
	ck_assert(!reads(&b));
	fail_call(12, RESULT_LOST);
	has_none(b);
	fail_call(13, RESULT_LOST);
	has_result(b, false);
	ck_assert(!reads(&a));
	answer_all(0);
	has_result(a, true);
	has_result(b, false);
}

TEST(the_largest_absence_counts)
{
	struct asked a;

	for (int w = 0; w < 3; w++) {
		restart(SERVERS);
		for (int i = 0; i < 3; i++)
			has_item((3 + 1 + i) % SERVERS, 3, i == w ? 77 : 50);
		ck_assert(!reads(&a));
		answer_all(0);
		ck_assert_uint_eq(absences_of(proxies[0].absences, 3), 77);
	}
	/* A witness has lost it. */
	memset(items, 0, sizeof(items));
	pass(ABSENCE_WAIT_MS);
	ck_assert(!reads(&a));
	answer_all(0);
	ck_assert_uint_eq(absences_of(proxies[0].absences, 3), 77);
}

/* It may have been any absence. */
TEST(a_malformed_absence_is_no_answer)
{
	static const char *const values[] = { "", "0000000", "000000000", "--------", "0000 000" };
	struct asked a;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		for (int malformed = 1; malformed <= 2; malformed++) {
			restart(SERVERS);
			for (int w = 1; w <= malformed; w++) {
				has_item(w, 0, 9);
				strcpy(items[w][0].value, values[i]);
			}
			ck_assert(!reads(&a));
			answer_all(0);
			has_result(a, malformed == 1);
			ck_assert(!raises(0, &a));
			answer_all(0);
			pass(ABSENCE_WAIT_MS);
			has_result(a, malformed == 1);
			ck_assert_str_eq(items[1][0].value, values[i]);
		}
	}
}

/* --- raises --- */

TEST(raises_at_all_witnesses)
{
	for (int n = 3; n <= SERVERS; n++) {
		uint64_t stamp = stamp_at(START + ABSENCE_SKEW_MS + ABSENCE_AHEAD_MS);
		size_t witnesses = (size_t)n - 1;
		struct asked a;
		restart(n);
		ck_assert_int_eq(absences_now(proxies[0].absences), 0);
		ck_assert(!raises(1, &a));
		ck_assert_uint_eq(sent_count, witnesses);
		answer_all(0);
		ck_assert_uint_eq(sent_count, 2 * witnesses);
		for (int w = 1; w < n; w++)
			ck_assert_uint_eq(stored((1 + w) % n, 1), stamp);
		/* Other proxies may still use absences from before. */
		pass(ABSENCE_WAIT_MS - 1);
		has_none(a);
		ck_assert_uint_eq(absences_of(proxies[0].absences, 1), 0);
		ck_assert(!absences_idle(proxies[0].absences));
		pass(1);
		has_result(a, true);
		ck_assert_uint_eq(absences_of(proxies[0].absences, 1), stamp);
		ck_assert_int_eq(absences_now(proxies[0].absences), 1);
		ck_assert(raises(1, &a));
		ck_assert(absences_idle(proxies[0].absences));
	}
}

/* The last witness may have been read just before it took the absence. */
TEST(the_wait_begins_after_the_last_witness)
{
	struct asked a;

	ck_assert(!raises(0, &a));
	for (size_t i = 0; i < 3; i++)
		answer(i);
	pass(100);
	answer(3);
	answer(4);
	pass(ABSENCE_WAIT_MS);
	has_none(a);
	fail_call(5, RESULT_TIMED_OUT);
	pass(ABSENCE_WAIT_MS - 1);
	has_none(a);
	pass(1);
	has_result(a, true);
}

/* With one failure of three, at the read or at the write, a majority takes it; not of two. */
LOOP_TEST(a_majority_must_take_it, FAILURES)
{
	for (int n = 3; n <= SERVERS; n++) {
		size_t witnesses = (size_t)n - 1;
		for (size_t asks = 0; asks <= witnesses; asks++) {
			for (size_t writes = 0; asks + writes <= witnesses; writes++) {
				size_t taken = witnesses - asks - writes, i = 0;
				struct asked a;
				restart(n);
				ck_assert(!raises(0, &a));
				for (; i < witnesses; i++)
					i < asks ? fail_call(i, failures[_i]) : answer(i);
				for (; i < sent_count; i++)
					i < witnesses + writes ? fail_call(i, failures[_i])
							       : answer(i);
				pass(0);
				ck_assert_int_eq(a.results, taken < 2);
				pass(ABSENCE_WAIT_MS);
				has_result(a, taken >= 2);
				ck_assert_int_eq(raises(0, &a), taken >= 2);
				answer_all(0);
				pass(ABSENCE_WAIT_MS);
			}
		}
	}
}

/* An absence only grows. */
TEST(witnesses_that_have_an_absence)
{
	uint64_t stamp = until_now() + ahead;
	struct asked a;

	has_item(1, 0, stamp - 1);
	has_item(2, 0, stamp);
	has_item(3, 0, stamp + 1);
	ck_assert(!raises(0, &a));
	answer_all(0);
	ck_assert_uint_eq(sent_count, 4);
	ck_assert_int_eq(sent[3].call.verb, CALL_CAS);
	pass(ABSENCE_WAIT_MS);
	has_result(a, true);
	ck_assert_uint_eq(stored(1, 0), stamp);
	ck_assert_uint_eq(stored(2, 0), stamp);
	ck_assert_uint_eq(stored(3, 0), stamp + 1);
}

/* Another proxy changes the item between read and write, or it is evicted. */
LOOP_TEST(lost_races, 4)
{
	uint64_t stamp = until_now() + ahead;
	bool is_taken = _i == 3;
	struct asked a;

	restart(3);
	if (_i > 0)
		has_item(1, 0, 5);
	ck_assert(!raises(0, &a));
	answer(0);
	answer(1);
	if (_i == 2)
		items[1][0].cas = 0;
	else
		has_item(1, 0, is_taken ? stamp : 6);
	answer(2);
	answer(3);
	pass(ABSENCE_WAIT_MS);
	has_none(a);
	ck_assert_uint_eq(sent_count, 5);
	answer_all(0);
	ck_assert_uint_eq(sent_count, _i < 2 ? 6 : 5);
	ck_assert_uint_eq(stored(1, 0), stamp);
	pass(ABSENCE_WAIT_MS);
	has_result(a, true);
}

enum { RACES = 8 };

/* A lost race is no success, and is repeated a few times. */
TEST(races_that_are_always_lost)
{
	struct asked a;

	restart(3);
	ck_assert(!raises(0, &a));
	answer(0);
	answer(1);
	answer(3);
	for (uint64_t i = 1; i <= RACES; i++) {
		size_t write = sent_count == 4 ? 2 : sent_count - 1;
		has_none(a);
		has_item(1, 0, i);
		answer(write);
		answer(sent_count - 1);
	}
	pass(0);
	has_result(a, false);
	ck_assert_uint_eq(sent_count, 4 + 2 * RACES - 1);
}

TEST(a_raise_is_shared)
{
	struct asked a, b, c;

	ck_assert(!raises(0, &a));
	answer_all(0);
	pass(ABSENCE_AHEAD_MS / 10);
	ck_assert(!raises(0, &b));
	ck_assert_uint_eq(sent_count, 6);
	pass(ABSENCE_WAIT_MS - ABSENCE_AHEAD_MS / 10);
	has_result(a, true);
	has_result(b, true);
	/* All of them fail with it. */
	ck_assert(!raises(1, &a));
	ck_assert(!raises(1, &b));
	answer_all(1 << 2 | 1 << 3);
	pass(0);
	has_result(a, false);
	has_result(b, false);
	ck_assert(!raises(1, &c));
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	has_result(c, true);
}

/* If a raise takes long, or words have later stamps, another one follows it. */
LOOP_TEST(a_raise_that_is_not_enough, 4)
{
	struct asked a, b, c;
	bool jumps = _i & 1, fails = _i & 2;
	uint64_t until;

	ck_assert(!raises(0, &a));
	if (jumps)
		proxies[0].stamps.last = until_now() + ahead + 1;
	else
		pass(ABSENCE_AHEAD_MS + 1);
	until = jumps ? proxies[0].stamps.last : until_now();
	ck_assert(!raises(0, &b));
	ck_assert(!raises(0, &c));
	ck_assert_uint_eq(sent_count, 3);
	for (size_t i = 0; i < 3; i++)
		fails ? fail_call(i, RESULT_TIMED_OUT) : answer(i);
	for (size_t i = 3; i < 6 && !fails; i++)
		answer(i);
	pass(fails ? 0 : ABSENCE_WAIT_MS);
	has_result(a, !fails);
	has_none(b);
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	has_result(b, true);
	has_result(c, true);
	ck_assert_uint_ge(absences_of(proxies[0].absences, 0), until + ahead);
}

/* Not even the clock that is set back makes a queued request succeed too early. */
TEST(a_clock_that_is_set_back)
{
	struct asked a, b;
	uint64_t until;

	ck_assert(!raises(0, &a));
	pass(ABSENCE_AHEAD_MS + 1);
	until = until_now();
	ck_assert(!raises(0, &b));
	unix_ms -= 2 * ABSENCE_AHEAD_MS;
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	has_result(a, true);
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	has_result(b, true);
	ck_assert_uint_ge(absences_of(proxies[0].absences, 0), until);
}

TEST(several_servers_at_once)
{
	struct asked asked[SERVERS];

	for (int y = 0; y < SERVERS; y++)
		ck_assert(!raises(y, &asked[y]));
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	for (int y = 0; y < SERVERS; y++)
		has_result(asked[y], true);
	ck_assert_int_eq(absences_now(proxies[0].absences), SERVERS);
}

/* While an absence is needed, no request but the first one waits. */
TEST(raises_ahead_of_time)
{
	struct asked a;
	uint64_t stamp;

	is_raised(0);
	stamp = absences_of(proxies[0].absences, 0);
	pass(ABSENCE_AHEAD_MS / 2 - ABSENCE_WAIT_MS);
	ck_assert(raises(0, &a));
	ck_assert(absences_idle(proxies[0].absences));
	pass(1);
	ck_assert(raises(0, &a));
	ck_assert(raises(0, &a));
	ck_assert_uint_eq(sent_count, 9);
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	ck_assert_uint_eq(
		absences_of(proxies[0].absences, 0), stamp + stamp_at(ABSENCE_AHEAD_MS / 2 + 1));
	ck_assert(raises(0, &a));
	ck_assert(absences_idle(proxies[0].absences));
	/* A request that comes too late waits. */
	pass(ABSENCE_AHEAD_MS);
	ck_assert(!raises(0, &a));
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	has_result(a, true);
}

TEST(absences_in_the_past)
{
	struct asked a;

	has_item(1, 0, stamp_at(START - ABSENCE_AHEAD_MS));
	has_item(2, 1, stamp_at(START - ABSENCE_AHEAD_MS) + 1);
	ck_assert(!reads(&a));
	answer_all(0);
	ck_assert_int_eq(absences_now(proxies[0].absences), 1);
	/* What another proxy has raised may not have reached all proxies. */
	has_item(1, 0, until_now() + ahead);
	has_item(2, 0, until_now() + ahead);
	pass(ABSENCE_WAIT_MS);
	ck_assert(!reads(&a));
	answer_all(0);
	ck_assert_int_eq(absences_now(proxies[0].absences), 1);
	ck_assert(!raises(0, &a));
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	has_result(a, true);
}

/* A waiter may make requests. */
static void on_done_again(struct absence_waiter *waiter, bool ok)
{
	static struct asked again;

	((struct asked *)waiter)->ok = ok;
	again = (struct asked){ .waiter = { .done = on_done } };
	((struct asked *)waiter)->results +=
		1 + absences_request(proxies[0].absences, &again.waiter);
	(void)absences_raise(proxies[0].absences, 0, &again.waiter);
}

TEST(a_waiter_makes_requests)
{
	struct asked a = { .waiter = { .done = on_done_again } }, b;

	ck_assert(!absences_request(proxies[0].absences, &a.waiter));
	ck_assert(!reads(&b));
	answer_all(0);
	ck_assert_int_eq(a.results, 2);
	has_result(b, true);
	pass(ABSENCE_WAIT_MS);
	ck_assert(raises(0, &b));
}

/* --- any order --- */

/* A request, and the absences that it must see: the ones that were raised before. */
struct random_request {
	struct absence_waiter waiter;
	uint64_t must[SERVERS], until;
	int proxy, server; /* -1: a read */
	bool ended;
};

enum { REQUESTS = 64, STEPS = 1500 };
static struct random_request requests[REQUESTS];
static uint64_t raised[SERVERS];
static size_t successes[2], first_pending;
static uint64_t random_state;

static uint64_t below(uint64_t n)
{
	return random_next(&random_state) % n;
}

static void on_request(struct absence_waiter *waiter, bool ok)
{
	struct random_request *q = (struct random_request *)waiter;

	ck_assert(!q->ended);
	q->ended = true;
	if (!ok)
		return;
	successes[q->server >= 0]++;
	for (int y = 0; y < servers && q->server < 0; y++)
		ck_assert_uint_ge(absences_of(proxies[q->proxy].absences, y), q->must[y]);
	if (q->server >= 0 && q->until > raised[q->server])
		raised[q->server] = q->until;
}

static void begin_request(void)
{
	struct random_request *q = &requests[below(REQUESTS)];
	struct absences *absences;

	if (!q->ended)
		return;
	*q = (struct random_request){ .waiter.done = on_request, .until = until_now() };
	memcpy(q->must, raised, sizeof(raised));
	q->proxy = (int)below(PROXIES);
	q->server = below(2) ? -1 : (int)below((uint64_t)servers);
	absences = proxies[q->proxy].absences;
	if (q->server < 0 ? absences_request(absences, &q->waiter)
			  : absences_raise(absences, q->server, &q->waiter))
		on_request(&q->waiter, true);
}

/* Executes, answers or fails a call. One that has failed may be executed later. */
static void step_call(uint64_t faults)
{
	size_t i;
	struct sent *s;

	while (first_pending < sent_count && sent[first_pending].answered)
		first_pending++;
	if (first_pending == sent_count)
		return;
	i = first_pending + below(sent_count - first_pending);
	s = &sent[i];
	if (!s->executed && below(100) >= faults)
		execute(i);
	else if (!s->answered && below(100) >= faults)
		answer(i);
	else if (!s->answered)
		fail_call(i, failures[below(FAILURES)]);
}

/* A read sees each absence of which a raise had succeeded when the read was requested. */
LOOP_TEST(any_order, 60)
{
	random_state = (uint64_t)_i;
	restart(3 + _i % 2);
	first_pending = 0;
	memset(raised, 0, sizeof(raised));
	memset(successes, 0, sizeof(successes));
	for (int i = 0; i < REQUESTS; i++)
		requests[i].ended = true;
	for (int i = 0; i < STEPS && sent_count + 100 < MANY; i++) {
		if (below(4) == 0)
			begin_request();
		for (uint64_t n = below(40); n > 0; n--)
			step_call((uint64_t)(_i % 3 * 5));
		pass(below(4) ? below(20) : below(300));
	}
	ck_assert_uint_gt(successes[0], 20);
	ck_assert_uint_gt(successes[1], 20);
	for (int i = 0; i < 3; i++) {
		answer_all(0);
		pass(ABSENCE_WAIT_MS);
	}
	for (int i = 0; i < REQUESTS; i++)
		ck_assert(requests[i].ended);
}
