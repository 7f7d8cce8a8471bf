/*
 * A sequence of items, and the part of it that a request means. Items are borrowed slices: the bytes must outlive their use.
 */
#ifndef COLLECTION_LIST_ITEMS_H
#define COLLECTION_LIST_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

/* All zeroes is the empty sequence. */
struct items {
	struct slice *list;
	size_t count, capacity;
};

/* Neighbours in a sequence. */
struct items_span {
	size_t first, count;
};

void items_free(struct items *items);
void items_add(struct items *items, struct slice item);

/* The items from `start` to `stop` of a list of `count` items: both ends belong to the range, which is clipped to the list. */
struct items_span items_range(size_t count, int64_t start, int64_t stop);

/* The position that an index means; false when the list has no such index. */
bool items_index(size_t count, int64_t index, size_t *at);

/* The items that a pop takes from one end of a list of `count` items. */
struct items_span items_popped(size_t count, bool front, uint64_t wanted);

/* The number of equal items that a removal takes out at most, and the end at which it starts. */
uint64_t items_removals(int64_t count, bool *from_tail);

/* Takes out at most `most` items that are equal to `item`; returns how many. */
size_t items_remove(struct items *items, uint64_t most, bool from_tail, struct slice item);

#endif
