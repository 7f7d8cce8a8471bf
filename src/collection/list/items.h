/*
 * The algebra of lists: what each list operation does to a sequence of items, whatever the items are stored as. Items are
 * slices, borrowed: what they point to must stay for as long as they are used.
 */
#ifndef COLLECTION_ITEMS_H
#define COLLECTION_ITEMS_H

#include "collection/op.h"
#include "util/buf.h"

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

/* What a range means in a list of `count` items: both ends are in, what is out of range is cut off. */
struct items_span items_range(size_t count, int64_t start, int64_t stop);

/* False when there is no such index. */
bool items_index(size_t count, int64_t index, size_t *at);

/* The ends of a list of `count` items from which a pop takes. */
struct items_span items_popped(size_t count, bool front, uint64_t wanted);

/* False when it is not in. */
bool items_find(const struct items *items, struct slice item, size_t *at);

/* How often a removal takes an item out at most, and from where on. */
uint64_t items_removals(int64_t count, bool *from_tail);

/* Takes out items that are equal to `item`, `most` at most; gives how many. */
size_t items_remove(struct items *items, uint64_t most, bool from_tail, struct slice item);

/* Leaves those of the span. */
void items_keep(struct items *items, struct items_span span);

/* Appends one item, parted by a space from what was appended since `start`. */
void items_join(struct buf *out, size_t start, struct slice item);

/*
 * Carries out a request on a sequence: fills in its `status`, `number`, and `at` and `size` of the text that is appended to
 * `text`. True when the sequence was changed, and then it may hold request->item.
 */
bool items_apply(struct items *items, struct list_request *request, struct buf *text);

#endif
