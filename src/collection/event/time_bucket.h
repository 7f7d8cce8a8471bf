/*
 * Time buckets of event counters: the bucket of a moment, the buckets of a query. Buckets are
 * numbered from 1970 in UTC, by the day, hour or minute of the event's granularity.
 */
#ifndef COLLECTION_EVENT_TIME_BUCKET_H
#define COLLECTION_EVENT_TIME_BUCKET_H

#include <stdbool.h>

#include "collection/rules.h"
#include "util/slice.h"

enum { TIME_BUCKET_NAME_MAX = 12, TIME_BUCKET_RANGE_MAX = 50000 };

/* Returns the number of the bucket that contains a unix time. */
int64_t time_bucket_of(enum granularity g, int64_t unix_time);

/*
 * Writes a bucket's name, YYYYMMDD[HH[MM]] in UTC, and returns its length. The year
 * must have four digits.
 */
size_t time_bucket_name(enum granularity g, int64_t bucket, char name[TIME_BUCKET_NAME_MAX]);

/*
 * The last name that was written: nearly all events are in the current bucket. All
 * zeroes is none.
 */
struct time_bucket_memo {
	enum granularity granularity;
	int64_t bucket;
	size_t n;
	char name[TIME_BUCKET_NAME_MAX];
};

/*
 * Writes the key of a counter, <type><separator><bucket name>, to `at`, and returns its end.
 * There must be room for type, separator and TIME_BUCKET_NAME_MAX bytes.
 */
char *time_bucket_write_key(struct time_bucket_memo *memo, const struct event_rule *rule,
	struct slice type, int64_t bucket, char *at);

/*
 * Returns the rule of the counter or event with this key, <type><separator><bucket name> and for an
 * event the separator and its number; NULL if it cannot be one. `rules` has the rules for events.
 */
const struct event_rule *time_bucket_rule(const struct rules *rules, struct slice key);

struct time_bucket_range {
	int64_t first, last; /* inclusive */
};

/*
 * Stores the buckets of the last `seconds`, which must be above 0: whole buckets, ending
 * with the current one. Returns their total duration in seconds, or 0 if there are more
 * than `most` buckets.
 */
int64_t time_bucket_last(enum granularity g, int64_t unix_time, uint64_t seconds, int64_t most,
	struct time_bucket_range *out);

/*
 * Parses a word of a query: `now`, `-3` for three buckets ago, a bucket's name, or a prefix of
 * one for all buckets in it. `now_bucket` is the current bucket. Returns false if the word is
 * none of these, or not a valid date.
 */
bool time_bucket_parse(
	enum granularity g, struct slice word, int64_t now_bucket, struct time_bucket_range *out);

/* Returns whether the year of a unix time has four digits, so that its bucket has a name. */
bool time_bucket_valid(uint64_t unix_time);

#endif
