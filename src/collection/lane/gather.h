/*
 * Gathering what can be carried out together. Of the operations that wait for a key only those of one client have to keep their
 * order, for nobody can tell in which order those of different clients came. So additions and removals from all over the
 * queue become one append, and reads one fetch behind it.
 */
#ifndef COLLECTION_GATHER_H
#define COLLECTION_GATHER_H

#include "collection/op.h"

/*
 * Takes operations off `waiting`, of which the first is an APPEND or a READ: appends to the first queue and reads to the second,
 * which take effect as if all appends came first. At most `bytes` of log, but one append in any case. The others keep their
 * order. A read that a later append of its client is carried out before is `early`: it asks for members that the append does
 * not name, and still has to find nothing when that append makes the set and none before it did.
 */
void gather(struct op_queue *waiting, size_t bytes, struct op_queue *appends, struct op_queue *reads);

#endif
