/* How a chain is stored: which of its parts go to segments, and the base that refers to them. */
#include "collection/chain.h"

/* A log shorter than this part of a base is not worth a segment of its own. */
enum { MOVED_PART = 4 };

static bool is_segment(const struct chain_part *part)
{
	return part->id.n > 0;
}

static size_t log_size(const struct chain_part *part)
{
	size_t size = 0;

	if (part->pack && !part->items.list)
		return pack_tokens(part->pack, part->skip, part->keep).n;
	for (size_t i = 0; i < part->keep; i++)
		size += part->items.list[part->skip + i].n + 2;
	return size;
}

void chain_part_log(const struct chain_part *part, struct buf *out)
{
	char *p;

	if (part->pack && !part->items.list) {
		buf_add_slice(out, pack_tokens(part->pack, part->skip, part->keep));
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

/* The segment beside a log that is moved may go with it, when both fit into one. */
static void plan_absorption(struct chain_part *log, struct chain_part *beside, size_t segment_size)
{
	if (!is_segment(beside) || beside->wanted || beside->keep < beside->count ||
		beside->kilobytes * (size_t)1024 + log_size(log) > segment_size)
		return;
	log->absorbs = beside->wanted = true;
}

bool chain_plan(struct chain *chain, size_t base_size, size_t segment_size, bool absorb)
{
	struct chain_part *head = &chain->parts[0], *tail = &chain->parts[chain->part_count - 1];

	if (chain->tangled) {
		chain_need_all(chain);
		return true;
	}
	if (chain->log_bytes <= base_size)
		return false;
	for (size_t i = 0; i < chain->part_count; i++)
		chain->parts[i].wanted = chain->parts[i].absorbs = false;
	head->rewritten = log_size(head) > base_size / MOVED_PART;
	tail->rewritten = log_size(tail) > base_size / MOVED_PART;
	if (absorb && tail->rewritten)
		plan_absorption(tail, tail - 1, segment_size);
	if (absorb && head->rewritten)
		plan_absorption(head, head + 1, segment_size);
	return true;
}

static void add_items(struct items *items, const struct chain_part *part)
{
	for (size_t i = 0; i < part->keep; i++)
		items_add(items, pack_item(part->pack, part->skip + i));
}

static void absorb(struct chain_part *log, struct chain_part *first, struct chain_part *second)
{
	struct items items = { 0 };

	add_items(&items, first);
	add_items(&items, second);
	first->keep = second->keep = 0;
	log->items = items;
	log->skip = 0;
	log->keep = items.count;
}

void chain_spill(struct chain *chain, size_t base_size)
{
	struct chain_part *tail = &chain->parts[chain->part_count - 1];

	tail->rewritten = chain->is_list && log_size(tail) > base_size;
}

void chain_compact(struct chain *chain, size_t base_size)
{
	struct chain_part *head = &chain->parts[0], *tail = &chain->parts[chain->part_count - 1];

	if (chain->settled) {
		chain_spill(chain, base_size);
		return;
	}
	if (tail->absorbs)
		absorb(tail, tail - 1, tail);
	if (head->absorbs)
		absorb(head, head, head + 1);
}

/* --- the base --- */

void chain_encode(const struct chain *chain, struct slice written, struct buf *out)
{
	const struct chain_part *head = &chain->parts[0], *tail = &chain->parts[chain->part_count - 1];

	if (!head->rewritten)
		chain_part_log(head, out);
	if (chain->is_list)
		BUF_ADD(out, OPLOG_LIST_MARK);
	for (const struct chain_part *part = head; part <= tail; part++) {
		if (part->rewritten)
			buf_add_slice(out, slice_of(written.p + part->refs_from, part->refs_to - part->refs_from));
		else if (is_segment(part) && part->keep)
			oplog_add_ref(out, part->id, part->count, part->skip, part->keep);
	}
	if (!tail->rewritten)
		chain_part_log(tail, out);
}

void chain_dropped(const struct chain *chain, struct buf *refs)
{
	for (size_t i = 0; i < chain->part_count; i++) {
		const struct chain_part *part = &chain->parts[i];
		if (is_segment(part) && (part->rewritten || part->keep == 0))
			oplog_add_ref(refs, part->id, part->count, 0, part->count);
	}
}
