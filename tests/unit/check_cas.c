/*
 * A write that keeps the time to live: stored, lost or failed, and the correction of the time
 * after it.
 */
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

/* Replaces an item that had this number of seconds left when it was read. */
static void replace(int64_t ttl, int64_t exptime)
{
	const struct result read = {
		.status = RESULT_HIT, .ttl = ttl, .flags = 7, .cas = 9, .connection = 3
	};

	ended = 0;
	cas_send(&cas, &fake.host.env,
		(struct call){ .verb = CALL_CAS,
			.key = SLICE("k"),
			.value = SLICE("value"),
			.flags = read.flags,
			.exptime = exptime,
			.number = read.cas,
			.connection = read.connection },
		SLICE("k"), ttl, done);
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

/* The same for an item with 100 seconds left, up to its CAS, and the server's reply. */
static void replaces(const char *answers)
{
	replace(100, 100);
	server_is_asked(LOOK_AT_TTL CAS(100));
	server_answers(answers);
}

TEST(is_stored)
{
	replaces(TTL(100) STORED);
	ends_with(RESULT_DONE, 100);
	replace(TTL_NEVER, 0);
	serves(LOOK_AT_TTL CAS(0), TTL(-1) STORED);
	ends_with(RESULT_DONE, TTL_NEVER);
}

/* After a lost CAS nothing is touched: the item is the other writer's. */
TEST(is_lost)
{
	replaces(TTL(500) "EXISTS\r\n");
	ends_with(RESULT_EXISTS, 100);
	replaces("EN\r\nNOT_FOUND\r\n");
	ends_with(RESULT_MISS, 100);
}

TEST(fails)
{
	replaces(TTL(500));
	fake_fail(&fake, RESULT_TIMED_OUT);
	ends_with(RESULT_TIMED_OUT, 100);
	ck_assert_str_eq(got.server, "mc:11211");
	replaces(TTL(500) "SERVER_ERROR out of memory storing object\r\n");
	ends_with(RESULT_REFUSED, 100);
}

/* A copy of an item that never ends needs neither a look nor a clock. */
TEST(without_a_look)
{
	struct call add = { .verb = CALL_ADD, .key = SLICE("k"), .value = SLICE("value") };

	/* The look of an earlier write must not count. */
	cas.looked = (struct result){ .status = RESULT_HIT, .ttl = 500 };
	ended = 0;
	cas_send(&cas, &fake.host.env, add, SLICE("o"), TTL_NEVER, done);
	serves("add k 0 0 5\r\nvalue\r\n", STORED);
	ends_with(RESULT_DONE, TTL_NEVER);
	ended = 0;
	cas_send(&cas, &fake.host.env, add, SLICE("o"), TTL_NEVER, done);
	serves("add k 0 0 5\r\nvalue\r\n", "NOT_STORED\r\n");
	ends_with(RESULT_NOT_STORED, TTL_NEVER);
}

/* The time from another item is a date by the clock of that item's server. */
TEST(a_copy)
{
	struct call add = {
		.verb = CALL_ADD, .key = SLICE("k"), .value = SLICE("value"), .exptime = 60
	};

	ended = 0;
	cas_send(&cas, &fake.host.env, add, SLICE("o"), 60, done);
	server_is_asked("mg o k f t\r\nstats \r\nmg o k f t\r\n");
	server_answers(
		"HD ko f7 t59\r\nSTAT pid 1\r\nSTAT time 2000000000\r\nEND\r\nHD ko f7 t59\r\n");
	serves("add k 0 2000000059 5\r\nvalue\r\n", STORED);
	ends_with(RESULT_DONE, 59);
	ended = 0;
	cas_send(&cas, &fake.host.env, add, SLICE("o"), 60, done);
	serves("mg o k f t\r\nstats \r\nmg o k f t\r\n",
		"EN\r\nSTAT time 2000000000\r\nEND\r\nEN\r\n");
	ends_with(RESULT_MISS, 60);
}

/* A call that cannot be sent is answered before those that were sent. */
TEST(refused_before_the_look)
{
	const struct result too_large = { .status = RESULT_TOO_LARGE, .server = "mc:11211" };

	replaces("");
	fake_result(&fake, fake_oldest(&fake) + 1, &too_large);
	ck_assert_uint_eq(ended, 0);
	server_answers(TTL(100));
	ends_with(RESULT_TOO_LARGE, 100);
}

#define TOUCH(exptime) LOOK_AT_TTL "touch k " #exptime "\r\n"
#define TOUCHED "TOUCHED\r\n"

TEST(a_touch_is_kept)
{
	replaces(TTL(500) STORED);
	server_is_asked(TOUCH(500));
	ck_assert_uint_eq(ended, 0);
	server_answers(TTL(100) TOUCHED);
	ends_with(RESULT_DONE, 500);
	replaces(TTL(-1) STORED);
	serves(TOUCH(0), TTL(99) TOUCHED);
	ends_with(RESULT_DONE, TTL_NEVER);
	/* A date: 40 days. The server's first reply does not contain its time. */
	replaces(TTL(3456000) STORED);
	serves("stats \r\n", "END\r\n");
	serves("stats \r\n", "STAT time 2000000000\r\nEND\r\n");
	serves(TOUCH(2003456000), TTL(100) TOUCHED);
	ends_with(RESULT_DONE, 40 * DAY);
}

/* Another touch is executed between the write and ours, which undoes it. */
TEST(a_second_touch_is_kept)
{
	replaces(TTL(500) STORED);
	serves(TOUCH(500), TTL(700) TOUCHED);
	ck_assert_uint_eq(ended, 0);
	serves(TOUCH(700), TTL(500) TOUCHED);
	ends_with(RESULT_DONE, 700);
	/* And a third one. */
	replaces(TTL(500) STORED);
	serves(TOUCH(500), TTL(-1) TOUCHED);
	serves(TOUCH(0), TTL(50) TOUCHED);
	serves(TOUCH(50), TTL(-1) TOUCHED);
	ends_with(RESULT_DONE, 50);
	/* One that sets almost the same time is a touch too, and so is the next one. */
	replaces(TTL(500) STORED);
	serves(TOUCH(500), TTL(501) TOUCHED);
	serves(TOUCH(501), TTL(900) TOUCHED);
	serves(TOUCH(900), TTL(501) TOUCHED);
	ends_with(RESULT_DONE, 900);
	/* But not the time of our write, which another rewrite set too. */
	replaces(TTL(500) STORED);
	serves(TOUCH(500), TTL(700) TOUCHED);
	serves(TOUCH(700), TTL(100) TOUCHED);
	ends_with(RESULT_DONE, 700);
	/* Nor the time of ours. */
	replaces(TTL(500) STORED);
	serves(TOUCH(500), TTL(500) TOUCHED);
	ends_with(RESULT_DONE, 500);
	/* It is a date. */
	replaces(TTL(500) STORED);
	serves(TOUCH(500), TTL(3456000) TOUCHED);
	serves("stats \r\n", "STAT time 2000000000\r\nEND\r\n");
	serves(TOUCH(2003456000), TTL(499) TOUCHED);
	ends_with(RESULT_DONE, 40 * DAY);
}

/* The seconds that pass are no touch. */
TEST(time_passes_before_a_touch)
{
	static const struct {
		unsigned seconds;
		int64_t found;
		bool is_a_touch;
	} given[] = { { 0, 100, false }, { 0, 99, false }, { 0, 98, true }, { 0, 101, true },
		{ 3, 97, false }, { 3, 96, false }, { 3, 95, true }, { 3, -1, true } };

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		char answer[64];
		replaces(TTL(500) STORED);
		server_is_asked(TOUCH(500));
		fake.host.env.now += given[i].seconds * 1000;
		snprintf(answer, sizeof(answer), "HD kk f7 t%lld\r\n" TOUCHED,
			(long long)given[i].found);
		server_answers(answer);
		ck_assert_uint_eq(ended, !given[i].is_a_touch);
		if (!given[i].is_a_touch)
			continue;
		ck_assert_ptr_nonnull(strstr(fake_calls(&fake), "touch k "));
		server_answers(TTL(500) TOUCHED);
		ends_with(RESULT_DONE, given[i].found);
	}
}

/* Others touch the item all the time. */
TEST(touches_without_end)
{
	size_t touches = 0;

	replaces(TTL(500) STORED);
	for (; !ended; touches++) {
		char answer[64];
		ck_assert_ptr_nonnull(strstr(fake_calls(&fake), "touch k "));
		snprintf(answer, sizeof(answer), "HD kk f7 t%zu\r\n" TOUCHED, 1000 + 100 * touches);
		server_answers(answer);
	}
	ck_assert_uint_eq(touches, 8);
	ck_assert_int_eq(got.status, RESULT_DONE);
	server_hears_nothing();
}

/* The write is done, whatever the result of the touch after it. */
TEST(a_touch_that_fails)
{
	replaces(TTL(500) STORED);
	server_is_asked(TOUCH(500));
	fake_fail(&fake, RESULT_LOST);
	fake_fail(&fake, RESULT_LOST);
	ends_with(RESULT_DONE, 500);
	ck_assert_str_eq(got.server, "mc:11211");
	replaces(TTL(500) STORED);
	serves(TOUCH(500), "EN\r\nNOT_FOUND\r\n");
	ends_with(RESULT_DONE, 500);
}

/* A look that shows no time to keep, or shows nothing. */
TEST(a_look_that_says_nothing)
{
	static const char *const looks[] = { "EN\r\n", "HD kk f7 t0\r\n",
		"SERVER_ERROR out of memory\r\n" };

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		replaces(looks[i]);
		server_answers(STORED);
		ends_with(RESULT_DONE, 100);
	}
}

#define CLOCK(seconds) "STAT time " #seconds "\r\nEND\r\n"

#define DATE_TOUCH(exptime) \
	LOOK_AT_TTL "stats \r\n" \
		    "touch k " #exptime "\r\n"

static void rewrite_a_date(void)
{
	replace(40 * DAY, NOW + 40 * DAY);
	server_is_asked(LOOK_AT_TTL "stats \r\n" LOOK_AT_TTL);
}

/* A date is by the server's clock, which is not ours. */
TEST(a_date)
{
	static const struct {
		const char *found, *touch; /* NULL for none */
	} given[] = {
		{ TTL(3456000) CLOCK(2000000000), NULL },
		{ TTL(3455990) CLOCK(2000000010), NULL },
		/* The clock went on between the two. */
		{ TTL(3455999) CLOCK(2000000002), NULL },
		{ TTL(3455999) CLOCK(2000000000), NULL },
		{ "EN\r\n" CLOCK(2000000000), NULL },
		{ "SERVER_ERROR out of memory\r\n" CLOCK(2000000000), NULL },
		/* The touch of another client. */
		{ TTL(3456001) CLOCK(2000000000), DATE_TOUCH(2003456001) },
		{ TTL(3455998) CLOCK(2000000000), DATE_TOUCH(2003455998) },
		{ TTL(50) CLOCK(2000000000), DATE_TOUCH(2000000050) },
		{ TTL(-1) CLOCK(2000000000), DATE_TOUCH(0) },
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		rewrite_a_date();
		server_answers(TTL(3456000) CLOCK(2000000000) TTL(3456000));
		serves(LOOK_AT_TTL "stats \r\n" CAS(2003456000), given[i].found);
		server_answers(STORED);
		if (given[i].touch) {
			ck_assert_uint_eq(ended, 0);
			serves(given[i].touch, TTL(3456000) CLOCK(2000000000) TOUCHED);
		}
		ck_assert_int_eq(got.status, RESULT_DONE);
		ck_assert_uint_eq(ended, 1);
		server_hears_nothing();
	}
}

/* Another touch is executed between the write of a date and ours, which undoes it. */
TEST(a_second_touch_of_a_date)
{
	rewrite_a_date();
	server_answers(TTL(3456000) CLOCK(2000000000) TTL(3456000));
	serves(LOOK_AT_TTL "stats \r\n" CAS(2003456000), TTL(50) CLOCK(2000000000) STORED);
	serves(DATE_TOUCH(2000000050), TTL(3466000) CLOCK(2000000000) TOUCHED);
	serves(DATE_TOUCH(2003466000), TTL(50) CLOCK(2000000000) TOUCHED);
	ends_with(RESULT_DONE, 3466000);
}

/* A rewrite of a date finds a touch with 50 seconds, and is about to repeat it. */
static void repeats_a_touch(void)
{
	rewrite_a_date();
	server_answers(TTL(3456000) CLOCK(2000000000) TTL(3456000));
	serves(LOOK_AT_TTL "stats \r\n" CAS(2003456000), TTL(50) CLOCK(2000000000) STORED);
	server_is_asked(DATE_TOUCH(2000000050));
}

/*
 * A touch with the same seconds as the previous one is distinguished from it by the server's
 * clock.
 */
TEST(the_same_touch_later)
{
	repeats_a_touch();
	server_answers(TTL(50) CLOCK(2000000003) TOUCHED);
	ck_assert_uint_eq(ended, 0);
	serves(DATE_TOUCH(2000000053), TTL(47) CLOCK(2000000003) TOUCHED);
	ends_with(RESULT_DONE, 50);
	/* The same as the one before the last. */
	repeats_a_touch();
	server_answers(TTL(700) CLOCK(2000000000) TOUCHED);
	serves(DATE_TOUCH(2000000700), TTL(50) CLOCK(2000000003) TOUCHED);
	serves(DATE_TOUCH(2000000053), TTL(697) CLOCK(2000000003) TOUCHED);
	ends_with(RESULT_DONE, 50);
	/* Or an earlier end than that. */
	repeats_a_touch();
	server_answers(TTL(48) CLOCK(2000000000) TOUCHED);
	serves(DATE_TOUCH(2000000048), TTL(50) CLOCK(2000000000) TOUCHED);
	ends_with(RESULT_DONE, 48);
}

/* If replies are slow, the clock may have been read later than the time to live. Without a clock, the seconds have to do. */
TEST(no_touch_but_a_late_clock)
{
	repeats_a_touch();
	fake.host.env.now += 3000;
	server_answers(TTL(50) CLOCK(2000000003) TOUCHED);
	ends_with(RESULT_DONE, 50);
	repeats_a_touch();
	server_answers(TTL(50) CLOCK(2000000001) TOUCHED);
	ends_with(RESULT_DONE, 50);
	repeats_a_touch();
	server_answers(TTL(50) "ERROR\r\n" TOUCHED);
	ends_with(RESULT_DONE, 50);
}

/* While a second begins, the clock and the time to live do not belong together. */
TEST(a_date_when_a_second_begins)
{
	rewrite_a_date();
	server_answers(TTL(3456000) CLOCK(2000000000) TTL(3455999));
	serves(LOOK_AT_TTL "stats \r\n" LOOK_AT_TTL, TTL(3455999) CLOCK(2000000001) TTL(3455999));
	serves(LOOK_AT_TTL "stats \r\n" CAS(2003456000), TTL(3455999) CLOCK(2000000001) STORED);
	ends_with(RESULT_DONE, 3455999);
}

/* A server that does not return its clock: then ours is used. */
TEST(a_date_without_a_clock)
{
	rewrite_a_date();
	server_answers(TTL(3456000) "ERROR\r\n" TTL(3456000));
	serves(LOOK_AT_TTL "stats \r\n" CAS(1427906096),
		TTL(3456000) "STAT pid 1\r\nEND\r\n" STORED);
	ends_with(RESULT_DONE, 40 * DAY);
}
