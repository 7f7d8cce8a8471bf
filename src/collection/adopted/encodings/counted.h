/*
 * Members that are counted: added so many times and removed so many times, and in while they were added more often. What
 * adds or removes one looks first at how often that takes, so that for those who do, a member is in or it is not.
 */
#ifndef COLLECTION_ENCODINGS_COUNTED_H
#define COLLECTION_ENCODINGS_COUNTED_H

#include "collection/text/fold.h"

struct counted {
	struct fold fold;       /* its members are live while they are in */
	struct counted_member { /* in the order of the fold's */
		int32_t added, removed;
	} * members;
	size_t capacity;
};

/* All zeroes but the fold's seed is empty. */
void counted_free(struct counted *c);

/* Reads a delimited text, all of whose members were added, or removed. False when it is anything else. */
bool counted_read(struct counted *c, struct slice text, char delimiter, bool removed)
	__attribute__((warn_unused_result));

/* How often a member was added, and removed. */
struct counted_member counted_find(const struct counted *c, struct slice member);

/* Gives up the counts: `out`, which is emptied, gets the members. */
void counted_to_fold(struct counted *c, struct fold *out);

/* How often a member was added less how often it was removed. */
int32_t counted_net(const struct counted *c, struct slice member);

/*
 * How often the members that `change` names must be added and removed so that its last word on each holds, as delimited
 * texts. False when that would be often: what there is should be rewritten first.
 */
bool counted_change(
	const struct counted *c, const struct fold *change, char delimiter, struct buf *added, struct buf *removed);

#endif
