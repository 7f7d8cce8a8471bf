/* Compaction of a list: moves its logs to segments. */
#ifndef COLLECTION_LIST_COMPACT_H
#define COLLECTION_LIST_COMPACT_H

#include "collection/lane/lane.h"

/* Compacts the list of the lane's key and calls `after`. `r` is the reply about its base. */
void list_compact(struct lane *lane, const struct result *r, lane_after *after);

#endif
