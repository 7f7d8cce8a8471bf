/*
 * Rewrites some bytes of a base. Other writers only prepend and append to a base, so the
 * rewrite stays valid whatever they add. The bytes around it are kept as found by the last
 * read:
 *
 *     read the base -> find the bytes -> CAS with the token of that read
 *                                        -> lost the race: read the base again
 */
#ifndef COLLECTION_REWRITE_BASE_H
#define COLLECTION_REWRITE_BASE_H

#include "collection/lane/lane.h"
#include "collection/rewrite/keep.h"

struct base_rewrite {
	struct waiter waiter;
	struct lane *lane;
	struct slice old, replacement;
	bool anywhere;
	unsigned attempts;
	int64_t date; /* of the base at the end, as returned by keep_date */
	struct buf value;
	lane_after *after;
};

/*
 * Replaces `prefix` at the head of the base by `replacement`; keeps time to live and flags.
 * Both slices and `rewrite` must stay valid until `after` is called. It receives OUTCOME_BUSY
 * if the base does not begin with the prefix, or if each attempt lost a race. `read` is a reply
 * with value and CAS token to start from, and `date` was returned by keep_date for it; if `read`
 * is NULL, the base is read first.
 */
void base_rewrite_head(struct base_rewrite *rewrite, struct lane *lane, struct slice prefix,
	struct slice replacement, const struct result *read, int64_t date, lane_after *after);

/*
 * The same for `old` at any position in the base. The replacement must have the same
 * meaning at any position.
 */
void base_rewrite_anywhere(struct base_rewrite *rewrite, struct lane *lane, struct slice old,
	struct slice replacement, lane_after *after);

#endif
