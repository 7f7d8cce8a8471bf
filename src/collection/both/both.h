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
 * Called with the reply to a GAT of the waiter's key. If the item is the base of a set or list,
 * touches that, with all its parts, in the lane of the key; the waiter receives a reply again after
 * that; and returns true.
 */
bool touch_followers(struct lanes *lanes, struct account *account, int64_t exptime,
	struct waiter *waiter, const struct result *r) __attribute__((warn_unused_result));

/* Returns whether a value is surely a base: one that is empty may be an item of a client. */
bool touch_is_base(const struct lanes *lanes, struct slice key, struct slice value);

#endif
