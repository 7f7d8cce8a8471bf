/* Compaction of a base: folding its log, and spilling a long log to a run. list/list.h handles lists. */
#ifndef COLLECTION_SET_COMPACT_H
#define COLLECTION_SET_COMPACT_H

#include "collection/lane/lane.h"

/* Compacts the base of the lane's key as a part of another machine, which must have set lane->work to NULL. */
void compact_run(struct lane *lane, lane_after *after);

#endif
