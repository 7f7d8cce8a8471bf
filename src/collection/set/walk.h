/*
 * Walks over the members of a view in byte order, by merging its layers. A walk that pauses
 * restarts after the last member that it returned.
 */
#ifndef COLLECTION_SET_WALK_H
#define COLLECTION_SET_WALK_H

#include "collection/set/view.h"
#include "collection/set_request.h"
#include "collection/text/table_merge.h"

/* Steps of work, in the unit of env_is_over, for one member of a walk. */
enum { WALK_STEPS = 2 };

struct walk {
	struct set_view *view;
	const struct set_range *range;
	struct table_merge merge; /* streams: head, runs, overlay */
	size_t *next;             /* for each run, the number of the next table */
	bool skips_from;          /* the range excludes `from`, which may still follow */
	struct table head, overlay;
};

enum walk_step { WALK_MEMBER, WALK_END, WALK_WANTED };

/*
 * Begins a walk, with the overlay if `overlay`. `expect` is the approximate number of members
 * that will be read, 0 for all: the tables for them are wanted at once. Returns false if some
 * must be loaded first, or if the slice is over. walk_end must follow in any case. Borrows `v`
 * and `range` until then.
 */
bool walk_begin(struct walk *w, struct set_view *v, const struct set_range *range, uint64_t expect,
	bool overlay);
void walk_end(struct walk *w);

/* Stores the next member in `member`; it is valid until the next step. */
enum walk_step walk_next(struct walk *w, struct slice *member);

static inline bool is_above(const struct set_range *range, struct slice member)
{
	return range->has_to && member_compare(member, range->to) > 0;
}

#endif
