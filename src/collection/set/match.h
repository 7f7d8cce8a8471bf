/* The members of a range that match a pattern. */
#ifndef COLLECTION_SET_MATCH_H
#define COLLECTION_SET_MATCH_H

#include "collection/set/view.h"
#include "collection/set_request.h"

/*
 * Answers a RANGE with a pattern, in slices. Returns false if the slice is over, or if parts must
 * be loaded first.
 */
bool match_range(struct set_view *v, struct set_request *r);

#endif
