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

char *time_bucket_write_key(struct time_bucket_memo *memo, const struct event_rule *rule,
	struct slice type, int64_t bucket, char *at)
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

static bool parse_prefix(enum granularity g, struct slice word, struct time_bucket_range *out)
{
	struct tm tm = { .tm_mday = 1 }, same;
	const struct {
		int *part;
		size_t digits;
		int zero; /* the number that is stored as 0 in `part` */
	} parts[] = {
		{ &tm.tm_year, 4, 1900 },
		{ &tm.tm_mon, 2, 1 },
		{ &tm.tm_mday, 2, 0 },
		{ &tm.tm_hour, 2, 0 },
		{ &tm.tm_min, 2, 0 },
	};
	size_t n = 0;
	uint64_t value;
	int64_t first;

	if (word.n == 0 || word.n > granularities[g].digits)
		return false;
	for (; word.n; n++) {
		if (word.n < parts[n].digits ||
			!num_parse_u64(slice_of(word.p, parts[n].digits), &value))
			return false;
		*parts[n].part = (int)value - parts[n].zero;
		word = slice_skip(word, parts[n].digits);
	}
	same = tm;
	first = timegm(&same);
	/* timegm normalizes a part that is out of range: then the date is not valid. */
	if (first < 0 || tm.tm_mon != same.tm_mon || tm.tm_mday != same.tm_mday ||
		tm.tm_hour != same.tm_hour || tm.tm_min != same.tm_min)
		return false;
	++*parts[n - 1].part;
	out->first = time_bucket_of(g, first);
	out->last = time_bucket_of(g, timegm(&tm) - 1);
	return true;
}

int64_t time_bucket_last(enum granularity g, int64_t unix_time, uint64_t seconds, int64_t most,
	struct time_bucket_range *out)
{
	uint64_t before = (seconds - 1) / (uint64_t)granularities[g].seconds;

	if (before >= (uint64_t)most)
		return 0;
	out->last = time_bucket_of(g, unix_time);
	out->first = out->last - (int64_t)before;
	return ((int64_t)before + 1) * granularities[g].seconds;
}

bool time_bucket_parse(
	enum granularity g, struct slice word, int64_t now_bucket, struct time_bucket_range *out)
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

/* Removes digits from the end. Returns how many there were. */
static size_t drop_digits(struct slice *text)
{
	size_t n = text->n;

	while (text->n && text->p[text->n - 1] >= '0' && text->p[text->n - 1] <= '9')
		text->n--;
	return n - text->n;
}

static bool drop_end(struct slice *text, struct slice end)
{
	if (text->n < end.n || memcmp(text->p + text->n - end.n, end.p, end.n) != 0)
		return false;
	text->n -= end.n;
	return true;
}

/* A separator may end in digits, so it is found from its known distance to the end. */
static bool is_of_counter(
	const struct rules *rules, const struct event_rule *rule, struct slice key)
{
	static const size_t lengths[] = {
		[GRANULARITY_DAY] = 8, [GRANULARITY_HOUR] = 10, [GRANULARITY_MINUTE] = 12
	};
	struct slice name = key;

	if (key.n <= lengths[rule->bucket])
		return false;
	name = slice_skip(key, key.n - lengths[rule->bucket]);
	key.n -= name.n;
	return drop_digits(&name) == lengths[rule->bucket] && drop_end(&key, rule->separator) &&
		key.n && rules_event(rules, key) == rule;
}

const struct event_rule *time_bucket_rule(const struct rules *rules, struct slice key)
{
	for (size_t i = 0; i < rules->event_count; i++) {
		const struct event_rule *rule = &rules->events[i];
		struct slice counter = key;
		if (is_of_counter(rules, rule, key) ||
			(drop_digits(&counter) && drop_end(&counter, rule->separator) &&
				is_of_counter(rules, rule, counter)))
			return rule;
	}
	return NULL;
}
