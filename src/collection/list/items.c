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

/* From the start, where an index below 0 counts from the end; below 0 still when it is before the start. */
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

bool items_find(const struct items *items, struct slice item, size_t *at)
{
	for (*at = 0; *at < items->count; ++*at) {
		if (slice_equal(items->list[*at], item))
			return true;
	}
	return false;
}

uint64_t items_removals(int64_t count, bool *from_tail)
{
	*from_tail = count < 0;
	return count == 0 ? UINT64_MAX : count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
}

static size_t remove_from_head(struct items *items, uint64_t most, struct slice item)
{
	size_t removed = 0;

	for (size_t i = 0; i < items->count; i++) {
		if (removed < most && slice_equal(items->list[i], item))
			removed++;
		else
			items->list[i - removed] = items->list[i];
	}
	items->count -= removed;
	return removed;
}

static size_t remove_from_tail(struct items *items, uint64_t most, struct slice item)
{
	size_t removed = 0;

	for (size_t i = items->count; i-- > 0;) {
		if (removed < most && slice_equal(items->list[i], item))
			removed++;
		else
			items->list[i + removed] = items->list[i];
	}
	items->count -= removed;
	if (removed)
		memmove(items->list, items->list + removed, items->count * sizeof(*items->list));
	return removed;
}

size_t items_remove(struct items *items, uint64_t most, bool from_tail, struct slice item)
{
	return (from_tail ? remove_from_tail : remove_from_head)(items, most, item);
}

void items_keep(struct items *items, struct items_span span)
{
	if (span.first && span.count)
		memmove(items->list, items->list + span.first, span.count * sizeof(*items->list));
	items->count = span.count;
}

void items_join(struct buf *out, size_t start, struct slice item)
{
	if (buf_size(out) > start)
		BUF_ADD(out, " ");
	buf_add_slice(out, item);
}

static void join(const struct items *items, struct items_span span, struct list_request *request, struct buf *text)
{
	bool backwards = request->verb == LIST_POP_BACK;

	for (size_t i = 0; i < span.count; i++) {
		size_t at = backwards ? span.count - 1 - i : i;
		items_join(text, request->at, items->list[span.first + at]);
	}
	request->size = buf_size(text) - request->at;
}

static bool pop(struct items *items, struct list_request *request, struct buf *text)
{
	bool front = request->verb == LIST_POP_FRONT;
	struct items_span span = items_popped(items->count, front, request->count);

	join(items, span, request, text);
	if (span.count == 0)
		return false;
	items_keep(items, (struct items_span){ front ? span.count : 0, items->count - span.count });
	return true;
}

bool items_apply(struct items *items, struct list_request *request, struct buf *text)
{
	size_t at = 0, before = items->count;
	struct items_span span;
	bool from_tail = false;
	uint64_t most;

	request->status = OUTCOME_DONE;
	request->number = request->size = 0;
	request->at = buf_size(text);
	switch (request->verb) {
	case LIST_RANGE:
		join(items, items_range(items->count, request->start, request->stop), request, text);
		return false;
	case LIST_LENGTH:
		request->number = items->count;
		return false;
	case LIST_POSITION:
		request->status = items_find(items, request->item, &at) ? OUTCOME_DONE : OUTCOME_MISSING;
		request->number = at;
		return false;
	case LIST_POP_FRONT:
	case LIST_POP_BACK:
		return pop(items, request, text);
	case LIST_REMOVE:
		most = items_removals(request->start, &from_tail);
		request->number = items_remove(items, most, from_tail, request->item);
		return request->number > 0;
	case LIST_SET:
		if (!items_index(items->count, request->start, &at)) {
			request->status = OUTCOME_RANGE;
			return false;
		}
		items->list[at] = request->item;
		return true;
	case LIST_TRIM:
		span = items_range(items->count, request->start, request->stop);
		items_keep(items, span);
		return span.count < before;
	}
	return false;
}
