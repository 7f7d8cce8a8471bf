/* Reading and rewriting a list. */
#ifndef COLLECTION_LIST_LIST_H
#define COLLECTION_LIST_LIST_H

#include "collection/lane/lane.h"

/* Carries out the LIST operations of the lane's batch. */
void list_start(struct lane *lane);

#endif
