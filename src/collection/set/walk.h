/* Iterating over the members of a view in byte order: a merge of its layers. */
#ifndef COLLECTION_SET_WALK_H
#define COLLECTION_SET_WALK_H

#include "collection/set/view.h"
#include "collection/set_request.h"
#include "collection/text/table_merge.h"

struct set_walk {
	struct set_view *view;
	const struct set_range *range;
	struct table_merge merge; /* streams: head, runs, overlay */
	size_t *next;             /* for each run, the number of the next table */
	bool skips_from;          /* the range excludes `from`, which may still come */
	struct table head, overlay;
};

enum set_step { SET_STEP_MEMBER, SET_STEP_END, SET_STEP_WANTED };

/*
 * Begins a walk. About `expect` members will be read, 0 for all: the tables for that are wanted at once. False if some
 * must be loaded first. set_walk_end must follow in any case. Borrows `v` and `range` until then.
 */
bool set_walk_begin(struct set_walk *w, struct set_view *v, const struct set_range *range, uint64_t expect)
	__attribute__((warn_unused_result));
void set_walk_end(struct set_walk *w);

/* Gives the next member, valid until the next step. */
enum set_step set_walk_next(struct set_walk *w, struct slice *member);

/* Whether a member is below a range (-1), in it (0) or above it (1). */
int set_range_side(const struct set_range *range, struct slice member);

#endif
