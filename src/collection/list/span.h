/* Ranges of adjacent elements of a sequence, and the indexes of requests. */
#ifndef COLLECTION_LIST_SPAN_H
#define COLLECTION_LIST_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	size_t first, count;
};

/* Returns the position for an index. Negative if it is before the start. */
static inline int64_t span_start(size_t count, int64_t index)
{
	return index < 0 ? index + (int64_t)count : index;
}

/*
 * Returns the elements from `start` to `stop`, inclusive, of a list of `count` elements. The
 * range is clipped to the list. A negative index counts from the end.
 */
static inline struct span span_of_range(size_t count, int64_t start, int64_t stop)
{
	int64_t first = span_start(count, start), last = span_start(count, stop);

	if (first < 0)
		first = 0;
	if (last >= (int64_t)count)
		last = (int64_t)count - 1;
	return first > last ? (struct span){ 0, 0 }
			    : (struct span){ (size_t)first, (size_t)(last - first) + 1 };
}

/* Returns the elements that a pop takes from one end of a list of `count` elements. */
static inline struct span span_of_end(size_t count, bool front, uint64_t wanted)
{
	size_t n = wanted < count ? (size_t)wanted : count;

	return (struct span){ front ? 0 : count - n, n };
}

/* Stores the position for an index. Returns false if the list has no such index. */
static inline bool span_index(size_t count, int64_t index, size_t *at)
{
	int64_t i = span_start(count, index);

	*at = (size_t)i;
	return i >= 0 && i < (int64_t)count;
}

#endif
