
#include "command/fan.h"
#include "conversations.h"
#include "util/num.h"

#define COUNTER "mg E::2015022016 k f v\r\n"
#define EVENT(n) "mg E::2015022016::" #n " k f v\r\n"

static const struct result miss = { .status = RESULT_MISS },
			   hit = { .status = RESULT_HIT, .value = { "x", 1 } };

/* Returns the oldest pending call, if there are very many. */
static size_t next;

static struct slice key_of(size_t i)
{
	return fake.calls[i].call.key;
}

static void count_is(uint64_t n)
{
	char text[NUM_U64_MAX + 1];
	int length = snprintf(text, sizeof(text), "%llu", (unsigned long long)n);

	fake_result(&fake, next++,
		&(struct result){ .status = RESULT_HIT, .value = slice_of(text, (size_t)length) });
}

/* Answers all calls, including those that result from them. */
static void all_are(const struct result *r)
{
	while (next < fake.count)
		fake_result(&fake, next++, r);
}

/* Which numbers of 1 to 10 are meant. */
TEST(numbers)
{
	static const struct {
		const char *arguments;
		unsigned first, last;
	} cases[] = {
		{ "", 1, 10 },
		{ " 1", 1, 10 },
		{ " 4", 4, 10 },
		{ " -3", 8, 10 },
		{ " -1 -1", 10, 10 },
		{ " 2 3", 2, 3 },
		{ " -3 -2", 8, 9 },
		{ " 3 -3", 3, 8 },
		{ " 0 0", 1, 0 },
		{ " 0 1", 1, 1 },
		{ " -10 -10", 1, 1 },
		{ " -11 -11", 1, 0 },
		{ " -100 100", 1, 10 },
		{ " 11", 1, 0 },
		{ " 11 20", 1, 0 },
		{ " 5 4", 1, 0 },
		{ " -9223372036854775808 9223372036854775807", 1, 10 },
		{ " 9223372036854775807 -9223372036854775808", 1, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[100], expected[100];
		snprintf(line, sizeof(line), "evrange E 2015022016%s\r\n", cases[i].arguments);
		client_asks(line);
		count_is(10);
		ck_assert_msg(fake.count - next == cases[i].last + 1 - cases[i].first,
			"%s: %zu asked for", line, fake.count - next);
		for (unsigned n = cases[i].first; n <= cases[i].last; n++) {
			snprintf(expected, sizeof(expected), "E::2015022016::%u", n);
			assert_bytes(key_of(next), expected);
			fake_result(&fake, next++, &miss);
		}
		client_is_told("END\r\n");
	}
}

/* A prefix is all its buckets in order, however their rule cuts and parts them. */
TEST(several_buckets)
{
	static const struct event_rule rules[] = {
		{ .prefix = { "D", 1 }, .bucket = GRANULARITY_DAY, .separator = { "/", 1 } },
	};

	fake.rules = (struct rules){ .events = rules, .event_count = 1 };
	client_asks("evrange D 201502\r\n");
	ck_assert_uint_eq(fake_waiting(&fake), 28);
	(void)fake_calls(&fake);
	for (int day = 1; day <= 28; day++) {
		if (day == 5 || day == 28)
			count_is(day == 5 ? 2 : 1);
		else
			fake_result(&fake, next++, &miss);
	}
	server_is_asked(
		"mg D/20150205/1 k f v\r\nmg D/20150205/2 k f v\r\nmg D/20150228/1 k f v\r\n");
	fake_result(&fake, 30, &hit);
	client_hears_nothing();
	fake_result(&fake, 28, &hit);
	fake_result(&fake, 29, &miss);
	client_is_told("VALUE D/20150205/1 0 1\r\nx\r\nVALUE D/20150228/1 0 1\r\nx\r\nEND\r\n");
	client_asks("evrange D 201502 1\r\nevrange D 2015022016\r\n");
	client_is_told("CLIENT_ERROR bad bucket\r\nCLIENT_ERROR bad bucket\r\n");
}

/* Few, while their sizes are unknown. Then all others at once. */
TEST(three_hundred)
{
	client_asks("evrange E now\r\n");
	count_is(300);
	ck_assert_uint_eq(fake_waiting(&fake), 16);
	for (int i = 0; i < 16; i++) {
		ck_assert_uint_ge(fake.calls[next].call.expected, 32768);
		ck_assert(fake.calls[next].call.patient);
		fake_result(&fake, next++, &hit);
	}
	ck_assert_uint_eq(fake_waiting(&fake), 284);
	ck_assert_uint_eq(fake.calls[fake.count - 1].call.expected, 0);
	all_are(&hit);
	ck_assert_uint_eq(fake.count, 301);
	ck_assert_ptr_nonnull(strstr(fake_told(&fake), "::300 0 1\r\nx\r\nEND\r\n"));
}

/* The newest ten, across three gaps, and no more than ten although more were requested. */
TEST(past_holes)
{
	client_asks("evlast E 0\r\n");
	client_is_told("END\r\n");
	client_asks("evlast E 10\r\n");
	ck_assert_uint_eq(fake_waiting(&fake), 25);
	assert_bytes(key_of(0), "E::2015021916");
	assert_bytes(key_of(24), "E::2015022016");
	for (next = 0; next < 23;)
		fake_result(&fake, next++, &miss);
	count_is(100);
	count_is(9);
	assert_bytes(key_of(25), "E::2015022016::9");
	assert_bytes(key_of(33), "E::2015022016::1");
	assert_bytes(key_of(34), "E::2015022015::100");
	for (; next < fake.count; next++)
		fake_result(&fake, next, next == 26 || next == 27 || next == 30 ? &miss : &hit);
	ck_assert_uint_lt(fake.count, 60);
	client_is_told(
		"VALUE E::2015022016::9 0 1\r\nx\r\nVALUE E::2015022016::6 0 1\r\nx\r\n"
		"VALUE E::2015022016::5 0 1\r\nx\r\nVALUE E::2015022016::3 0 1\r\nx\r\n"
		"VALUE E::2015022016::2 0 1\r\nx\r\nVALUE E::2015022016::1 0 1\r\nx\r\n"
		"VALUE E::2015022015::100 0 1\r\nx\r\nVALUE E::2015022015::99 0 1\r\nx\r\n"
		"VALUE E::2015022015::98 0 1\r\nx\r\nVALUE E::2015022015::97 0 1\r\nx\r\nEND\r\n");
}

/*
 * The newest is returned first even if its reply arrives last; surplus ones are not returned,
 * whenever they arrive.
 */
TEST(newest_comes_late)
{
	static const struct event_rule rules[] = {
		{ .prefix = { "", 0 },
			.bucket = GRANULARITY_HOUR,
			.separator = { "::", 2 },
			.lookback = 1 },
	};

	fake.rules = (struct rules){ .events = rules, .event_count = 1 };
	client_asks("evlast E 2 2015022010\r\n");
	server_is_asked("mg E::2015022009 k f v\r\nmg E::2015022010 k f v\r\n");
	fake_result(&fake, 0, &miss);
	next = 1;
	count_is(4);
	ck_assert_uint_eq(fake.count, 6);
	fake_result(&fake, 5, &hit);
	fake_result(&fake, 4, &hit);
	fake_result(&fake, 3, &hit);
	client_hears_nothing();
	fake_result(&fake, 2, &hit);
	client_is_told(
		"VALUE E::2015022010::4 0 1\r\nx\r\nVALUE E::2015022010::3 0 1\r\nx\r\nEND\r\n");
}

/* The counters of all types are read together, then the events of one type after the other. */
TEST(newest_of_several_types)
{
	static const struct event_rule rules[] = {
		{ .prefix = { "", 0 },
			.bucket = GRANULARITY_HOUR,
			.separator = { "::", 2 },
			.lookback = 1 },
	};

	fake.rules = (struct rules){ .events = rules, .event_count = 1 };
	client_asks("evlast E 1 2015022010 F G H\r\n");
	ck_assert_uint_eq(fake.count, 8);
	for (next = 0; next < 8;)
		count_is(next == 1 ? 2 : next == 6 ? 1 : 0);
	ck_assert_uint_eq(fake.count, 10);
	assert_bytes(key_of(8), "E::2015022010::2");
	all_are(&hit);
	ck_assert_uint_eq(fake.count, 11);
	assert_bytes(key_of(10), "H::2015022009::1");
	client_is_told(
		"VALUE E::2015022010::2 0 1\r\nx\r\nVALUE H::2015022009::1 0 1\r\nx\r\nEND\r\n");
}

/*
 * Counters that announce missing events cost at most some thousands of reads each, and the search
 * ends.
 */
TEST(counters_lie)
{
	static const struct event_rule far = { { "", 0 }, GRANULARITY_HOUR, 0, { "::", 2 }, 100,
		false, false, 1, 0 };

	client_asks("evlast E 10\r\n");
	for (int i = 0; i < 24; i++)
		count_is(i == 22 ? 7 : 0);
	count_is(1000000000);
	while (next < fake.count) {
		bool older = slice_starts(key_of(next), SLICE("E::2015022014::"));
		fake_result(&fake, next++, older ? &hit : &miss);
	}
	ck_assert_uint_ge(fake.count, 4096);
	ck_assert_uint_le(fake.count, 3 * 4096);
	ck_assert_ptr_nonnull(
		strstr(fake_told(&fake), "VALUE E::2015022014::1 0 1\r\nx\r\nEND\r\n"));

	fake.rules = (struct rules){ .events = &far, .event_count = 1 };
	client_asks("evlast E 10\r\n");
	for (int i = 0; i < 101; i++)
		count_is(UINT64_MAX);
	size_t before = fake.count;
	all_are(&miss);
	ck_assert_uint_ge(fake.count - before, 90000);
	ck_assert_uint_le(fake.count - before, 110000);
	client_is_told("END\r\n");

	client_asks("evrange E now\r\nevrange E now 1 1000001\r\n");
	count_is(UINT64_MAX);
	count_is(1000001);
	client_is_told("CLIENT_ERROR too many events\r\nCLIENT_ERROR too many events\r\n");
	client_asks("evrange E now -2\r\n");
	count_is(UINT64_MAX);
	assert_bytes(key_of(next), "E::2015022016::9223372036854775805");
	all_are(&miss);
	client_is_told("END\r\n");
}

/* Events before the failure are returned, none after it, and the error replaces END. */
TEST(server_fails)
{
	struct result down = { .status = RESULT_UNAVAILABLE };

	client_asks("evrange E now\r\n");
	fake_result(&fake, next++, &down);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("evrange E now\r\n");
	count_is(4000);
	fake_result(&fake, 4, &hit);
	fake_result(&fake, 2, &hit);
	fake_result(&fake, 3, &down);
	next = 5;
	all_are(&hit);
	ck_assert_uint_lt(fake.count, 3000);
	client_is_told("VALUE E::2015022016::1 0 1\r\nx\r\nSERVER_ERROR upstream mc:11211 "
		       "unavailable\r\n");

	client_asks("evlast E 3\r\n");
	for (int i = 0; i < 24; i++)
		fake_result(&fake, next++, &miss);
	count_is(4);
	fake_result(&fake, next++, &down);
	all_are(&hit);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("evlast E 3\r\n");
	fake_result(&fake, next++, &down);
	all_are(&miss);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
}

/*
 * A reader sees its client's own events: they are sent before the counter that includes them is
 * read.
 */
TEST(behind_ones_own_event)
{
	client_asks("evadd E 0 0 1\r\nx\r\nevadd E 0 0 1\r\ny\r\nevrange E now -2\r\n");
	serves("incr E::2015022016 1\r\n", "8\r\n");
	serves("set E::2015022016::8 0 0 1\r\nx\r\nincr E::2015022016 1\r\n", "STORED\r\n9\r\n");
	serves("set E::2015022016::9 0 0 1\r\ny\r\n" COUNTER,
		"STORED\r\nVA 1 kE::2015022016 f0\r\n9\r\n");
	client_is_told("EVENT E::2015022016::8\r\nEVENT E::2015022016::9\r\n");
	serves(EVENT(8) EVENT(9), "VA 1 kE::2015022016::8 f0\r\nx\r\nEN\r\n");
	client_is_told("VALUE E::2015022016::8 0 1\r\nx\r\nEND\r\n");
}

static bool has_room;

static bool room(const struct task *task)
{
	(void)task;
	return has_room;
}

/*
 * For a client that does not read, no more than the first ones are requested; when it reads, the
 * rest follows.
 */
TEST(slow_client)
{
	struct task *task;
	size_t first;

	fake.host.room = room;
	has_room = false;
	client_asks("evrange E now\r\n");
	count_is(100000);
	all_are(&hit);
	first = fake.count;
	ck_assert_uint_eq(first, 17);
	has_room = true;
	task = STAILQ_FIRST(&fake.tasks);
	task->resume(task);
	ck_assert_uint_gt(fake.count, first);
	while (next < fake.count) {
		ck_assert_uint_le(fake.count - next, FAN_RING);
		fake_result(&fake, next++, &hit);
	}
	ck_assert_uint_eq(fake.count, 100001);
	ck_assert_ptr_nonnull(
		strstr(fake_told(&fake), "VALUE E::2015022016::100000 0 1\r\nx\r\nEND\r\n"));
}

/* One answer that is late holds up a bounded number of others. */
TEST(slow_server)
{
	struct result large = { .status = RESULT_HIT };
	char *value = calloc(1, 100000);

	large.value = slice_of(value, 100000);
	client_asks("evrange E now\r\n");
	count_is(100000);
	size_t late = next++;
	all_are(&hit);
	ck_assert_uint_le(fake.count, FAN_RING + 1);
	fake_result(&fake, late, &hit);
	ck_assert_uint_gt(fake.count, next);
	all_are(&miss);
	(void)fake_told(&fake);
	/* Large ones hold up fewer. */
	client_asks("evrange E now\r\n");
	late = next + 1;
	count_is(100000);
	next++;
	size_t before = fake.count;
	all_are(&large);
	ck_assert_uint_lt(fake.count - before, 100);
	fake_result(&fake, late, &large);
	all_are(&miss);
	(void)fake_told(&fake);
	free(value);
}

/* The client disconnects: nothing more is requested, and pending calls are awaited. */
TEST(abandoned)
{
	for (int counted = 0; counted < 2; counted++) {
		struct task *task;
		size_t asked;

		client_asks("evrange E now\r\n");
		task = STAILQ_FIRST(&fake.tasks);
		fake.account.gone = true;
		if (counted) {
			fake.account.gone = false;
			count_is(100000);
			asked = fake.count;
			fake.account.gone = true;
			task->resume(task);
			all_are(&hit);
			ck_assert_uint_eq(fake.count, asked);
		} else {
			count_is(100000);
			ck_assert_uint_eq(fake.count, next);
		}
		ck_assert(STAILQ_EMPTY(&fake.tasks));
	}
}

/*
 * The memory of a task is reported: for the counters from the beginning to the end, and for the
 * events once they are requested.
 */
TEST(memory)
{
	struct result down = { .status = RESULT_UNAVAILABLE };

	for (int fails = 0; fails < 2; fails++) {
		size_t used;

		client_asks("evrange E 20150220\r\n");
		used = fake_used(&fake);
		ck_assert_uint_ge(used, 24 * (sizeof(struct waiter) + 13));
		for (int i = 0; i < 23; i++)
			count_is(0);
		ck_assert_uint_eq(fake_used(&fake), used);
		count_is(1000);
		ck_assert_uint_ge(fake_used(&fake),
			used + 1000 * (sizeof(struct fan_part) + sizeof(struct waiter) + 16));
		used = fake_used(&fake);
		while (next < fake.count - 1)
			fake_result(&fake, next++, &miss);
		ck_assert_uint_ge(fake_used(&fake), used);
		fake_result(&fake, next++, fails ? &down : &miss);
		ck_assert_uint_eq(fake_used(&fake), 0);
		client_is_told(
			fails ? "SERVER_ERROR upstream mc:11211 unavailable\r\n" : "END\r\n");
	}
	/* It fails before there are events. */
	client_asks("evlast E 5\r\n");
	ck_assert_uint_gt(fake_used(&fake), 0);
	fake_result(&fake, next++, &down);
	all_are(&miss);
	ck_assert_uint_eq(fake_used(&fake), 0);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
}
