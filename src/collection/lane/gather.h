/*
 * Gathers queued operations that can be carried out together. Only the operations of one client
 * must keep their order; no client can observe the order of different clients. So additions and
 * removals from the whole queue become one append, and reads become one fetch after it.
 */
#ifndef COLLECTION_LANE_GATHER_H
#define COLLECTION_LANE_GATHER_H

#include "collection/op.h"

/*
 * Moves operations from `waiting`, whose first is an APPEND or a READ, to `appends` and
 * `reads`. It is then correct to carry out all appends before all reads. The appends have at
 * most `bytes` of log together, but the first one is always taken. The remaining operations
 * keep their order. No operation passes one that is neither an APPEND nor a READ.
 *
 * A read may move after a later append of its client if that append does not name any member
 * that the read tests. Such a read is `early` unless an append that creates the set was
 * gathered before it. If the set was missing, the result of an early read is empty.
 */
void gather(struct op_queue *waiting, size_t bytes, struct op_queue *appends, struct op_queue *reads);

#endif
