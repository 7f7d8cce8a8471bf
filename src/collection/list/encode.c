/* The stored form of a list: which parts go to new segments, and the base that refers to them. */
#include "collection/list/segmented_list.h"

/* A log shorter than this fraction of a base gets no segment. */
enum { MOVED_FRACTION = 4 };

static bool is_segment(const struct list_part *part)
{
	return part->id.n > 0;
}

static size_t log_size(const struct list_part *part)
{
	size_t size = 0;

	if (part->log_index && !part->items.list)
		return log_index_tokens(part->log_index, part->skip, part->keep).n;
	for (size_t i = 0; i < part->keep; i++)
		size += part->items.list[part->skip + i].n + 2;
	return size;
}

void list_part_log(const struct list_part *part, struct buf *out)
{
	char *p;

	if (part->log_index && !part->items.list) {
		buf_add_slice(out, log_index_tokens(part->log_index, part->skip, part->keep));
		return;
	}
	p = buf_reserve(out, log_size(part));
	for (size_t i = 0; i < part->keep; i++) {
		struct slice item = part->items.list[part->skip + i];
		*p++ = '+';
		memcpy(p, item.p, item.n);
		p += item.n;
		*p++ = ' ';
	}
	buf_commit(out, log_size(part));
}

/* --- compaction --- */

/* If the log and the segment beside it fit into one segment, plans to merge them. */
static void plan_absorption(struct list_part *log, struct list_part *beside, size_t segment_size)
{
	if (!is_segment(beside) || beside->needed || beside->keep < beside->count ||
		beside->kilobytes * (size_t)1024 + log_size(log) > segment_size)
		return;
	log->absorbs = beside->needed = true;
}

bool segmented_list_plan(struct segmented_list *list, size_t base_size, size_t segment_size, bool absorb)
{
	struct list_part *head = &list->parts[0], *tail = &list->parts[list->part_count - 1];

	if (list->tangled) {
		segmented_list_need_all(list);
		return true;
	}
	if (list->log_bytes <= base_size)
		return false;
	for (size_t i = 0; i < list->part_count; i++)
		list->parts[i].needed = list->parts[i].absorbs = false;
	head->rewritten = log_size(head) > base_size / MOVED_FRACTION;
	tail->rewritten = log_size(tail) > base_size / MOVED_FRACTION;
	if (absorb && tail->rewritten)
		plan_absorption(tail, tail - 1, segment_size);
	if (absorb && head->rewritten)
		plan_absorption(head, head + 1, segment_size);
	return true;
}

static void add_items(struct items *items, const struct list_part *part)
{
	for (size_t i = 0; i < part->keep; i++)
		items_add(items, log_index_item(part->log_index, part->skip + i));
}

static void absorb(struct list_part *log, struct list_part *first, struct list_part *second)
{
	struct items items = { 0 };

	add_items(&items, first);
	add_items(&items, second);
	first->keep = second->keep = 0;
	log->items = items;
	log->skip = 0;
	log->keep = items.count;
}

void segmented_list_spill(struct segmented_list *list, size_t base_size)
{
	struct list_part *tail = &list->parts[list->part_count - 1];

	tail->rewritten = list->is_list && log_size(tail) > base_size;
}

void segmented_list_compact(struct segmented_list *list, size_t base_size)
{
	struct list_part *head = &list->parts[0], *tail = &list->parts[list->part_count - 1];

	if (list->settled) {
		segmented_list_spill(list, base_size);
		return;
	}
	if (tail->absorbs)
		absorb(tail, tail - 1, tail);
	if (head->absorbs)
		absorb(head, head, head + 1);
}

/* --- the base --- */

static void add_ref(const struct list_part *part, struct buf *out)
{
	oplog_add_ref(out,
		&(struct oplog_ref){
			.id = part->id,
			.check = part->check,
			.count = (uint32_t)part->count,
			.skip = (uint32_t)part->skip,
			.keep = (uint32_t)part->keep,
		});
}

void segmented_list_encode(const struct segmented_list *list, struct slice written, struct buf *out)
{
	const struct list_part *head = &list->parts[0], *tail = &list->parts[list->part_count - 1];

	if (!head->rewritten)
		list_part_log(head, out);
	if (list->is_list)
		BUF_ADD(out, OPLOG_LIST_MARK);
	for (const struct list_part *part = head; part <= tail; part++) {
		if (part->rewritten)
			buf_add_slice(out, slice_of(written.p + part->refs_from, part->refs_to - part->refs_from));
		else if (is_segment(part) && part->keep)
			add_ref(part, out);
	}
	if (!tail->rewritten)
		list_part_log(tail, out);
}

void segmented_list_dropped(const struct segmented_list *list, struct buf *refs)
{
	for (size_t i = 0; i < list->part_count; i++) {
		const struct list_part *part = &list->parts[i];
		if (is_segment(part) && (part->rewritten || part->keep == 0))
			oplog_add_ref(refs, &(struct oplog_ref){ .id = part->id });
	}
}
