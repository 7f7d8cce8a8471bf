/*
 * The presence of a set's items. What is kept in memory is never asked about when it is read, so once in a while the server is
 * told that all of it is in use: it keeps them as recently used as the base, and tells what is gone.
 */
#ifndef COLLECTION_SET_PRESENCE_H
#define COLLECTION_SET_PRESENCE_H

#include "collection/lane/lane.h"
#include "collection/set/cache.h"

/* Asks for all items of a view that was used, in the background, when that was not done lately. What is gone makes it suspect. */
void presence_consider(struct lanes *lanes, struct slice key, struct cache_entry *entry);

/* Something of a set was found to be gone: has it read, which finds out whether the set has lost it, and then removes the set. */
void presence_suspect(struct lanes *lanes, struct slice key);

#endif
