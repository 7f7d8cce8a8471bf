/*
 * Counted members: a text may add and remove one several times, and it is in the set when it was added more often. A change
 * reads the counts first, and adds or removes a member as often as needed.
 */
#ifndef COLLECTION_ADOPTED_ENCODINGS_COUNTED_H
#define COLLECTION_ADOPTED_ENCODINGS_COUNTED_H

#include "collection/text/fold.h"

struct counted {
	struct fold fold;       /* a member is live while it is in the set */
	struct counted_member { /* in the order of the fold */
		int32_t added, removed;
	} * members;
	size_t capacity;
};

/* All zeroes except fold.seed is empty. */
void counted_free(struct counted *c);

/* Counts the members of a delimited text, as added or as removed. False when it is malformed. */
bool counted_read(struct counted *c, struct slice text, char delimiter, bool removed)
	__attribute__((warn_unused_result));

/* The counts of a member. */
struct counted_member counted_find(const struct counted *c, struct slice member);

/* Moves the members to `out`, which is emptied first, and drops the counts. */
void counted_to_fold(struct counted *c, struct fold *out);

/* Additions minus removals of a member. */
int32_t counted_net(const struct counted *c, struct slice member);

/*
 * Appends the additions and removals, as delimited texts, that carry out `change`. False when a member would have to be
 * repeated too often: then the items should be rewritten first.
 */
bool counted_change(
	const struct counted *c, const struct fold *change, char delimiter, struct buf *added, struct buf *removed);

#endif
