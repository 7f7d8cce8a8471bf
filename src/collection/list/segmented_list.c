#include "collection/list/segmented_list.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/text/fold.h"
#include "util/alloc.h"

static struct list_part *head_of(const struct segmented_list *list)
{
	return &list->parts[0];
}

static struct list_part *tail_of(const struct segmented_list *list)
{
	return &list->parts[list->part_count - 1];
}

static bool is_loaded(const struct list_part *part)
{
	return part->log_index || part->items.list;
}

/* --- reading --- */

static bool read_log(struct segmented_list *list, struct list_part *part, struct slice log)
{
	part->log_index = log_index_create(log, NULL);
	if (!part->log_index)
		return false;
	part->count = part->keep = part->log_index->count;
	list->removes |= part->log_index->removals > 0;
	list->log_bytes += log.n;
	return true;
}

static void read_ref(struct list_part *part, const struct oplog_ref *ref)
{
	part->id = ref->id;
	part->check = ref->check;
	part->kilobytes = ref->kilobytes;
	part->count = ref->count;
	part->skip = ref->skip;
	part->keep = ref->keep;
}

bool segmented_list_read(struct segmented_list *list, struct slice base)
{
	struct oplog_base split;
	struct oplog_ref ref;
	size_t i = 1;

	*list = (struct segmented_list){ 0 };
	buf_add_slice(&list->base, base);
	(void)oplog_split(buf_slice(&list->base), &split);
	list->form = split.form;
	list->is_set = split.form == OPLOG_GOOD && split.block.n && !split.is_list;
	if (split.form != OPLOG_GOOD || list->is_set)
		return false;
	list->part_count = split.ref_count + 2;
	list->parts = xcalloc(list->part_count, sizeof(*list->parts));
	list->is_list = split.is_list;
	while (oplog_next_ref(&split.refs, &ref))
		read_ref(&list->parts[i++], &ref);
	if (!read_log(list, head_of(list), split.head) || !read_log(list, tail_of(list), split.log)) {
		list->form = OPLOG_CORRUPT;
		return false;
	}
	list->tangled |= list->removes;
	return true;
}

void segmented_list_of(struct segmented_list *list, struct items *items)
{
	*list = (struct segmented_list){ .parts = xcalloc(1, sizeof(*list->parts)), .part_count = 1, .is_list = true };
	list->parts->items = *items;
	list->parts->count = list->parts->keep = items->count;
	*items = (struct items){ 0 };
}

void segmented_list_free(struct segmented_list *list)
{
	for (size_t i = 0; list->parts && i < list->part_count; i++) {
		log_index_release(list->parts[i].log_index);
		items_free(&list->parts[i].items);
	}
	free(list->parts);
	buf_free(&list->base);
	*list = (struct segmented_list){ 0 };
}

size_t segmented_list_count(const struct segmented_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->part_count; i++)
		count += list->parts[i].keep;
	return count;
}

uint64_t segmented_list_bytes(const struct segmented_list *list)
{
	uint64_t bytes = buf_size(&list->base);

	for (size_t i = 0; i < list->part_count; i++)
		bytes += (uint64_t)list->parts[i].kilobytes * 1024;
	return bytes;
}

/* --- the segments that a request needs --- */

static void need_span(struct segmented_list *list, struct items_span span)
{
	size_t at = 0;

	for (size_t i = 0; i < list->part_count; i++) {
		struct list_part *part = &list->parts[i];
		if (span.count && part->keep && at < span.first + span.count && at + part->keep > span.first)
			part->needed |= !is_loaded(part);
		at += part->keep;
	}
}

void segmented_list_need_all(struct segmented_list *list)
{
	for (size_t i = 0; i < list->part_count; i++)
		list->parts[i].needed |= !is_loaded(&list->parts[i]);
}

void segmented_list_need_ends(struct segmented_list *list, uint64_t front, uint64_t back)
{
	size_t count = segmented_list_count(list);

	if (list->tangled) {
		segmented_list_need_all(list);
		return;
	}
	need_span(list, items_popped(count, true, front));
	need_span(list, items_popped(count, false, back));
}

static struct slice item_of(const struct list_part *part, size_t i)
{
	return part->items.list ? part->items.list[part->skip + i] : log_index_item(part->log_index, part->skip + i);
}

static bool find(const struct list_part *part, struct slice item, size_t *at)
{
	for (*at = 0; *at < part->keep; ++*at) {
		if (slice_equal(item_of(part, *at), item))
			return true;
	}
	return false;
}

void segmented_list_need(struct segmented_list *list, const struct list_request *request)
{
	size_t count = segmented_list_count(list), at;

	if (list->tangled) {
		segmented_list_need_all(list);
		return;
	}
	switch (request->verb) {
	case LIST_RANGE:
		need_span(list, items_range(count, request->start, request->stop));
		break;
	case LIST_POSITION:
		if (!find(head_of(list), request->item, &at))
			segmented_list_need_all(list);
		break;
	case LIST_REMOVE:
		segmented_list_need_all(list);
		break;
	case LIST_SET:
		if (items_index(count, request->start, &at))
			need_span(list, (struct items_span){ at, 1 });
		break;
	case LIST_POP_FRONT:
		segmented_list_need_ends(list, request->count, 0);
		break;
	case LIST_POP_BACK:
		segmented_list_need_ends(list, 0, request->count);
		break;
	default:
		break;
	}
}

bool segmented_list_repeats(const struct segmented_list *list)
{
	struct slice *ids = xcalloc(list->part_count, sizeof(*ids));
	size_t count = 0;
	bool repeats;

	for (size_t i = 0; i < list->part_count; i++) {
		if (list->parts[i].id.n)
			ids[count++] = list->parts[i].id;
	}
	repeats = oplog_ids_repeat(ids, count);
	free(ids);
	return repeats;
}

bool segmented_list_load(struct list_part *part, struct log_index *log_index)
{
	assert(!part->log_index);
	part->log_index = log_index_share(log_index);
	return log_index->count == part->count && log_index->removals == 0;
}

/* --- a tangled list --- */

static void reverse(struct items *items)
{
	for (size_t i = 0, j = items->count; i + 1 < j; i++) {
		struct slice item = items->list[i];
		items->list[i] = items->list[--j];
		items->list[j] = item;
	}
}

/* From right to left: a removal takes back the equal items to its left. */
static void settle_part(const struct list_part *part, struct fold *removed, struct items *items)
{
	for (size_t i = part->keep; i-- > 0;) {
		struct slice item = item_of(part, i);
		if (log_index_removes(part->log_index, part->skip + i))
			fold_add(removed, item);
		else if (!fold_contains(removed, item))
			items_add(items, item);
	}
}

void segmented_list_settle(struct segmented_list *list, uint64_t seed)
{
	struct fold removed = { .seed = seed };
	struct items items = { 0 };

	for (size_t i = list->part_count; i-- > 0;) {
		settle_part(&list->parts[i], &removed, &items);
		list->parts[i].keep = 0;
	}
	fold_free(&removed);
	reverse(&items);
	tail_of(list)->items = items;
	tail_of(list)->skip = 0;
	tail_of(list)->keep = items.count;
	list->tangled = false;
	list->settled = true;
}

/* --- requests --- */

/* Copies the items of a part to an array, in which they can be changed. */
static void loosen(struct list_part *part)
{
	struct items items = { 0 };

	for (size_t i = 0; i < part->keep; i++)
		items_add(&items, item_of(part, i));
	items_free(&part->items);
	part->items = items;
	part->skip = 0;
}

static bool is_segment(const struct list_part *part)
{
	return part->id.n > 0;
}

static void changed(struct list_part *part)
{
	part->keep = part->items.count;
	part->rewritten = is_segment(part);
}

static void join_item(struct buf *out, size_t start, struct slice item)
{
	if (buf_size(out) > start)
		BUF_ADD(out, " ");
	buf_add_slice(out, item);
}

static void join(const struct segmented_list *list, struct items_span span, bool backwards,
	struct list_request *request, struct buf *text)
{
	size_t at = 0, end = span.first + span.count;

	for (size_t n = 0; n < list->part_count && at < end; n++) {
		const struct list_part *part = &list->parts[backwards ? list->part_count - 1 - n : n];
		size_t from = span.first > at ? span.first - at : 0;
		size_t to = end - at < part->keep ? end - at : part->keep;
		for (size_t i = from; i < to; i++)
			join_item(text, request->at, item_of(part, backwards ? part->keep - 1 - i : i));
		at += part->keep;
	}
	request->size = buf_size(text) - request->at;
}

static void drop(struct segmented_list *list, size_t count, bool front)
{
	for (size_t n = 0; n < list->part_count && count; n++) {
		struct list_part *part = &list->parts[front ? n : list->part_count - 1 - n];
		size_t taken = count < part->keep ? count : part->keep;
		part->keep -= taken;
		part->skip += front ? taken : 0;
		count -= taken;
	}
}

static bool pop(struct segmented_list *list, struct list_request *request, struct buf *text)
{
	bool front = request->verb == LIST_POP_FRONT;
	size_t n = items_popped(segmented_list_count(list), true, request->count).count;

	join(list, (struct items_span){ 0, n }, !front, request, text);
	drop(list, n, front);
	return n > 0;
}

static bool trim(struct segmented_list *list, const struct list_request *request)
{
	size_t count = segmented_list_count(list);
	struct items_span span = items_range(count, request->start, request->stop);

	drop(list, span.first, true);
	drop(list, count - span.first - span.count, false);
	return span.count < count;
}

static void position(const struct segmented_list *list, struct list_request *request)
{
	size_t before = 0, at;

	request->status = OUTCOME_MISSING;
	for (size_t i = 0; i < list->part_count; i++) {
		const struct list_part *part = &list->parts[i];
		if (part->keep && find(part, request->item, &at)) {
			request->status = OUTCOME_DONE;
			request->number = before + at;
			return;
		}
		before += part->keep;
	}
}

static bool remove_items(struct segmented_list *list, struct list_request *request)
{
	bool from_tail;
	uint64_t most = items_removals(request->start, &from_tail);
	size_t at;

	for (size_t n = 0; n < list->part_count && most; n++) {
		struct list_part *part = &list->parts[from_tail ? list->part_count - 1 - n : n];
		if (part->keep == 0 || !find(part, request->item, &at))
			continue;
		loosen(part);
		size_t removed = items_remove(&part->items, most, from_tail, request->item);
		changed(part);
		most -= removed;
		request->number += removed;
	}
	return request->number > 0;
}

static bool set_item(struct segmented_list *list, struct list_request *request)
{
	size_t at;

	if (!items_index(segmented_list_count(list), request->start, &at)) {
		request->status = OUTCOME_RANGE;
		return false;
	}
	for (size_t i = 0; i < list->part_count; i++) {
		struct list_part *part = &list->parts[i];
		if (at < part->keep) {
			loosen(part);
			part->items.list[at] = request->item;
			part->rewritten = is_segment(part);
			break;
		}
		at -= part->keep;
	}
	return true;
}

bool segmented_list_apply(struct segmented_list *list, struct list_request *request, struct buf *text)
{
	request->status = OUTCOME_DONE;
	request->number = request->size = 0;
	request->at = buf_size(text);
	switch (request->verb) {
	case LIST_RANGE:
		join(list, items_range(segmented_list_count(list), request->start, request->stop), false, request,
			text);
		return false;
	case LIST_LENGTH:
		request->number = segmented_list_count(list);
		return false;
	case LIST_POSITION:
		position(list, request);
		return false;
	case LIST_POP_FRONT:
	case LIST_POP_BACK:
		return pop(list, request, text);
	case LIST_REMOVE:
		return remove_items(list, request);
	case LIST_SET:
		return set_item(list, request);
	case LIST_TRIM:
		return trim(list, request);
	}
	return false;
}
