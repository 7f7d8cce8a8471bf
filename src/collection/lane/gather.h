/*
 * Gathers waiting operations that can be carried out together. Only the operations of one client must keep their
 * order: nobody can observe the order of different clients. So additions and removals from the whole queue become one
 * append, and reads become one fetch behind it.
 */
#ifndef COLLECTION_LANE_GATHER_H
#define COLLECTION_LANE_GATHER_H

#include "collection/op.h"

/*
 * Moves operations off `waiting`, whose first is an APPEND or a READ, to `appends` and `reads`. Carrying out all
 * appends before all reads is then correct. The appends have at most `bytes` of log together, but the first is always
 * taken. The operations that stay keep their order. No operation passes one that is neither an APPEND nor a READ.
 *
 * A read may pass to behind a later append of its client if that append names no member that the read tests. Such a
 * read is `early` unless an append that creates the set was gathered before it. If the set was missing, an early read
 * finds nothing.
 */
void gather(struct op_queue *waiting, size_t bytes, struct op_queue *appends, struct op_queue *reads);

#endif
