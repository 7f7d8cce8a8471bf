
#include "conversations.h"

/* Servers reply in any order; the client receives its keys in the order of its request. */
TEST(servers_out_of_order)
{
	struct result hit = { .status = RESULT_HIT, .value = SLICE("x") },
		      miss = { .status = RESULT_MISS };

	client_asks("get a b c d\r\nget e\r\n");
	fake_result(&fake, 4, &hit);
	fake_result(&fake, 3, &hit);
	fake_result(&fake, 1, &hit);
	client_hears_nothing();
	fake_result(&fake, 0, &miss);
	client_is_told("VALUE b 0 1\r\nx\r\n");
	fake_result(&fake, 2, &hit);
	client_is_told(
		"VALUE c 0 1\r\nx\r\nVALUE d 0 1\r\nx\r\nEND\r\nVALUE e 0 1\r\nx\r\nEND\r\n");
}

/* A key whose server is down is no miss: the error replaces END. */
TEST(failures)
{
	struct result down = { .status = RESULT_UNAVAILABLE };

	client_asks("get a b c\r\n");
	fake_result(&fake, 0, &down);
	server_answers("VA 1 kb f0\r\nx\r\n");
	fake_result(&fake, 2, &down);
	client_is_told("VALUE b 0 1\r\nx\r\nSERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("get a b\r\n");
	fake_result(&fake, 3, &down);
	relays("EN\r\n", "SERVER_ERROR upstream mc:11211 unavailable\r\n");
	client_asks("get a b\r\n");
	fake_fail(&fake, RESULT_TIMED_OUT);
	fails(RESULT_UNAVAILABLE, "SERVER_ERROR upstream mc:11211 timed out, outcome unknown\r\n");
	exchanges("get a\r\n", "SERVER_ERROR out of memory\r\n", "SERVER_ERROR out of memory\r\n");
}

/* More keys than are requested at a time: in the end all are requested, each once, in order. */
TEST(very_many_keys)
{
	struct buf text = BUF_EMPTY, expected = BUF_EMPTY;
	char answer[64];

	BUF_ADD(&text, "get");
	for (int i = 0; i < 900; i++) {
		buf_printf(&text, " k%d", i);
		if (i % 3)
			buf_printf(&expected, "VALUE k%d 0 1\r\nx\r\n", i);
	}
	BUF_ADD(&text, "\r\n\0");
	BUF_ADD(&expected, "END\r\n\0");
	client_asks(buf_slice(&text).p);
	for (int i = 0; i < 900; i++) {
		if (i % 3)
			snprintf(answer, sizeof(answer), "VA 1 kk%d f0\r\nx\r\n", i);
		else
			snprintf(answer, sizeof(answer), "EN\r\n");
		server_answers(answer);
	}
	client_is_told(buf_slice(&expected).p);
	ck_assert_uint_eq(fake.count, 900);
	buf_free(&text);
	buf_free(&expected);
}

/* A failure replaces END: an incomplete reply must not look complete. */
TEST(members_of_some)
{
	client_asks("smembers a b c\r\n");
	server_answers(FOUND("a", 3, "+x "));
	fake_fail(&fake, RESULT_UNAVAILABLE);
	server_answers(FOUND("c", 3, "+z "));
	client_is_told("VALUE a 0 1\r\nx\r\nVALUE c 0 1\r\nz\r\nSERVER_ERROR upstream mc:11211 "
		       "unavailable\r\n");
	client_asks("smembers a b\r\n");
	server_answers(FOUND("a", 3, "+x ") FOUND("b", 3, "foo"));
	client_is_told("VALUE a 0 1\r\nx\r\nCLIENT_ERROR value is not a collection\r\n");
}

/* Each request has other keys. */
static void ask_keys(const char *verb, size_t keys)
{
	static int times;
	struct buf line = BUF_EMPTY;

	buf_printf(&line, "%s", verb);
	for (size_t i = 0; i < keys; i++)
		buf_printf(&line, " key-%d-%zu", times, i);
	BUF_ADD(&line, "\r\n\0");
	times++;
	client_asks(buf_slice(&line).p);
	buf_free(&line);
}

/* However many answers arrive at once, a slice requests few more keys. */
LOOP_TEST(asks_in_slices, 4)
{
	static const char *const verbs[] = { "get", "gat 0", "smembers", "gets" };
	enum { KEYS = 500, STEPS = 320, ASKED = 11 };
	size_t told = 1;

	fake_has_time(&fake);
	fake.slice = STEPS;
	ask_keys(verbs[_i], KEYS);
	while (told || fake_waiting(&fake)) {
		size_t before = fake.count;
		while (fake_waiting(&fake) && fake_oldest(&fake) < before)
			fake_result(&fake, fake_oldest(&fake),
				&(struct result){ .status = RESULT_MISS });
		ck_assert_uint_le(fake.count - before, ASKED);
		before = fake.count;
		told = fake_pass(&fake, 0);
		ck_assert_uint_le(fake.count - before, ASKED);
	}
	ck_assert_uint_eq(fake.count, KEYS);
	client_is_told("END\r\n");
}

/* Starts as many requests, and answers all calls. Returns the most calls that were in flight. */
static size_t most_in_flight(
	const char *verb, size_t requests, size_t keys, enum result_status status)
{
	const struct result r = { .status = status, .value = SLICE("x") };
	size_t most = 0;

	for (size_t i = 0; i < requests; i++)
		ask_keys(verb, keys);
	for (; fake_waiting(&fake); fake_result(&fake, fake_oldest(&fake), &r))
		most = fake_waiting(&fake) > most ? fake_waiting(&fake) : most;
	ck_assert_uint_eq(fake.host.fans, 0);
	(void)fake_told(&fake);
	return most;
}

/* A call of another client waits for all parts in flight, however many requests have many keys. */
LOOP_TEST(fans_share_the_parts_in_flight, 4)
{
	static const struct {
		const char *verb;
		enum result_status status;
	} fans[] = { { "get", RESULT_HIT }, { "gat 0", RESULT_HIT }, { "gets", RESULT_MISS },
		{ "smembers", RESULT_MISS } };
	enum { REQUESTS = 25, KEYS = 500, MOST = 1024, EACH = MOST / REQUESTS };
	size_t most = most_in_flight(fans[_i].verb, REQUESTS, KEYS, fans[_i].status);

	ck_assert_uint_le(most, MOST);
	ck_assert_uint_ge(most, (REQUESTS - 1) * EACH);
	/* One by itself may have all of them, or half as many if it finds nothing. */
	most = most_in_flight(fans[_i].verb, 1, 2 * KEYS, fans[_i].status);
	ck_assert_uint_le(most, MOST);
	ck_assert_uint_ge(most, fans[_i].status == RESULT_HIT ? 3 * MOST / 4 : MOST / 2);
}

/* The second stage of such a request is requested at once. */
TEST(fans_of_few_keys_share_nothing)
{
	enum { REQUESTS = 40, KEYS = 128, FIRST = ORDER_KEYS_FIRST };
	const struct result miss = { .status = RESULT_MISS };

	for (size_t i = 0; i < REQUESTS; i++)
		ask_keys("get", KEYS);
	for (size_t i = 0; i < REQUESTS * FIRST; i++)
		fake_result(&fake, i, &miss);
	ck_assert_uint_eq(fake_waiting(&fake), REQUESTS * (KEYS - FIRST));
	ck_assert_uint_eq(most_in_flight("get", 0, 0, RESULT_MISS), REQUESTS * (KEYS - FIRST));
}
