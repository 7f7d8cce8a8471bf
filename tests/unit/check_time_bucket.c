#include <time.h>

#include "collection/event/time_bucket.h"
#include "unit.h"

static const enum granularity DAY = GRANULARITY_DAY, HOUR = GRANULARITY_HOUR,
			      MINUTE = GRANULARITY_MINUTE;

/* 20 February 2015, 16:34:56 UTC */
static const int64_t moment = 1424450096;

static void named(enum granularity g, int64_t unix_time, const char *expected)
{
	char name[TIME_BUCKET_NAME_MAX];
	size_t n = time_bucket_name(g, time_bucket_of(g, unix_time), name);

	assert_bytes(slice_of(name, n), expected);
}

TEST(names)
{
	named(DAY, moment, "20150220");
	named(HOUR, moment, "2015022016");
	named(MINUTE, moment, "201502201634");
	named(MINUTE, 0, "197001010000");
	named(MINUTE, 59, "197001010000");
	named(MINUTE, 60, "197001010001");
	named(HOUR, 3599, "1970010100");
	named(HOUR, 3600, "1970010101");
	named(DAY, 86399, "19700101");
	named(DAY, 86400, "19700102");
	named(DAY, 951782400, "20000229");
	named(DAY, 951868800, "20000301");
	named(MINUTE, 253402300799, "999912312359");
	ck_assert(time_bucket_valid(0));
	ck_assert(time_bucket_valid(253402300799));
	ck_assert(!time_bucket_valid(253402300800));
	ck_assert(!time_bucket_valid(UINT64_MAX));
}

TEST(before_1970)
{
	ck_assert_int_eq(time_bucket_of(HOUR, -1), -1);
	ck_assert_int_eq(time_bucket_of(HOUR, -3600), -1);
	ck_assert_int_eq(time_bucket_of(HOUR, -3601), -2);
}

/* The name is made by time_bucket_name, which the tests above check. */
static void written(struct time_bucket_memo *memo, enum granularity g, int64_t bucket)
{
	struct event_rule rule = { .bucket = g, .separator = SLICE("::") };
	char key[2 + 2 + TIME_BUCKET_NAME_MAX], expected[sizeof(key) + 1] = "ab::";

	expected[4 + time_bucket_name(g, bucket, expected + 4)] = 0;
	assert_bytes(slice_of(key,
			     (size_t)(time_bucket_write_key(memo, &rule, SLICE("ab"), bucket, key) -
				     key)),
		expected);
}

TEST(keys)
{
	struct event_rule rule = { .bucket = HOUR, .separator = SLICE("::") };
	struct time_bucket_memo memo = { 0 };
	char key[11 + 2 + TIME_BUCKET_NAME_MAX];
	char *end = time_bucket_write_key(
		&memo, &rule, SLICE("RouterError"), time_bucket_of(HOUR, moment), key);

	assert_bytes(slice_of(key, (size_t)(end - key)), "RouterError::2015022016");
}

/* One memo for all: the same bucket again, another one, and the same number at another granularity. */
TEST(remembered)
{
	struct time_bucket_memo memo = { 0 };

	for (int i = 0; i < 2; i++) {
		written(&memo, DAY, 0);
		written(&memo, DAY, 0);
		written(&memo, MINUTE, 0);
		written(&memo, HOUR, 100);
		written(&memo, DAY, 100);
		written(&memo, DAY, time_bucket_of(DAY, moment));
	}
}

/* Reads a word, and names the first and the last bucket that it means. */
static const char *means(enum granularity g, const char *word)
{
	static char text[64];
	char first[TIME_BUCKET_NAME_MAX], last[TIME_BUCKET_NAME_MAX];
	struct time_bucket_range range;

	if (!time_bucket_parse(g, guard_text(word), time_bucket_of(g, moment), &range))
		return "nothing";
	size_t n = time_bucket_name(g, range.first, first),
	       m = time_bucket_name(g, range.last, last);
	snprintf(text, sizeof(text), "%.*s-%.*s", (int)n, first, (int)m, last);
	return text;
}

TEST(relative)
{
	ck_assert_str_eq(means(HOUR, "now"), "2015022016-2015022016");
	ck_assert_str_eq(means(HOUR, "-0"), "2015022016-2015022016");
	ck_assert_str_eq(means(HOUR, "-3"), "2015022013-2015022013");
	ck_assert_str_eq(means(HOUR, "-17"), "2015021923-2015021923");
	ck_assert_str_eq(means(DAY, "-51"), "20141231-20141231");
	ck_assert_str_eq(means(MINUTE, "-35"), "201502201559-201502201559");
}

TEST(prefixes)
{
	ck_assert_str_eq(means(HOUR, "2015022016"), "2015022016-2015022016");
	ck_assert_str_eq(means(HOUR, "20150220"), "2015022000-2015022023");
	ck_assert_str_eq(means(HOUR, "201502"), "2015020100-2015022823");
	ck_assert_str_eq(means(HOUR, "2015"), "2015010100-2015123123");
	ck_assert_str_eq(means(DAY, "201512"), "20151201-20151231");
	ck_assert_str_eq(means(DAY, "2016"), "20160101-20161231");
	ck_assert_str_eq(means(MINUTE, "201502201634"), "201502201634-201502201634");
	ck_assert_str_eq(means(MINUTE, "2015022016"), "201502201600-201502201659");
	ck_assert_str_eq(means(DAY, "1970"), "19700101-19701231");
	ck_assert_str_eq(means(DAY, "9999"), "99990101-99991231");
}

TEST(leap_years)
{
	ck_assert_str_eq(means(DAY, "201602"), "20160201-20160229");
	ck_assert_str_eq(means(DAY, "20160229"), "20160229-20160229");
	ck_assert_str_eq(means(DAY, "20000229"), "20000229-20000229");
	ck_assert_str_eq(means(DAY, "20150229"), "nothing");
	ck_assert_str_eq(means(DAY, "21000229"), "nothing");
	ck_assert_str_eq(means(DAY, "210002"), "21000201-21000228");
}

TEST(no_such_bucket)
{
	static const char *const words[] = { "", "-", "--1", "-x", "-18446744073709551615",
		"-99999999999", "NOW", "2", "20", "201", "20150", "201513", "201500", "20150100",
		"20150132", "20150431", "20150230", "2015022024", "201502201", "1969", "0000",
		"1900", "x015", "2015 0220", "+015", "2015-1", "20150220160", "20150220161",
		"2015022016345" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		ck_assert_msg(strcmp(means(HOUR, words[i]), "nothing") == 0, "%s means %s",
			words[i], means(HOUR, words[i]));
	ck_assert_str_eq(means(HOUR, "201502201634"), "nothing");
	ck_assert_str_eq(means(DAY, "2015022016"), "nothing");
	ck_assert_str_eq(means(MINUTE, "201502201660"), "nothing");
}

/* Every day for 400 years: its name is the next date, and means that day. */
TEST(calendar)
{
	char name[TIME_BUCKET_NAME_MAX];
	int64_t day = time_bucket_of(DAY, 0);
	struct time_bucket_range range;

	for (int year = 1970; year < 2370; year++) {
		static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
		bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
		for (int month = 1; month <= 12; month++) {
			int last = days[month - 1] + (leap && month == 2);
			for (int date = 1; date <= last; date++, day++) {
				char expected[32];
				snprintf(expected, sizeof(expected), "%04d%02d%02d", year, month,
					date);
				ck_assert_uint_eq(time_bucket_name(DAY, day, name), 8);
				assert_bytes(slice_of(name, 8), expected);
				ck_assert(time_bucket_parse(DAY, slice_of(expected, 8), 0, &range));
				ck_assert_int_eq(range.first, day);
				ck_assert_int_eq(range.last, day);
			}
		}
	}
}

static void lasts(enum granularity g, uint64_t seconds, int64_t most, int64_t buckets, int64_t time)
{
	struct time_bucket_range range = { -1, -1 };

	ck_assert_int_eq(time_bucket_last(g, moment, seconds, most, &range), time);
	ck_assert_int_eq(range.last, buckets ? time_bucket_of(g, moment) : -1);
	ck_assert_int_eq(range.last - range.first, buckets ? buckets - 1 : 0);
}

TEST(the_last_buckets)
{
	lasts(HOUR, 1, 64, 1, 3600);
	lasts(HOUR, 3600, 64, 1, 3600);
	lasts(HOUR, 3601, 64, 2, 7200);
	lasts(MINUTE, 3600, 64, 60, 3600);
	lasts(MINUTE, 61, 1, 0, 0);
	lasts(DAY, 64 * 86400, 64, 64, 64 * 86400);
	lasts(DAY, 64 * 86400 + 1, 64, 0, 0);
	lasts(DAY, UINT64_MAX, 64, 0, 0);
}
