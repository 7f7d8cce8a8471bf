/*
 * Functions of the set machines for other machines and commands. The machines themselves are
 * declared in machines.h.
 */
#ifndef COLLECTION_SET_SET_H
#define COLLECTION_SET_SET_H

#include "collection/lane/lane.h"

/*
 * Compacts the base of the lane's key, as a sub-operation of another machine, which must have set
 * lane->work to NULL. Folds the log, and spills a long log to a run. For lists see list/list.h.
 */
void compact_run(struct lane *lane, lane_after *after);

/*
 * Called when a part of a set is missing: a background read checks the set, and removes it
 * if it is incomplete.
 */
void fetch_suspect(struct lanes *lanes, struct slice key);

/*
 * Called after a plain command changed the time to live of an item with this value. If the item
 * is a base, touches the parts that it refers to in the background.
 */
void touch_followers(struct lanes *lanes, struct slice key, struct slice value, int64_t exptime);

#endif
