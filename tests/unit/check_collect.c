/* How a lane of a crowded key collects operations for one append: see crowd.h. */
#include "collection/lane/lane.h"
#include "conversations.h"
#include "util/hash.h"

static size_t seen; /* calls that appended() has looked at */

static void setup(void)
{
	struct fake *f = &fake;

	fake_setup();
	fake_has_time(f);
	crowd_lost(&f->host.lanes->crowds, hash_key(SLICE("k"), f->host.env.seed), f->host.env.now,
		true);
	seen = 0;
}

static void teardown(void)
{
	(void)fake_pass(&fake, COLLECT_MS);
	fake_teardown();
}

/* The logs of the appends since the last time. */
static const char *appended(void)
{
	static char logs[1024];
	size_t n = 0;

	for (; seen < fake.count; seen++) {
		struct slice log = fake.calls[seen].call.value;
		if (fake.calls[seen].call.verb == CALL_APPEND)
			n += (size_t)snprintf(
				logs + n, sizeof(logs) - n, "%.*s|", (int)log.n, log.p);
	}
	logs[n] = '\0';
	return logs;
}

/* It also requests the size, which a lane of a crowded key does by chance. */
static void answer_all(void)
{
	const struct result done = { .status = RESULT_DONE },
			    size = { .status = RESULT_HIT, .size = 100 };

	for (size_t n = fake_waiting(&fake); n; n--) {
		size_t i = fake_oldest(&fake);
		fake_result(&fake, i, fake.calls[i].call.verb == CALL_APPEND ? &done : &size);
	}
}

/* This is appended, and the client is answered when that is acknowledged. */
static void goes_out(const char *logs, const char *reply)
{
	ck_assert_str_eq(appended(), logs);
	answer_all();
	client_is_told(reply);
}

/* Two operations in flight. */
static void become_two(void)
{
	client_asks("sadd k a\r\nsadd k b\r\n");
	goes_out("+a |", "STORED\r\n");
	ck_assert_str_eq(appended(), "");
	client_asks("sadd k c\r\n");
	goes_out("+b +c |", "STORED\r\nSTORED\r\n");
}

/* As many as were in flight are combined; the last of them does not wait. */
TEST(together)
{
	become_two();
	for (int i = 0; i < 3; i++) {
		client_asks("sadd k d\r\n");
		ck_assert_str_eq(appended(), "");
		client_asks("srem k e\r\n");
		goes_out("+d -e |", "STORED\r\nDELETED\r\n");
	}
}

/* A client that has left is waited for once. */
TEST(one_leaves)
{
	become_two();
	(void)fake_pass(&fake, COLLECT_MS);
	client_asks("sadd k d\r\n");
	ck_assert_uint_eq(fake_pass(&fake, COLLECT_MS - 1), 0);
	ck_assert_str_eq(appended(), "");
	ck_assert_uint_eq(fake_pass(&fake, 1), 1);
	goes_out("+d |", "STORED\r\n");
	client_asks("sadd k e\r\n");
	goes_out("+e |", "STORED\r\n");
}

/* When the daemon exits, timers fire immediately, while the clock is stopped. */
TEST(timer_that_is_early)
{
	become_two();
	(void)fake_pass(&fake, COLLECT_MS);
	client_asks("sadd k d\r\n");
	fake.turns[0].at = fake.host.env.now;
	ck_assert_uint_eq(fake_pass(&fake, 0), 1);
	ck_assert_uint_eq(fake.turn_count, 0);
	goes_out("+d |", "STORED\r\n");
}

/* A lane whose timer runs stays until it has fired. */
TEST(nothing_is_left)
{
	become_two();
	ck_assert(!lanes_idle(fake.host.lanes));
	(void)fake_pass(&fake, COLLECT_MS);
	ck_assert(lanes_idle(fake.host.lanes));
}

/* An append that is large enough does not wait for more. */
TEST(many_wait_for_nobody)
{
	client_asks("sadd k a\r\n");
	for (int i = 0; i < COLLECT_MOST; i++)
		client_asks("sadd k b\r\n");
	ck_assert_str_eq(appended(), "+a |");
	answer_all();
	ck_assert_uint_eq(strlen(appended()), strlen("+b ") * COLLECT_MOST + 1);
	answer_all();
	ck_assert_uint_eq(strlen(fake_told(&fake)), strlen("STORED\r\n") * (1 + COLLECT_MOST));
}

/* A read is not an append: nothing is won by waiting. */
TEST(reads_do_not_wait)
{
	become_two();
	client_asks("scard k\r\n");
	ck_assert_uint_eq(fake_waiting(&fake), 1);
	relays(FOUND("k", 3, "+a "), "1\r\n");
}

/* No other proxy writes the key. */
TEST(not_crowded)
{
	fake.host.env.now += CROWD_FORGET;
	client_asks("sadd k a\r\nsadd k b\r\n");
	answer_all();
	goes_out("+a |+b |", "STORED\r\nSTORED\r\n");
}

FIXTURE(setup, teardown)
