/*
 * Reads that only ask whether a base has changed, as most do. The layer remembers the CAS ids of
 * bases that were answered from the first copy alone:
 *
 *     GET of the CAS id of the first copy -> as remembered, and no server was absent since: answer
 *                                         -> else a read as any other
 */
#ifndef COLLECTION_COPIES_RECALL_H
#define COLLECTION_COPIES_RECALL_H

#include "collection/copies/pair.h"

struct recalls;

struct recalls *recalls_create(void);
void recalls_destroy(struct recalls *recalls);

/* Returns whether no call is in flight. */
bool recalls_idle(const struct recalls *recalls);

/* Remembers the base of the first copy, which is answered alone. */
void recall_keep(struct pair *pair);

/* Sends a read if its base is remembered; else returns false. Its result is as of read_start. */
bool recall_start(struct copies *copies, const struct call *call, struct waiter *asker);

#endif
