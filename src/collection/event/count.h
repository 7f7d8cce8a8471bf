/* Event counters: items that hold a decimal number. */
#ifndef COLLECTION_EVENT_COUNT_H
#define COLLECTION_EVENT_COUNT_H

#include "collection/lane/lane.h"

/* Carries out the COUNT operations of the lane's batch. */
void count_start(struct lane *lane);

#endif
