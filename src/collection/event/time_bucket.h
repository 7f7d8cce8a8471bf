/* Event counters: which bucket a moment falls into, and which buckets a query means. Buckets are numbered from 1970 on. */
#ifndef COLLECTION_TALLY_H
#define COLLECTION_TALLY_H

#include <stdbool.h>

#include "collection/rules.h"
#include "util/buf.h"

enum { TIME_BUCKET_NAME_MAX = 12, TIME_BUCKET_RANGE_MAX = 50000 };

/* The bucket that holds a moment in unix time. */
int64_t time_bucket_of(enum granularity g, int64_t unix_time);

/* Writes a bucket's name, YYYYMMDD[HH[MM]], UTC, to `name`; gives its length. The bucket's year must have four digits. */
size_t time_bucket_name(enum granularity g, int64_t bucket, char name[TIME_BUCKET_NAME_MAX]);

/* Appends <type><separator><bucket>. */
void time_bucket_key(const struct event_rule *rule, struct slice type, int64_t bucket, struct buf *out);

/* The name that was asked for last: nearly all events fall into the present bucket. All zeroes for none. */
struct time_bucket_memo {
	enum granularity granularity;
	int64_t bucket;
	size_t n;
	char name[TIME_BUCKET_NAME_MAX];
};

/* Writes the same to `at`, where there is room for TIME_BUCKET_NAME_MAX bytes behind type and separator; gives where it ends. */
char *time_bucket_write_key(
	struct time_bucket_memo *memo, const struct event_rule *rule, struct slice type, int64_t bucket, char *at);

struct time_bucket_range {
	int64_t first, last; /* both are in */
};

/*
 * What a query's word means: `now`, `-3`, a bucket's name, or a shorter prefix of one, for all buckets inside it. `now_bucket`
 * is the present one. False when it means nothing, such as the 31st of February.
 */
bool time_bucket_parse(enum granularity g, struct slice word, int64_t now_bucket, struct time_bucket_range *out);

/* True when a moment's year has four digits, so that its bucket has a name. */
bool time_bucket_valid(uint64_t unix_time);

#endif
