/* Compaction of a base: folding its log, and spilling a long log to a run. list/compact.h handles lists. */
#ifndef COLLECTION_SET_COMPACT_H
#define COLLECTION_SET_COMPACT_H

#include "collection/lane/lane.h"

/* Compacts the base of the lane's key as a part of another machine, which must have set lane->work to NULL. */
void compact_run(struct lane *lane, lane_after *after);

/* Bytes of log that trigger compaction of the lane's key, in any encoding. */
size_t compact_log_size(const struct lane *lane);

/* Carries out the COMPACT operation of the lane's batch. */
void compact_start(struct lane *lane);

#endif
