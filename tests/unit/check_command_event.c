
#include "command/order.h"
#include "conversations.h"

TEST(storing_fails)
{
	client_asks("evadd E 0 0 1\r\nx\r\n");
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("evadd E 0 0 1\r\nx\r\n");
	server_answers("1\r\n");
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	client_asks("evadd E 0 0 1\r\nx\r\n");
	relays("2\r\nSERVER_ERROR object too large for cache\r\n",
		"SERVER_ERROR object too large for cache\r\n");
	/* No server should reply this to a `set`; one that does must not crash us. */
	client_asks("evadd E 0 0 1\r\nx\r\n");
	server_answers("3\r\nNOT_STORED\r\n");
	ck_assert_ptr_null(strstr(fake_told(&fake), "EVENT"));
}

/* memcached pads a counter that has become shorter. */
TEST(reading)
{
	exchanges("evcount E\r\n", "VA 3 kE::2015022016 f0\r\n9  \r\n",
		"COUNT 2015022016 9\r\nEND\r\n");
}

static const struct result miss = { .status = RESULT_MISS };

/* Each type has the buckets of its rule; all counters are read together. */
TEST(several_types)
{
	static const struct event_rule rules[] = {
		{ .prefix = { "", 0 }, .separator = { "::", 2 }, .bucket = GRANULARITY_HOUR },
		{ .prefix = { "D", 1 }, .separator = { "/", 1 }, .bucket = GRANULARITY_DAY },
	};

	fake.rules = (struct rules){ .events = rules, .event_count = 2 };
	client_asks("evcount E -1 now D F\r\n");
	server_is_asked("mg E::2015022015 k f v\r\nmg E::2015022016 k f v\r\n"
			"mg D/20150219 k f v\r\nmg D/20150220 k f v\r\n"
			"mg F::2015022015 k f v\r\nmg F::2015022016 k f v\r\n");
	/* The last one is answered first. */
	for (size_t i = fake.count; i-- > 0;) {
		char value = "012034"[i];
		const struct result found = { .status = RESULT_HIT, .value = slice_of(&value, 1) };
		fake_result(&fake, i, value == '0' ? &miss : &found);
	}
	client_is_told("COUNT E 2015022015 0\r\nCOUNT E 2015022016 1\r\n"
		       "COUNT D 20150219 2\r\nCOUNT D 20150220 0\r\n"
		       "COUNT F 2015022015 3\r\nCOUNT F 2015022016 4\r\nEND\r\n");
}

TEST(reading_fails)
{
	client_asks("evcount E -1 now\r\n");
	fake_fail(&fake, RESULT_UNAVAILABLE);
	relays("VA 1 kE::2015022016 f0\r\n1\r\n", "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	exchanges("evcount E\r\n", "VA 1 kE::2015022016 f0\r\nx\r\n",
		"CLIENT_ERROR value is not a counter\r\n");
	exchanges("evcount E\r\n", "VA 0 kE::2015022016 f0\r\n\r\n",
		"CLIENT_ERROR value is not a counter\r\n");
}

/* The 8760 hours of a year: the keys are 13 bytes long. */
static void counts_a_year(void)
{
	client_asks("evcount E 2014\r\n");
	ck_assert_uint_ge(fake_used(&fake), 8760 * sizeof(uint64_t));
}

/* Answers all calls but the last one with misses. Returns how many there were. */
static size_t all_but_one_miss(void)
{
	size_t n = 0;

	for (; fake_waiting(&fake) > 1; n++)
		fake_result(&fake, fake_oldest(&fake), &(struct result){ .status = RESULT_MISS });
	return n;
}

/* The memory of a task for its counters is reported until the last of them was received. */
TEST(memory_of_many)
{
	size_t used;

	counts_a_year();
	used = fake_used(&fake);
	ck_assert_uint_eq(all_but_one_miss(), 8760 - 1);
	ck_assert_uint_eq(fake_used(&fake), used);
	server_answers("EN\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
	ck_assert_ptr_nonnull(strstr(fake_told(&fake), "COUNT 2014123123 0\r\nEND\r\n"));
	/* Half-way a server fails: the other calls are still waited for. */
	counts_a_year();
	for (int i = 0; i < 4380; i++)
		fake_result(&fake, fake_oldest(&fake), &(struct result){ .status = RESULT_MISS });
	fake_fail(&fake, RESULT_UNAVAILABLE);
	ck_assert_uint_lt(all_but_one_miss(), ORDER_EVENT_CALLS);
	ck_assert_uint_eq(fake_used(&fake), used);
	server_answers("EN\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
	client_is_told("SERVER_ERROR upstream mc:11211 unavailable\r\n");
}

/*
 * Many clients may begin such requests in one turn. When the slice is over, each makes only some of
 * its calls at once.
 */
TEST(few_calls_when_the_slice_is_over)
{
	enum { SOME = 16 };

	fake_has_time(&fake);
	counts_a_year();
	ck_assert_uint_eq(fake_waiting(&fake), SOME);
	for (int i = 0; i < 100; i++) {
		fake_result(&fake, fake_oldest(&fake), &miss);
		ck_assert_uint_eq(fake_waiting(&fake), SOME);
	}
	/* A later slice has time for many, although nothing is answered meanwhile. */
	ck_assert_uint_eq(fake_pass(&fake, 1), 1);
	ck_assert_uint_eq(fake_waiting(&fake), SOME);
	fake.host.env.grain = SIZE_MAX;
	ck_assert_uint_eq(fake_pass(&fake, 1), 1);
	ck_assert_uint_gt(fake_waiting(&fake), 10 * SOME);
	ck_assert_uint_eq(all_but_one_miss(), 8760 - 100 - 1);
	server_answers("EN\r\n");
	ck_assert_ptr_nonnull(strstr(fake_told(&fake), "COUNT 2014123123 0\r\nEND\r\n"));
}

/* All calls are answered while more are to be tried: the reply is sent after that. */
TEST(all_are_answered_before_more_are_tried)
{
	fake_has_time(&fake);
	counts_a_year();
	fake.host.env.grain = SIZE_MAX;
	ck_assert_uint_eq(all_but_one_miss(), 8760 - 1);
	server_answers("EN\r\n");
	ck_assert_str_eq(fake_told(&fake), "");
	ck_assert_uint_eq(fake_pass(&fake, 1), 1);
	ck_assert_ptr_nonnull(strstr(fake_told(&fake), "COUNT 2014123123 0\r\nEND\r\n"));
	ck_assert_uint_eq(fake_used(&fake), 0);
}

/* The client disconnects: no more counters are requested. */
TEST(abandoned)
{
	size_t asked;

	counts_a_year();
	asked = fake.count;
	fake.account.gone = true;
	(void)all_but_one_miss();
	server_answers("EN\r\n");
	ck_assert_uint_eq(fake.count, asked);
	ck_assert_uint_eq(fake_used(&fake), 0);
	ck_assert(STAILQ_EMPTY(&fake.tasks));
}

/* The longest type has keys that memcached accepts; one byte more is refused. */
TEST(longest_type)
{
	char line[300];

	snprintf(line, sizeof(line), "evadd %0214d 0 0 1\r\nx\r\n", 0);
	client_asks(line);
	server_answers("18446744073709551615\r\n");
	ck_assert_uint_le(fake.calls[1].call.key.n, 250);
	server_answers("STORED\r\n");
	(void)fake_told(&fake);
	snprintf(line, sizeof(line), "evincr %0215d\r\n", 0);
	client_asks(line);
	client_is_told("CLIENT_ERROR key too long\r\n");
}

/* --- evlimit --- */

/* The count of the current bucket decides; the earlier buckets are read meanwhile. */
TEST(limit_of_one_bucket)
{
	talks("evlimit E 3 3600\r\n", "incr E::2015022016 1\r\n", "3\r\n", "3\r\n");
}

/* All are requested together. */
static void asks_three_hours(uint64_t limit)
{
	char line[100];

	snprintf(line, sizeof(line), "evlimit E %llu 10800\r\n", (unsigned long long)limit);
	client_asks(line);
	server_is_asked("incr E::2015022016 1\r\n"
			"mg E::2015022014 k f v\r\n"
			"mg E::2015022015 k f v\r\n");
}

TEST(limit_of_several)
{
	asks_three_hours(42);
	relays("2\r\nVA 2 kE::2015022014 f0\r\n40\r\nEN\r\n", "42\r\n");
	asks_three_hours(42);
	relays("3\r\nVA 2 kE::2015022014 f0\r\n40\r\nEN\r\n", "0\r\n");
	/* A sum beyond all numbers is no small one. */
	asks_three_hours(UINT64_MAX - 1);
	relays("3\r\nVA 20 kE::2015022014 f0\r\n18446744073709551615\r\nEN\r\n", "0\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
}

TEST(limit_fails)
{
	asks_three_hours(42);
	fake_fail(&fake, RESULT_UNAVAILABLE);
	relays("EN\r\nEN\r\n", "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	asks_three_hours(42);
	server_answers("1\r\n");
	fake_fail(&fake, RESULT_TIMED_OUT);
	relays("EN\r\n", "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	asks_three_hours(42);
	relays("1\r\nVA 1 kE::2015022014 f0\r\nx\r\nEN\r\n",
		"CLIENT_ERROR value is not a counter\r\n");
	client_asks("evlimit E 1 60\r\n");
	fails(RESULT_TIMED_OUT, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
}

/* Events that are counted together have numbers of their own: two are let through. */
TEST(limit_of_a_batch)
{
	client_asks("evlimit E 1 60\r\nevlimit E 3 60\r\nevlimit E 3 60\r\nevlimit E 3 60\r\n");
	serves("incr E::2015022016 1\r\n", "1\r\n");
	serves("incr E::2015022016 3\r\n", "4\r\n");
	client_is_told("1\r\n2\r\n3\r\n0\r\n");
}

/* --- the types of a bucket --- */

static const struct event_rule with_types = { .prefix = { "E", 1 },
	.separator = { "::", 2 },
	.bucket = GRANULARITY_HOUR,
	.ttl = 100,
	.types = true };
static const struct event_rule long_life = { .prefix = { "", 0 },
	.separator = { "::", 2 },
	.bucket = GRANULARITY_HOUR,
	.ttl = 2592000,
	.types = true };

static void keeps_types(const struct event_rule *rule)
{
	fake.rules = (struct rules){ .events = rule, .event_count = 1 };
}

/* The first event adds the type, whether or not that succeeds; those after it do not. */
TEST(first_event_adds_its_type)
{
	keeps_types(&with_types);
	client_asks("evincr Ex\r\n");
	server_answers("NOT_FOUND\r\n");
	server_answers("STORED\r\n");
	client_hears_nothing();
	assert_bytes(fake.calls[fake.count - 1].call.key, "E::2015022016::types");
	assert_bytes(fake.calls[fake.count - 1].call.value, "+Ex ");
	ck_assert_uint_gt(fake_used(&fake), 0);
	relays("STORED\r\n", "1\r\n");
	exchanges("evincr Ex\r\n", "2\r\n", "2\r\n");
	client_asks("evincr Ey\r\n");
	server_answers("1\r\n");
	fails(RESULT_UNAVAILABLE, "1\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
}

/* Returns whether an event that raises a counter of `count` to `number` adds its type. */
static bool adds(uint64_t number, uint64_t count)
{
	char line[100];
	size_t calls;

	snprintf(line, sizeof(line), "evincr Ex %llu\r\n", (unsigned long long)count);
	client_asks(line);
	snprintf(line, sizeof(line), "%llu\r\n", (unsigned long long)number);
	calls = fake.count;
	server_answers(line);
	if (fake.count > calls)
		server_answers("STORED\r\n");
	client_is_told(line);
	return fake.count > calls;
}

/* So that one addition that was lost is repeated. */
TEST(powers_of_sixteen_add_it_again)
{
	keeps_types(&with_types);
	ck_assert(adds(1, 1) && adds(7, 7) && !adds(0, 0));
	ck_assert(!adds(2, 1) && !adds(15, 1) && adds(16, 1) && !adds(17, 1));
	ck_assert(adds(300, 290) && !adds(300, 20) && adds(256, 1) && adds(4096, 1));
	ck_assert(adds(INT64_MAX, INT64_MAX) && !adds(UINT64_MAX, INT64_MAX) && !adds(5, 6));
}

/* evadd stores the event after its type; evlimit reads the earlier counters meanwhile. */
TEST(other_commands_add_types)
{
	keeps_types(&with_types);
	client_asks("evadd Ex 0 0 1\r\nx\r\n");
	server_answers("1\r\n");
	assert_bytes(fake.calls[fake.count - 1].call.value, "+Ex ");
	server_answers("STORED\r\n");
	assert_bytes(fake.calls[fake.count - 1].call.key, "Ex::2015022016::1");
	relays("STORED\r\n", "EVENT Ex::2015022016::1\r\n");
	keeps_types(&long_life);
	client_asks("evlimit x 5 7200\r\n");
	server_answers("1\r\n");
	server_answers("EN\r\n");
	client_hears_nothing();
	relays("STORED\r\n", "1\r\n");
}

/* --- evtop --- */

TEST(top_fails)
{
	keeps_types(&with_types);
	client_asks("evtop E 5 2\r\n");
	server_is_asked(FETCH("E::2015022015::types"));
	server_answers(FOUND("E::2015022015::types", 8, "+Ea +Eb "));
	server_is_asked(FETCH("E::2015022016::types"));
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("evtop E 5\r\n");
	server_answers(FOUND("E::2015022016::types", 8, "+Ea +Eb "));
	fake_fail(&fake, RESULT_UNAVAILABLE);
	relays("EN\r\n", "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("evtop E 5\r\n");
	relays(FOUND("E::2015022016::types", 4, "text"),
		"CLIENT_ERROR value is not a collection\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
}

/* A type is counted in each bucket, although only one of the sets has it. */
TEST(top_of_all_buckets)
{
	keeps_types(&with_types);
	client_asks("evtop E 2 2\r\n");
	server_answers(FOUND("E::2015022015::types", 12, "+Ea +Eb +Ed "));
	server_is_asked(FETCH("E::2015022015::types") FETCH("E::2015022016::types"));
	server_answers(FOUND("E::2015022016::types", 8, "+Ec +Ea "));
	server_is_asked("mg Ea::2015022015 k f v\r\nmg Ea::2015022016 k f v\r\n"
			"mg Eb::2015022015 k f v\r\nmg Eb::2015022016 k f v\r\n"
			"mg Ed::2015022015 k f v\r\nmg Ed::2015022016 k f v\r\n"
			"mg Ec::2015022015 k f v\r\nmg Ec::2015022016 k f v\r\n");
	relays("VA 1 kEa::2015022015 f0\r\n1\r\nVA 1 kEa::2015022016 f0\r\n2\r\n"
	       "VA 1 kEb::2015022015 f0\r\n2\r\nVA 1 kEb::2015022016 f0\r\n2\r\n"
	       "EN\r\nEN\r\n"
	       "VA 20 kEc::2015022015 f0\r\n18446744073709551615\r\n"
	       "VA 1 kEc::2015022016 f0\r\n5\r\n",
		"COUNT Ec 18446744073709551615\r\nCOUNT Eb 4\r\nEND\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
}

/* The heap of the most frequent types against a sort of all. */
TEST(top_of_many)
{
	enum { TYPES = 300 };
	struct buf types = BUF_EMPTY;
	char line[100], reply[100];
	const char *told;
	unsigned count, last = 99;

	keeps_types(&with_types);
	for (int i = 0; i < TYPES; i++)
		buf_printf(&types, "+E%03d ", i);
	for (unsigned n = 1; n <= 100; n += 33) {
		snprintf(line, sizeof(line), "evtop E %u\r\n", n);
		client_asks(line);
		fake_result(&fake, fake_oldest(&fake),
			&(struct result){ .status = RESULT_HIT,
				.value = buf_slice(&types),
				.cas = n,
				.ttl = TTL_UNKNOWN });
		for (int i = 0; i < TYPES; i++) {
			snprintf(reply, sizeof(reply), "%d", i * 7 % 50);
			fake_result(&fake, fake_oldest(&fake),
				&(struct result){ .status = RESULT_HIT,
					.value = slice_of(reply, strlen(reply)) });
		}
		told = fake_told(&fake);
		last = 49;
		for (unsigned i = 0; i < n; i++, last = count) {
			int type;
			ck_assert_int_eq(sscanf(told, "COUNT E%d %u", &type, &count), 2);
			ck_assert_uint_eq(count, type * 7 % 50);
			ck_assert_uint_eq(count, 49 - i / 6);
			ck_assert_uint_le(count, last);
			told = strchr(told, '\n') + 1;
		}
		ck_assert_str_eq(told, "END\r\n");
	}
	buf_free(&types);
}

TEST(too_many_types)
{
	struct buf types = BUF_EMPTY;

	keeps_types(&with_types);
	for (int i = 0; i < 2000; i++)
		buf_printf(&types, "+E%04d ", i);
	client_asks("evtop E 5 40\r\n");
	fake_result(&fake, fake_oldest(&fake),
		&(struct result){ .status = RESULT_HIT,
			.value = buf_slice(&types),
			.cas = 5,
			.ttl = TTL_UNKNOWN });
	client_is_told("CLIENT_ERROR too many types; use a longer prefix or fewer buckets\r\n");
	for (int i = 2000; i < 5001; i++)
		buf_printf(&types, "+E%04d ", i);
	client_asks("evtop E 5\r\n");
	fake_result(&fake, fake_oldest(&fake),
		&(struct result){ .status = RESULT_HIT,
			.value = buf_slice(&types),
			.cas = 6,
			.ttl = TTL_UNKNOWN });
	client_is_told("CLIENT_ERROR too many types; use a longer prefix or fewer buckets\r\n");
	ck_assert_uint_eq(fake_used(&fake), 0);
	buf_free(&types);
}
