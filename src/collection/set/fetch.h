/* Looking for parts that a set has lost. fetch.c also has the machines that read, and that take random members out. */
#ifndef COLLECTION_SET_FETCH_H
#define COLLECTION_SET_FETCH_H

#include "collection/lane/lane.h"

/* Called when a part of a set was missing: a read in the background checks the set, and removes it if it is incomplete. */
void fetch_suspect(struct lanes *lanes, struct slice key);

#endif
