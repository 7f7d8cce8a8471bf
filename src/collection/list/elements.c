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
