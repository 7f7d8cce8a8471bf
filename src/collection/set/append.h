/* Adding and removing members of a set, and pushing to a list, without reading it. */
#ifndef COLLECTION_SET_APPEND_H
#define COLLECTION_SET_APPEND_H

#include "collection/lane/lane.h"

/* Carries out the APPEND operations of the lane's batch. */
void append_start(struct lane *lane);

#endif
