/*
 * Gathers queued operations that can be carried out together. Only the operations of one client
 * must keep their order; no client can observe the order of different clients. So additions and
 * removals of all clients become one append, and reads become one fetch after it.
 */
#ifndef COLLECTION_LANE_GATHER_H
#define COLLECTION_LANE_GATHER_H

#include "collection/lane/queue.h"
#include "collection/op.h"

/*
 * Moves the operations of the next batch from the queue, which must not be empty, to `batch`:
 * the first one of the client at the front, and all operations that can share its batch, first of
 * the same client, then of all others. This ends the client's turn. A batch of appends has at
 * most `bytes` of log, but the first append is always taken. Except for the first operation, none
 * that queue_drops at `now` is taken.
 *
 * If `appends_first`, and the batch begins with an APPEND or a READ, it may have both: then
 * `batch` has the appends, and `reads` the reads. It is correct to carry out all appends before
 * all reads. If it begins with neither, `reads` stays empty.
 *
 * A read may move after a later append of its client if that append does not name any member
 * that the read tests. Such a read is `early` unless an append that creates the set was
 * gathered before it. If the set was missing, the result of an early read is empty.
 */
void gather(struct queues *queues, struct queue *queue, bool appends_first, size_t bytes,
	uint64_t now, struct op_queue *batch, struct op_queue *reads);

#endif
