/*
 * Rewriting a part of a base. Others only ever add in front of the base or behind it, so a rewrite of a part of it stays right
 * whatever was added since it was computed. The rest is kept as the last read shows it:
 *
 *     read the base -> find the part -> CAS with the token of that read -> lost: read the base again
 */
#ifndef COLLECTION_REWRITE_BASE_H
#define COLLECTION_REWRITE_BASE_H

#include "collection/lane/lane.h"
#include "collection/rewrite/cas.h"

struct base_rewrite {
	struct cas cas; /* cas.ttl is the time to live of the base when it is done */
	struct lane *lane;
	struct slice part, replacement;
	bool anywhere;
	unsigned attempts;
	struct buf value;
	lane_after *after;
};

/*
 * Replaces `prefix` at the head of the base, and keeps time to live and flags. Both slices must stay until `after` is called,
 * with OUTCOME_BUSY when the base does not begin with the prefix any more, or others won every race. `read` is a reply with
 * value, CAS token and time to live to begin with; with NULL the base is read.
 */
void base_rewrite_head(struct base_rewrite *rewrite, struct lane *lane, struct slice prefix, struct slice replacement,
	const struct result *read, lane_after *after);

/* The same for `part` wherever it is in the base, if the replacement means the same in any surroundings. */
void base_rewrite_part(struct base_rewrite *rewrite, struct lane *lane, struct slice part, struct slice replacement,
	lane_after *after);

/* Removes the base that `read` is a reply about, by CAS with a time in the past: what was written since keeps it. */
void base_expire(struct lane *lane, const struct result *read, lane_step *step);

/* Carries out a COMMIT operation: the lane's batch has one. */
void base_commit_start(struct lane *lane);

#endif
