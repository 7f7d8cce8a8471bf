#include "collection/list/elements.h"

#include <stdlib.h>

#include "util/alloc.h"

enum { CAPACITY_MIN = 32 };

void elements_free(struct elements *elements)
{
	free(elements->list);
	*elements = (struct elements){ 0 };
}

void elements_add(struct elements *elements, struct slice element)
{
	if (elements->count == elements->capacity) {
		elements->capacity = elements->capacity ? elements->capacity * 2 : CAPACITY_MIN;
		elements->list =
			xrealloc(elements->list, elements->capacity * sizeof(*elements->list));
	}
	elements->list[elements->count++] = element;
}

size_t elements_remove(
	struct elements *elements, uint64_t most, bool from_tail, struct slice element)
{
	size_t removed = 0;

	for (size_t n = 0; n < elements->count; n++) {
		size_t i = from_tail ? elements->count - 1 - n : n;
		if (removed < most && slice_equal(elements->list[i], element))
			removed++;
		else
			elements->list[from_tail ? i + removed : i - removed] = elements->list[i];
	}
	elements->count -= removed;
	if (from_tail && removed)
		memmove(elements->list, elements->list + removed,
			elements->count * sizeof(*elements->list));
	return removed;
}

void elements_reverse(struct elements *elements)
{
	for (size_t i = 0, j = elements->count; i + 1 < j; i++) {
		struct slice element = elements->list[i];
		elements->list[i] = elements->list[--j];
		elements->list[j] = element;
	}
}
