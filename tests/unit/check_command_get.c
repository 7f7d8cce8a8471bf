
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

/* However many answers arrive at once, a slice requests few more keys. */
LOOP_TEST(asks_in_slices, 4)
{
	static const char *const verbs[] = { "get", "gat 0", "smembers", "gets" };
	enum { KEYS = 500, STEPS = 320, ASKED = 11 };
	struct buf line = BUF_EMPTY;
	size_t told = 1;

	buf_printf(&line, "%s", verbs[_i]);
	for (int i = 0; i < KEYS; i++)
		buf_printf(&line, " key-%d", i);
	BUF_ADD(&line, "\r\n\0");
	fake_has_time(&fake);
	fake.slice = STEPS;
	client_asks(buf_slice(&line).p);
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
	buf_free(&line);
}
