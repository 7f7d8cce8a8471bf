/* Merging the runs of a set, in the background. */
#ifndef COLLECTION_SET_MERGE_H
#define COLLECTION_SET_MERGE_H

#include "collection/lane/lane.h"

/*
 * Starts a merge of the runs that the block of a base refers to, when one is worth it and none is under way. What is written
 * gets `exptime`.
 */
void merge_consider(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime);

/* Merges all of them. `op` is done when that is, or when a merge that was under way is. */
void merge_force(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime, struct op *op);

#endif
