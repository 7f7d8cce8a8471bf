/* Replacing a whole set or list. */
#ifndef COLLECTION_SET_REPLACE_H
#define COLLECTION_SET_REPLACE_H

#include "collection/lane/lane.h"

/* Carries out the REPLACE operation of the lane's batch. */
void replace_start(struct lane *lane);

#endif
