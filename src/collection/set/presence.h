/*
 * Checks that the items of a set are present. A read from memory does not touch tables and indexes on the server, which
 * then might evict them before the base. So all items are read from time to time: that keeps them in use, and finds
 * those that are missing.
 */
#ifndef COLLECTION_SET_PRESENCE_H
#define COLLECTION_SET_PRESENCE_H

#include "collection/lane/lane.h"
#include "collection/set/cache.h"

/*
 * Checks all items of a view in the background if the last check is old. If one is missing, marks the entry as suspect.
 */
void presence_consider(struct lanes *lanes, struct slice key, struct cache_entry *entry);

/*
 * Called when an item of a set was missing: a read in the background checks the set, and removes it if it is
 * incomplete.
 */
void presence_suspect(struct lanes *lanes, struct slice key);

#endif
