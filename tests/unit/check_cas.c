/* A write that keeps the time to live: stored, lost or failed, and what is done about the time behind it. */
#include "collection/rewrite/cas.h"
#include "conversations.h"

enum { DAY = 24 * 60 * 60, NOW = 1424450096 };

static struct cas cas;
static struct result got; /* without its slices */
static size_t ended;

static void done(struct cas *c, const struct result *r)
{
	ck_assert_ptr_eq(c, &cas);
	got = *r;
	ended++;
}

/* Replaces an item that had so many seconds left when it was read. */
static void replace(int64_t ttl, int64_t exptime)
{
	const struct result read = { .status = RESULT_HIT, .ttl = ttl, .flags = 7, .cas = 9, .connection = 3 };

	ended = 0;
	cas_replace(&cas, &fake.host.env, SLICE("k"), SLICE("value"), &read, exptime, done);
	ck_assert_uint_eq(ended, 0);
}

static void ends_with(enum result_status status, int64_t ttl)
{
	ck_assert_uint_eq(ended, 1);
	ck_assert_int_eq(got.status, status);
	ck_assert_int_eq(cas.ttl, ttl);
	server_hears_nothing();
}

#define LOOK_AT_TTL "mg k k f t\r\n"
#define TTL(seconds) "HD kk f7 t" #seconds "\r\n"
#define CAS(exptime) "connection 3: cas k 7 " #exptime " 5 9\r\nvalue\r\n"
#define STORED "STORED\r\n"

START_TEST(is_stored)
{
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(100) STORED);
	ends_with(RESULT_DONE, 100);
	replace(TTL_NEVER, 0);
	server_is_asked(LOOK_AT_TTL CAS(0));
	server_answers(TTL(-1) STORED);
	ends_with(RESULT_DONE, TTL_NEVER);
}
END_TEST

/* After a lost CAS nothing is touched: the item is the other writer's. */
START_TEST(is_lost)
{
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(500) "EXISTS\r\n");
	ends_with(RESULT_EXISTS, 100);
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers("EN\r\nNOT_FOUND\r\n");
	ends_with(RESULT_MISS, 100);
}
END_TEST

START_TEST(fails)
{
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(500));
	fake_fail(&fake, RESULT_TIMED_OUT);
	ends_with(RESULT_TIMED_OUT, 100);
	ck_assert_str_eq(got.server, "mc:11211");
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(500) "SERVER_ERROR out of memory storing object\r\n");
	ends_with(RESULT_REFUSED, 100);
}
END_TEST

/* An item that is new had no time that anybody could have changed. */
START_TEST(without_a_look)
{
	struct call add = { .verb = CALL_ADD, .key = SLICE("k"), .value = SLICE("value"), .exptime = 60 };

	/* The look of an earlier write must not count. */
	cas.looked = (struct result){ .status = RESULT_HIT, .ttl = 500 };
	ended = 0;
	cas_send(&cas, &fake.host.env, add, 60, false, done);
	server_is_asked("add k 0 60 5\r\nvalue\r\n");
	server_answers(STORED);
	ends_with(RESULT_DONE, 60);
	ended = 0;
	cas_send(&cas, &fake.host.env, add, 60, false, done);
	server_is_asked("add k 0 60 5\r\nvalue\r\n");
	server_answers("NOT_STORED\r\n");
	ends_with(RESULT_NOT_STORED, 60);
}
END_TEST

START_TEST(a_touch_is_kept)
{
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(500) STORED);
	server_is_asked("touch k 500\r\n");
	ck_assert_uint_eq(ended, 0);
	server_answers("TOUCHED\r\n");
	ends_with(RESULT_DONE, 500);
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(-1) STORED);
	server_is_asked("touch k 0\r\n");
	server_answers("TOUCHED\r\n");
	ends_with(RESULT_DONE, TTL_NEVER);
	/* A date: 40 days. */
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(3456000) STORED);
	server_is_asked("touch k 1427906096\r\n");
	server_answers("TOUCHED\r\n");
	ends_with(RESULT_DONE, 40 * DAY);
}
END_TEST

/* The write is done, whatever becomes of the touch behind it. */
START_TEST(a_touch_that_fails)
{
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(500) STORED);
	server_is_asked("touch k 500\r\n");
	fake_fail(&fake, RESULT_LOST);
	ends_with(RESULT_DONE, 500);
	ck_assert_str_eq(got.server, "mc:11211");
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(TTL(500) STORED);
	server_is_asked("touch k 500\r\n");
	server_answers("NOT_FOUND\r\n");
	ends_with(RESULT_DONE, 500);
}
END_TEST

/* A look that shows no time to keep, or shows nothing. */
START_TEST(a_look_that_says_nothing)
{
	static const char *const looks[] = { "EN\r\n", "HD kk f7 t0\r\n", "SERVER_ERROR out of memory\r\n" };

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		replace(100, 100);
		server_is_asked(LOOK_AT_TTL CAS(100));
		server_answers(looks[i]);
		server_answers(STORED);
		ends_with(RESULT_DONE, 100);
	}
}
END_TEST

/* A date is by memcached's clock, which is not ours: behind the write the time is looked at and, if it is off a little, put right. */
START_TEST(a_date)
{
	static const struct {
		const char *found, *touch; /* NULL for none */
	} given[] = {
		{ "HD kk f7 t3456000\r\n", NULL },
		{ "HD kk f7 t3455999\r\n", "touch k 1427906097\r\n" },
		{ "HD kk f7 t3456001\r\n", "touch k 1427906095\r\n" },
		{ "HD kk f7 t3455998\r\n", "touch k 1427906098\r\n" },
		{ "HD kk f7 t3456002\r\n", "touch k 1427906094\r\n" },
		/* Somebody else's touch. */
		{ "HD kk f7 t3455997\r\n", NULL },
		{ "HD kk f7 t3456003\r\n", NULL },
		{ "HD kk f7 t100\r\n", NULL },
		{ "HD kk f7 t-1\r\n", NULL },
		{ "EN\r\n", NULL },
		{ "SERVER_ERROR out of memory\r\n", NULL },
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		replace(40 * DAY, NOW + 40 * DAY);
		server_is_asked(LOOK_AT_TTL CAS(1427906096));
		server_answers(TTL(3456000) STORED);
		server_is_asked(LOOK_AT_TTL);
		server_answers(given[i].found);
		if (given[i].touch) {
			ck_assert_uint_eq(ended, 0);
			server_is_asked(given[i].touch);
			server_answers("TOUCHED\r\n");
		}
		ends_with(RESULT_DONE, 40 * DAY);
	}
}
END_TEST

/* It is known that the item is touched: that time is given, and no other. */
START_TEST(a_touch_of_a_date)
{
	replace(40 * DAY, NOW + 40 * DAY);
	server_is_asked(LOOK_AT_TTL CAS(1427906096));
	server_answers(TTL(50) STORED);
	server_is_asked("touch k 50\r\n");
	server_answers("TOUCHED\r\n");
	ends_with(RESULT_DONE, 50);
}
END_TEST

CONVERSATIONS(cas, is_stored, is_lost, fails, without_a_look, a_touch_is_kept, a_touch_that_fails,
	a_look_that_says_nothing, a_date, a_touch_of_a_date)
