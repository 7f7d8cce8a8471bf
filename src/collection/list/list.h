/* Compaction of a list. list.c also has the machine for OP_LIST. */
#ifndef COLLECTION_LIST_LIST_H
#define COLLECTION_LIST_LIST_H

#include "collection/lane/lane.h"

/* Compacts the list of the lane's key and calls `after`. `r` is the reply about its base. Requires lane->work to be NULL. */
void list_compact(struct lane *lane, const struct result *r, lane_after *after);

#endif
