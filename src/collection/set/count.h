/* How many members a view has, and how many of them are in a range. */
#ifndef COLLECTION_SET_COUNT_H
#define COLLECTION_SET_COUNT_H

#include "collection/set/view.h"
#include "collection/set_request.h"

/*
 * Counts all members, or those of the request's range, to `number`. False as set_answer says. The request keeps how far it has come;
 * what it has found out about all members stays in the view, for other requests.
 */
bool count_all(struct set_view *v, struct set_request *r, uint64_t *number);
bool count_range(struct set_view *v, struct set_request *r, uint64_t *number);

#endif
