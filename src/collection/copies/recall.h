/*
 * Reads that only compare the CAS id of a base: most bases have the one that was read last. The CAS
 * ids of bases that were answered from the first copy only are kept in memory:
 *
 *     GET of the CAS id of the first copy -> the same, and no server was absent since: answer
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

/* Keeps the CAS id of the first copy, from which a read is answered. */
void recall_keep(struct pair *pair);

/* Sends such a read, and returns true, if the CAS id is kept. Its result is as of read_start. */
bool recall_start(struct copies *copies, const struct call *call, struct waiter *asker);

#endif
