/*
 * Rewrites of a base keep its time to live. memcached sets a new one with each write, so a rewrite
 * needs the date at which the base expires: that of its last token (text/date.h) or, if it has
 * none or that has passed long ago, the server's clock plus the seconds left. The CAS sets this
 * date, and the new base has one token with it. The date was read together with the CAS id, and a
 * touch appends a token: so if the base is touched meanwhile, the CAS fails.
 */
#ifndef COLLECTION_REWRITE_KEEP_H
#define COLLECTION_REWRITE_KEEP_H

#include "collection/lane/lane.h"
#include "collection/text/date.h"

enum { KEEP_UNKNOWN = -2 };

/*
 * Returns the date at which a base expires that was just read: a date, 0 for a token that says
 * never, DATE_NONE if it never expires and has no token. KEEP_UNKNOWN: it is unknown or about to
 * run out; then the base must not be rewritten. `base` is the value of the reply.
 */
int64_t keep_date(const struct lane *lane, const struct result *r, struct slice base);

/* Returns the date that an exptime of now means: 0 for never. Requires that it is not negative. */
int64_t keep_date_from(const struct lane *lane, int64_t exptime);

/* Returns the seconds until this date, at least 1; TTL_NEVER for none. */
int64_t keep_ttl(const struct lane *lane, int64_t date);

/* The same as an exptime. */
int64_t keep_exptime(const struct lane *lane, int64_t date);

/*
 * Returns the call that replaces the base which `read` is a reply about by `value`. Sets the date
 * in `value`, which the call borrows. Keeps the flags.
 */
struct call keep_cas(struct buf *value, const struct result *read, int64_t date);

/*
 * Returns whether the base which `read` is a reply about can be rewritten: OUTCOME_DONE,
 * OUTCOME_NO_CAS, or OUTCOME_BUSY if its date is KEEP_UNKNOWN.
 */
enum outcome_status keep_check(const struct result *read, int64_t date);

/* Sends that call for the key of the lane, whose batch is charged. The value is borrowed. */
void keep_send(struct lane *lane, struct buf *value, const struct result *read, int64_t date,
	struct call_role role, lane_step *done);

/* The same with the base, as it was read, and these words after its log as the value. */
void keep_append(struct lane *lane, const struct result *read, struct slice base, int64_t date,
	struct slice words, lane_step *done);

#endif
