/* Walking through the members of a view in byte order: a merge of its layers. */
#ifndef COLLECTION_SET_WALK_H
#define COLLECTION_SET_WALK_H

#include "collection/set/view.h"
#include "collection/text/table_merge.h"

struct set_walk {
	struct set_view *view;
	const struct set_range *range;
	struct table_merge merge; /* streams: the head, the runs, the overlay */
	size_t *next;             /* of each run, the number of its next table */
	struct table head, overlay;
};

enum set_step { SET_STEP_MEMBER, SET_STEP_END, SET_STEP_WANTED };

/*
 * Begins a walk, of which about `expect` members will be wanted, 0 for all of them: what that takes is wanted at once. False
 * when something has to be loaded first. To be ended in any case.
 */
bool set_walk_begin(struct set_walk *w, struct set_view *v, const struct set_range *range, uint64_t expect)
	__attribute__((warn_unused_result));
void set_walk_end(struct set_walk *w);

/* The next member; it is valid until the next step. */
enum set_step set_walk_next(struct set_walk *w, struct slice *member);

/* Where a member stands to a range: below it, in it, above it. */
int set_range_side(const struct set_range *range, struct slice member);

#endif
