/*
 * Sets that are gone: both servers have a base that says since when, so that no word from before
 * counts. A set becomes gone when it is deleted, or when both copies together may lack a word.
 */
#ifndef COLLECTION_COPIES_GONE_H
#define COLLECTION_COPIES_GONE_H

#include "collection/copies/pair.h"

/* Writes a base that is gone to `next`, and returns it. */
struct slice gone_write(struct pair *pair, uint64_t horizon);

/*
 * Returns a horizon that deletes the copies that were read: up to their last word, and not up to
 * the time, since a word that follows may be from a clock that is behind. Words that are older than
 * clocks can be apart are deleted also if they arrive later. If a copy was not read, its last word
 * is not known, and the horizon is the time.
 */
uint64_t gone_horizon(struct pair *pair);

/*
 * If the set is just being created, so that its second copy is missing: waits, and then leaves with
 * false. Returns whether it is.
 */
bool gone_not_yet(struct pair *pair);

/*
 * For a pair that is not whole: makes the set gone, so that it counts as missing. It fails if the
 * set is just being created, or another write was faster.
 */
void gone_lose(struct pair *pair, pair_after *after);

#endif
