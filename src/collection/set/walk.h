/* The members of a view in byte order: a merge of its layers. A walk that pauses begins again behind the last member that it gave. */
#ifndef COLLECTION_SET_WALK_H
#define COLLECTION_SET_WALK_H

#include "collection/set/view.h"
#include "collection/set_request.h"
#include "collection/text/table_merge.h"

/* Steps of work, as env_is_over counts them, for one member of a walk. */
enum { WALK_STEPS = 2 };

struct walk {
	struct set_view *view;
	const struct set_range *range;
	struct table_merge merge; /* streams: head, runs, overlay */
	size_t *next;             /* for each run, the number of the next table */
	bool skips_from;          /* the range excludes `from`, which may still come */
	struct table head, overlay;
};

enum walk_step { WALK_MEMBER, WALK_END, WALK_WANTED };

/*
 * Begins a walk, without the overlay unless `overlay`. About `expect` members will be read, 0 for all: the tables for that are wanted
 * at once. False if some must be loaded first, or the slice is over. walk_end must follow in any case. Borrows `v` and `range` until
 * then.
 */
bool walk_begin(struct walk *w, struct set_view *v, const struct set_range *range, uint64_t expect, bool overlay);
void walk_end(struct walk *w);

/* Gives the next member, valid until the next step. */
enum walk_step walk_next(struct walk *w, struct slice *member);

static inline bool is_above(const struct set_range *range, struct slice member)
{
	return range->has_to && member_compare(member, range->to) > 0;
}

#endif
