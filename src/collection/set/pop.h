/* Taking random members out of a set. */
#ifndef COLLECTION_SET_POP_H
#define COLLECTION_SET_POP_H

#include "collection/lane/lane.h"

/* Carries out a POP operation. */
void pop_start(struct lane *lane);

#endif
