/* Counts the members of a view, either all or only in a range. */
#ifndef COLLECTION_SET_COUNT_H
#define COLLECTION_SET_COUNT_H

#include "collection/set/view.h"
#include "collection/set_request.h"

/*
 * Count all members, or only the members in the request's range, and store the result in
 * `number`. Return false as set_answer does. The progress is kept in the request; intermediate
 * results about all members stay in the view, for other requests.
 */
bool count_all(struct set_view *v, struct set_request *r, uint64_t *number);
bool count_range(struct set_view *v, struct set_request *r, uint64_t *number);

#endif
