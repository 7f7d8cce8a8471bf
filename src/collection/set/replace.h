/* Replacing a whole set or list. */
#ifndef COLLECTION_SET_REPLACE_H
#define COLLECTION_SET_REPLACE_H

#include "collection/lane/lane.h"

/* Carries out a REPLACE operation. */
void replace_start(struct lane *lane);

#endif
