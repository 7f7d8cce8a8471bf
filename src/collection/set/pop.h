/* Removing random members from a set. */
#ifndef COLLECTION_SET_POP_H
#define COLLECTION_SET_POP_H

#include "collection/lane/lane.h"

/* Carries out the POP operation of the lane's batch. */
void pop_start(struct lane *lane);

#endif
