/* The machine that reads and rewrites a list. */
#ifndef COLLECTION_LIST_LIST_H
#define COLLECTION_LIST_LIST_H

#include "collection/lane/lane.h"

/* Carries out the OP_LIST operations of the lane's batch. */
void list_start(struct lane *lane);

#endif
