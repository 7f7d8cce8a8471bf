/* Compaction of a base: folding its log, and spilling it to a run when it is long. A list goes to list/compact.h. */
#ifndef COLLECTION_SET_COMPACT_H
#define COLLECTION_SET_COMPACT_H

#include "collection/lane/lane.h"

/* Compacts the base of the lane's key as a part of another machine, whose `work` must be NULL. */
void compact_run(struct lane *lane, lane_after *after);

/* Bytes of log above which the base of the lane's key is compacted, whatever its encoding. */
size_t compact_log_size(const struct lane *lane);

/* Carries out a COMPACT operation. */
void compact_start(struct lane *lane);

#endif
