/* Functions of the set machines for other machines and for commands. machines.h declares the machines themselves. */
#ifndef COLLECTION_SET_SET_H
#define COLLECTION_SET_SET_H

#include "collection/lane/lane.h"

/*
 * Compacts the base of the lane's key, as a part of another machine, which must have set lane->work to NULL. It folds the log, and
 * spills a long log to a run. list/list.h handles lists.
 */
void compact_run(struct lane *lane, lane_after *after);

/* Called when a part of a set was missing: a read in the background checks the set, and removes it if it is incomplete. */
void fetch_suspect(struct lanes *lanes, struct slice key);

/*
 * Called after a plain command changed the time to live of an item with this value. If the item is a base, touches the
 * parts that it refers to in the background.
 */
void touch_followers(struct lanes *lanes, struct slice key, struct slice value, int64_t exptime);

#endif
