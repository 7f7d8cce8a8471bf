#ifndef COLLECTION_LIST_ELEMENTS_H
#define COLLECTION_LIST_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

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

/* Removes at most `most` elements that are equal to `element`. Returns how many were removed. */
size_t elements_remove(
	struct elements *elements, uint64_t most, bool from_tail, struct slice element);

void elements_reverse(struct elements *elements);

#endif
