/* Event counters: which bucket a moment falls into, and which buckets a query means. Buckets are numbered from 1970 on. */
#ifndef COLLECTION_TALLY_H
#define COLLECTION_TALLY_H

#include <stdbool.h>

#include "collection/rules.h"
#include "util/buf.h"

enum { TALLY_NAME_MAX = 12, TALLY_RANGE_MAX = 50000 };

/* The bucket that holds a moment in unix time. */
int64_t tally_bucket(enum granularity g, int64_t unix_time);

/* Writes a bucket's name, YYYYMMDD[HH[MM]], UTC, to `name`; gives its length. The bucket's year must have four digits. */
size_t tally_name(enum granularity g, int64_t bucket, char name[TALLY_NAME_MAX]);

/* Appends <type><separator><bucket>. */
void tally_key(const struct event_rule *rule, struct slice type, int64_t bucket, struct buf *out);

/* The name that was asked for last: nearly all events fall into the present bucket. All zeroes for none. */
struct tally_memo {
	enum granularity granularity;
	int64_t bucket;
	size_t n;
	char name[TALLY_NAME_MAX];
};

/* Writes the same to `at`, where there is room for TALLY_NAME_MAX bytes behind type and separator; gives where it ends. */
char *tally_write_key(
	struct tally_memo *memo, const struct event_rule *rule, struct slice type, int64_t bucket, char *at);

struct tally_range {
	int64_t first, last; /* both are in */
};

/*
 * What a query's word means: `now`, `-3`, a bucket's name, or a shorter prefix of one, for all buckets inside it. `now_bucket`
 * is the present one. False when it means nothing, such as the 31st of February.
 */
bool tally_parse(enum granularity g, struct slice word, int64_t now_bucket, struct tally_range *out);

/* True when a moment's year has four digits, so that its bucket has a name. */
bool tally_time_valid(uint64_t unix_time);

#endif
