/* List functions for other machines. list.c also has the machine for OP_LIST. */
#ifndef COLLECTION_LIST_LIST_H
#define COLLECTION_LIST_LIST_H

#include "collection/lane/lane.h"
#include "collection/rewrite/parts.h"

/*
 * Compacts the list of the lane's key and calls `after`. `r` is the reply about its base.
 * Requires lane->work to be NULL.
 */
void list_compact(struct lane *lane, const struct result *r, lane_after *after);

/*
 * Writes the first elements of a log of additions to a new segment, and removes them from `log`.
 * Appends the reference to `refs`. Requires that the log is not empty.
 */
void list_write_segment(struct part_writer *writer, struct slice *log, struct buf *refs);
/* Bytes of a segment that are processed in one step. */
enum { LIST_STEP_BYTES = 64 };

#endif
