#ifndef COLLECTION_LIST_ELEMENTS_H
#define COLLECTION_LIST_ELEMENTS_H

#include "util/slice.h"

/*
 * A sequence of elements, which are borrowed slices: the bytes must outlive the sequence. All
 * zeroes is the empty sequence.
 */
struct elements {
	struct slice *list;
	size_t count, capacity;
};

void elements_free(struct elements *elements);
void elements_add(struct elements *elements, struct slice element);

#endif
