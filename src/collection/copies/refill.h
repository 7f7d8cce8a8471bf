/* A step of the programs of pair.h: both servers get the parts of a set. */
#ifndef COLLECTION_COPIES_REFILL_H
#define COLLECTION_COPIES_REFILL_H

#include "collection/copies/pair.h"

enum refilled { REFILL_DONE, REFILL_LOST, REFILL_FAILED };

/*
 * Copies each part of these references to the server that lacks it. LOST: both lack one. `done` is
 * never called within this function.
 */
void refill_start(struct pair *pair, struct slice refs,
	void (*done)(struct pair *pair, enum refilled outcome));

#endif
