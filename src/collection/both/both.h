/*
 * This room has the machines that sets and lists share: append, replace, touch, delete, leases
 * and loads, compaction. The machines are declared in machines.h; these are their functions for
 * other machines and for commands.
 */
#ifndef COLLECTION_BOTH_BOTH_H
#define COLLECTION_BOTH_BOTH_H

#include "collection/lane/lane.h"

/*
 * Compacts the base of the lane's key, as a sub-operation of another machine, which must have set
 * lane->work to NULL. Folds the log, and spills a long log to a run. For lists see list/list.h.
 */
void compact_run(struct lane *lane, lane_after *after);

/*
 * Called after a plain command changed the time to live of an item with this value. If the item
 * is a base, touches the parts that it refers to in the background.
 */
void touch_followers(struct lanes *lanes, struct slice key, struct slice value, int64_t exptime);

#endif
