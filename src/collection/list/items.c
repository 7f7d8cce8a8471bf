#include "collection/list/items.h"

#include <stdlib.h>

#include "util/alloc.h"

enum { CAPACITY_MIN = 32 };

void items_free(struct items *items)
{
	free(items->list);
	*items = (struct items){ 0 };
}

void items_add(struct items *items, struct slice item)
{
	if (items->count == items->capacity) {
		items->capacity = items->capacity ? items->capacity * 2 : CAPACITY_MIN;
		items->list = xrealloc(items->list, items->capacity * sizeof(*items->list));
	}
	items->list[items->count++] = item;
}

/* The position of an index, where a negative index counts from the end. Negative when it is before the start. */
static int64_t from_start(size_t count, int64_t index)
{
	return index < 0 ? index + (int64_t)count : index;
}

struct items_span items_range(size_t count, int64_t start, int64_t stop)
{
	int64_t first = from_start(count, start), last = from_start(count, stop);

	if (first < 0)
		first = 0;
	if (last >= (int64_t)count)
		last = (int64_t)count - 1;
	return first > last ? (struct items_span){ 0, 0 }
			    : (struct items_span){ (size_t)first, (size_t)(last - first) + 1 };
}

bool items_index(size_t count, int64_t index, size_t *at)
{
	int64_t i = from_start(count, index);

	*at = (size_t)i;
	return i >= 0 && i < (int64_t)count;
}

struct items_span items_popped(size_t count, bool front, uint64_t wanted)
{
	size_t n = wanted < count ? (size_t)wanted : count;

	return (struct items_span){ front ? 0 : count - n, n };
}

uint64_t items_removals(int64_t count, bool *from_tail)
{
	*from_tail = count < 0;
	return count == 0 ? UINT64_MAX : count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
}

size_t items_remove(struct items *items, uint64_t most, bool from_tail, struct slice item)
{
	size_t removed = 0;

	for (size_t n = 0; n < items->count; n++) {
		size_t i = from_tail ? items->count - 1 - n : n;
		if (removed < most && slice_equal(items->list[i], item))
			removed++;
		else
			items->list[from_tail ? i + removed : i - removed] = items->list[i];
	}
	items->count -= removed;
	if (from_tail && removed)
		memmove(items->list, items->list + removed, items->count * sizeof(*items->list));
	return removed;
}
