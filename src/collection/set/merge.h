/* Merging the runs of a set, in the background. */
#ifndef COLLECTION_SET_MERGE_H
#define COLLECTION_SET_MERGE_H

#include "collection/lane/lane.h"

/*
 * Starts a merge of runs among those that `block`, of a base that parses, refers to. Does nothing if none is due, one
 * is in progress for the key, or too many are for other keys. New items get `exptime`. Slices are copied.
 */
void merge_consider(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime);

/*
 * Merges all runs, and owns the COMPACT `op` until its `done`. If a merge is in progress, `op` is submitted again
 * behind it.
 */
void merge_force(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime, struct op *op);

#endif
