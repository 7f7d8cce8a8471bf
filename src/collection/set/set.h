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
 * Called with the reply to a GAT of the waiter's key. If the item is a base with parts, touches
 * them as well, in the turns of the account, delivers the reply again after that, and returns
 * true.
 */
bool touch_followers(struct lanes *lanes, struct account *account, int64_t exptime, struct waiter *waiter,
	const struct result *r) __attribute__((warn_unused_result));

#endif
