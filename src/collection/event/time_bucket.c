#include "collection/event/time_bucket.h"

#include <string.h>
#include <time.h>

#include "util/num.h"

/* 9999-12-31 23:59:59 */
static const uint64_t last_moment = 253402300799u;

static const struct {
	int64_t seconds;
	size_t digits;
} granularities[] = {
	[GRANULARITY_DAY] = { 86400, 8 },
	[GRANULARITY_HOUR] = { 3600, 10 },
	[GRANULARITY_MINUTE] = { 60, 12 },
};

bool time_bucket_valid(uint64_t unix_time)
{
	return unix_time <= last_moment;
}

int64_t time_bucket_of(enum granularity g, int64_t unix_time)
{
	int64_t seconds = granularities[g].seconds;

	return unix_time / seconds - (unix_time % seconds < 0);
}

static char *write_digits(char *p, int value, int digits)
{
	for (int i = digits; i-- > 0; value /= 10)
		p[i] = (char)('0' + value % 10);
	return p + digits;
}

size_t time_bucket_name(enum granularity g, int64_t bucket, char name[TIME_BUCKET_NAME_MAX])
{
	time_t moment = (time_t)(bucket * granularities[g].seconds);
	struct tm tm;
	char all[TIME_BUCKET_NAME_MAX], *p = all;

	gmtime_r(&moment, &tm);
	p = write_digits(p, tm.tm_year + 1900, 4);
	p = write_digits(p, tm.tm_mon + 1, 2);
	p = write_digits(p, tm.tm_mday, 2);
	p = write_digits(p, tm.tm_hour, 2);
	write_digits(p, tm.tm_min, 2);
	memcpy(name, all, granularities[g].digits);
	return granularities[g].digits;
}

void time_bucket_key(const struct event_rule *rule, struct slice type, int64_t bucket, struct buf *out)
{
	char name[TIME_BUCKET_NAME_MAX];
	size_t n = time_bucket_name(rule->bucket, bucket, name);

	buf_add_slice(out, type);
	buf_add_slice(out, rule->separator);
	buf_add(out, name, n);
}

char *time_bucket_write_key(
	struct time_bucket_memo *memo, const struct event_rule *rule, struct slice type, int64_t bucket, char *at)
{
	if (memo->n == 0 || memo->bucket != bucket || memo->granularity != rule->bucket) {
		memo->granularity = rule->bucket;
		memo->bucket = bucket;
		memo->n = time_bucket_name(rule->bucket, bucket, memo->name);
	}
	at = slice_write(at, type);
	at = slice_write(at, rule->separator);
	return slice_write(at, slice_of(memo->name, memo->n));
}

/* Parses `digits` digits off the front of the word: -1 if it is empty, -2 if they are not digits. */
static int take(struct slice *word, size_t digits)
{
	uint64_t value;

	if (word->n == 0)
		return -1;
	if (word->n < digits || !num_parse_u64(slice_of(word->p, digits), &value))
		return -2;
	*word = slice_skip(*word, digits);
	return (int)value;
}

/* The first moment of a date whose later parts may be absent, -1; -1 if the calendar has no such date. */
static int64_t moment_of(int year, int month, int day, int hour, int minute)
{
	struct tm tm = {
		.tm_year = year - 1900,
		.tm_mon = month < 0 ? 0 : month - 1,
		.tm_mday = day < 0 ? 1 : day,
		.tm_hour = hour < 0 ? 0 : hour,
		.tm_min = minute < 0 ? 0 : minute,
	};
	struct tm same = tm;
	int64_t moment = timegm(&same);

	/* timegm normalizes a part that is out of range. */
	if (tm.tm_mon != same.tm_mon || tm.tm_mday != same.tm_mday || tm.tm_hour != same.tm_hour ||
		tm.tm_min != same.tm_min)
		return -1;
	return moment;
}

static bool parse_prefix(enum granularity g, struct slice word, struct time_bucket_range *out)
{
	int64_t first, behind;

	if (word.n > granularities[g].digits)
		return false;
	int year = take(&word, 4), month = take(&word, 2), day = take(&word, 2), hour = take(&word, 2),
	    minute = take(&word, 2);
	if (year < 1970 || month < -1 || day < -1 || hour < -1 || minute < -1 || month == 0 || day == 0)
		return false;
	first = moment_of(year, month, day, hour, minute);
	if (first < 0)
		return false;
	if (month < 0)
		behind = moment_of(year + 1, -1, -1, -1, -1);
	else if (day < 0)
		behind = month == 12 ? moment_of(year + 1, -1, -1, -1, -1) : moment_of(year, month + 1, -1, -1, -1);
	else
		behind = first + (hour < 0 ? 86400 : minute < 0 ? 3600 : 60);
	out->first = time_bucket_of(g, first);
	out->last = time_bucket_of(g, behind - 1);
	return true;
}

bool time_bucket_parse(enum granularity g, struct slice word, int64_t now_bucket, struct time_bucket_range *out)
{
	uint64_t back;

	if (slice_equal(word, SLICE("now"))) {
		out->first = out->last = now_bucket;
		return true;
	}
	if (word.n > 1 && word.p[0] == '-') {
		if (!num_parse_u64(slice_skip(word, 1), &back) || back > (uint64_t)now_bucket)
			return false;
		out->first = out->last = now_bucket - (int64_t)back;
		return true;
	}
	return parse_prefix(g, word, out);
}
