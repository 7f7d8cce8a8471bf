/*
 * Requests to a list with held elements, see text/held.h: an element that is taken with a ticket
 * (HOLD) is given back when its time is over, unless it is acknowledged (ACK), or given back at
 * once (FAIL). All of it changes only the base.
 *
 *     segmented_list_read -> hold_give_back -> hold_apply, for each request
 */
#ifndef COLLECTION_LIST_HOLD_H
#define COLLECTION_LIST_HOLD_H

#include "collection/list/segmented_list.h"

/* Seconds for which an element is held while it is moved to the list of dead elements. */
enum { HOLD_DEAD_SECONDS = 60 };

/* Returns whether an element is to be given back at the time `now`. */
bool hold_is_due(const struct segmented_list *list, int64_t now);

/*
 * Adds these elements to the ends from which they were taken, the one that was taken first as the
 * next. The list must not be tangled.
 */
void hold_give_back(struct segmented_list *list, int64_t now);

/*
 * Carries out any request, as segmented_list_apply does. `now` is only for a HOLD. A popped or
 * removed element loses its count of deliveries.
 */
bool hold_apply(
	struct segmented_list *list, struct list_request *request, int64_t now, struct buf *text);

#endif
