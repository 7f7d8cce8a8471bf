/* Which servers are down, as reported by several workers. */
#include "unit.h"
#include "upstream/news.h"

static struct news *news;
static struct news_entry *entry;
static struct news_outage outage;

static void setup(void)
{
	news = news_create();
	entry = news_of(news, "mc:1");
}

static void teardown(void)
{
	news_destroy(news);
}

FIXTURE(setup, teardown)

TEST(each_server_has_an_entry)
{
	ck_assert_ptr_ne(news_of(news, "mc:2"), entry);
	ck_assert_ptr_eq(news_of(news, "mc:1"), entry);
	ck_assert(!news_outage(entry, &outage));
}

/* It is down from the first loss until the last worker is connected again, and the latest reason counts. */
TEST(an_outage_of_two_workers)
{
	uint64_t since;

	ck_assert_int_eq(news_arrive(entry, false, &since), NEWS_FIRST);
	ck_assert_int_eq(news_arrive(entry, false, &since), NEWS_NONE);
	ck_assert(news_fail(entry, false, 1000, "closed by the server"));
	ck_assert(!news_fail(entry, false, 1007, "closed by the server"));
	ck_assert(!news_fail(entry, true, 2000, "Connection refused"));
	ck_assert(news_outage(entry, &outage));
	ck_assert_uint_eq(outage.since, 1000);
	ck_assert_str_eq(outage.why, "Connection refused");
	ck_assert_int_eq(news_arrive(entry, true, &since), NEWS_NONE);
	ck_assert(news_outage(entry, &outage));
	ck_assert_int_eq(news_arrive(entry, true, &since), NEWS_BACK);
	ck_assert_uint_eq(since, 1000);
	ck_assert(!news_outage(entry, &outage));
	ck_assert(news_fail(entry, false, 9000, "no reply in time"));
	ck_assert(news_outage(entry, &outage));
	ck_assert_uint_eq(outage.since, 9000);
}

/*
 * A reload has removed the server while it was down. If it is added again, that counts as its
 * first time.
 */
TEST(nobody_wants_it_any_more)
{
	uint64_t since;

	ck_assert(news_fail(entry, false, 1000, "Connection refused"));
	ck_assert(!news_fail(entry, false, 1000, "Connection refused"));
	news_drop(entry);
	ck_assert(news_outage(entry, &outage));
	news_drop(entry);
	ck_assert(!news_outage(entry, &outage));
	ck_assert_int_eq(news_arrive(entry, false, &since), NEWS_FIRST);
}

TEST(a_long_reason_is_cut)
{
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert(news_fail(entry, false, 1000, text));
	ck_assert(news_outage(entry, &outage));
	ck_assert_uint_eq(strlen(outage.why), sizeof(outage.why) - 1);
}
