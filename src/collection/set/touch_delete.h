/* Touching and deleting keys that may be collections with parts beside their base. */
#ifndef COLLECTION_SET_TOUCH_DELETE_H
#define COLLECTION_SET_TOUCH_DELETE_H

#include "collection/lane/lane.h"

/*
 * Called after a plain command changed the time to live of an item with this value. If the item is a base, touches the
 * parts that it refers to in the background.
 */
void touch_followers(struct lanes *lanes, struct slice key, struct slice value, int64_t exptime);

#endif
