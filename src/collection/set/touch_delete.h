/* Touching and deleting what may be a set or list with other items beside its base. */
#ifndef COLLECTION_SET_TOUCH_DELETE_H
#define COLLECTION_SET_TOUCH_DELETE_H

#include "collection/lane/lane.h"

/* Carries out a TOUCH or a DELETE operation. */
void touch_start(struct lane *lane);
void delete_start(struct lane *lane);

/*
 * After a plain command that gave an item with this value another time to live: if it is the base of a large collection, its
 * other items follow in the background.
 */
void touch_followers(struct lanes *lanes, struct slice key, struct slice value, int64_t exptime);

#endif
