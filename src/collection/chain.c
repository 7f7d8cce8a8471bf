#include "collection/chain.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/text/fold.h"
#include "util/alloc.h"

static struct chain_part *head_of(const struct chain *chain)
{
	return &chain->parts[0];
}

static struct chain_part *tail_of(const struct chain *chain)
{
	return &chain->parts[chain->part_count - 1];
}

static bool is_loaded(const struct chain_part *part)
{
	return part->pack || part->items.list;
}

/* --- reading --- */

static bool read_log(struct chain *chain, struct chain_part *part, struct slice log)
{
	part->pack = pack_create(log, NULL);
	if (!part->pack)
		return false;
	part->count = part->keep = part->pack->count;
	chain->removes |= part->pack->removals > 0;
	chain->log_bytes += log.n;
	return true;
}

static void read_ref(struct chain_part *part, const struct oplog_ref *ref)
{
	part->id = ref->id;
	part->kilobytes = ref->kilobytes;
	part->count = ref->count;
	part->skip = ref->skip;
	part->keep = ref->keep;
}

bool chain_read(struct chain *chain, struct slice base)
{
	struct oplog_base split;
	struct oplog_ref ref;
	size_t i = 1;

	*chain = (struct chain){ 0 };
	buf_add_slice(&chain->base, base);
	(void)oplog_split(buf_slice(&chain->base), &split);
	chain->form = split.form;
	chain->is_set = split.form == OPLOG_GOOD && split.block.n && !split.is_list;
	if (split.form != OPLOG_GOOD || chain->is_set)
		return false;
	chain->part_count = split.ref_count + 2;
	chain->parts = xcalloc(chain->part_count, sizeof(*chain->parts));
	chain->is_list = split.is_list;
	while (oplog_next_ref(&split.refs, &ref))
		read_ref(&chain->parts[i++], &ref);
	if (!read_log(chain, head_of(chain), split.head) || !read_log(chain, tail_of(chain), split.log)) {
		chain->form = OPLOG_CORRUPT;
		return false;
	}
	chain->tangled |= chain->removes;
	return true;
}

void chain_free(struct chain *chain)
{
	for (size_t i = 0; chain->parts && i < chain->part_count; i++) {
		pack_release(chain->parts[i].pack);
		items_free(&chain->parts[i].items);
	}
	free(chain->parts);
	buf_free(&chain->base);
	*chain = (struct chain){ 0 };
}

size_t chain_count(const struct chain *chain)
{
	size_t count = 0;

	for (size_t i = 0; i < chain->part_count; i++)
		count += chain->parts[i].keep;
	return count;
}

/* --- what is needed --- */

static void need_span(struct chain *chain, struct items_span span)
{
	size_t at = 0;

	for (size_t i = 0; i < chain->part_count; i++) {
		struct chain_part *part = &chain->parts[i];
		if (span.count && part->keep && at < span.first + span.count && at + part->keep > span.first)
			part->wanted |= !is_loaded(part);
		at += part->keep;
	}
}

void chain_need_all(struct chain *chain)
{
	for (size_t i = 0; i < chain->part_count; i++)
		chain->parts[i].wanted |= !is_loaded(&chain->parts[i]);
}

void chain_need_ends(struct chain *chain, uint64_t front, uint64_t back)
{
	size_t count = chain_count(chain);

	if (chain->tangled) {
		chain_need_all(chain);
		return;
	}
	need_span(chain, items_popped(count, true, front));
	need_span(chain, items_popped(count, false, back));
}

static struct slice item_of(const struct chain_part *part, size_t i)
{
	return part->items.list ? part->items.list[part->skip + i] : pack_item(part->pack, part->skip + i);
}

static bool find(const struct chain_part *part, struct slice item, size_t *at)
{
	for (*at = 0; *at < part->keep; ++*at) {
		if (slice_equal(item_of(part, *at), item))
			return true;
	}
	return false;
}

void chain_need(struct chain *chain, const struct list_request *request)
{
	size_t count = chain_count(chain), at;

	if (chain->tangled) {
		chain_need_all(chain);
		return;
	}
	switch (request->verb) {
	case LIST_RANGE:
		need_span(chain, items_range(count, request->start, request->stop));
		break;
	case LIST_POSITION:
		if (!find(head_of(chain), request->item, &at))
			chain_need_all(chain);
		break;
	case LIST_REMOVE:
		chain_need_all(chain);
		break;
	case LIST_SET:
		if (items_index(count, request->start, &at))
			need_span(chain, (struct items_span){ at, 1 });
		break;
	case LIST_POP_FRONT:
		chain_need_ends(chain, request->count, 0);
		break;
	case LIST_POP_BACK:
		chain_need_ends(chain, 0, request->count);
		break;
	default:
		break;
	}
}

bool chain_load(struct chain_part *part, struct pack *pack)
{
	assert(!part->pack);
	part->pack = pack_share(pack);
	return pack->count == part->count && pack->removals == 0;
}

/* --- a tangled one --- */

static void reverse(struct items *items)
{
	for (size_t i = 0, j = items->count; i + 1 < j; i++) {
		struct slice item = items->list[i];
		items->list[i] = items->list[--j];
		items->list[j] = item;
	}
}

/* From right to left: what was removed further right is out. */
static void settle_part(const struct chain_part *part, struct fold *removed, struct items *items)
{
	for (size_t i = part->keep; i-- > 0;) {
		struct slice item = item_of(part, i);
		if (pack_removes(part->pack, part->skip + i))
			fold_add(removed, item);
		else if (!fold_contains(removed, item))
			items_add(items, item);
	}
}

void chain_settle(struct chain *chain, uint64_t seed)
{
	struct fold removed = { .seed = seed };
	struct items items = { 0 };

	for (size_t i = chain->part_count; i-- > 0;) {
		settle_part(&chain->parts[i], &removed, &items);
		chain->parts[i].keep = 0;
	}
	fold_free(&removed);
	reverse(&items);
	tail_of(chain)->items = items;
	tail_of(chain)->skip = 0;
	tail_of(chain)->keep = items.count;
	chain->tangled = false;
	chain->settled = true;
}

/* --- what a request does --- */

/* Makes the items of a part that count such that they can be changed one by one. */
static void loosen(struct chain_part *part)
{
	struct items items = { 0 };

	for (size_t i = 0; i < part->keep; i++)
		items_add(&items, item_of(part, i));
	items_free(&part->items);
	part->items = items;
	part->skip = 0;
}

static bool is_segment(const struct chain_part *part)
{
	return part->id.n > 0;
}

static void changed(struct chain_part *part)
{
	part->keep = part->items.count;
	part->rewritten = is_segment(part);
}

static void join(const struct chain *chain, struct items_span span, bool backwards, struct list_request *request,
	struct buf *text)
{
	size_t at = 0, end = span.first + span.count;

	for (size_t n = 0; n < chain->part_count && at < end; n++) {
		const struct chain_part *part = &chain->parts[backwards ? chain->part_count - 1 - n : n];
		size_t from = span.first > at ? span.first - at : 0;
		size_t to = end - at < part->keep ? end - at : part->keep;
		for (size_t i = from; i < to; i++)
			items_join(text, request->at, item_of(part, backwards ? part->keep - 1 - i : i));
		at += part->keep;
	}
	request->size = buf_size(text) - request->at;
}

static void drop(struct chain *chain, size_t count, bool front)
{
	for (size_t n = 0; n < chain->part_count && count; n++) {
		struct chain_part *part = &chain->parts[front ? n : chain->part_count - 1 - n];
		size_t taken = count < part->keep ? count : part->keep;
		part->keep -= taken;
		part->skip += front ? taken : 0;
		count -= taken;
	}
}

static bool pop(struct chain *chain, struct list_request *request, struct buf *text)
{
	bool front = request->verb == LIST_POP_FRONT;
	size_t n = items_popped(chain_count(chain), true, request->count).count;

	join(chain, (struct items_span){ 0, n }, !front, request, text);
	drop(chain, n, front);
	return n > 0;
}

static bool trim(struct chain *chain, const struct list_request *request)
{
	size_t count = chain_count(chain);
	struct items_span span = items_range(count, request->start, request->stop);

	drop(chain, span.first, true);
	drop(chain, count - span.first - span.count, false);
	return span.count < count;
}

static void position(const struct chain *chain, struct list_request *request)
{
	size_t before = 0, at;

	request->status = OUTCOME_MISSING;
	for (size_t i = 0; i < chain->part_count; i++) {
		const struct chain_part *part = &chain->parts[i];
		if (part->keep && find(part, request->item, &at)) {
			request->status = OUTCOME_DONE;
			request->number = before + at;
			return;
		}
		before += part->keep;
	}
}

static bool remove_items(struct chain *chain, struct list_request *request)
{
	bool from_tail;
	uint64_t most = items_removals(request->start, &from_tail);
	size_t at;

	for (size_t n = 0; n < chain->part_count && most; n++) {
		struct chain_part *part = &chain->parts[from_tail ? chain->part_count - 1 - n : n];
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

static bool set_item(struct chain *chain, struct list_request *request)
{
	size_t at;

	if (!items_index(chain_count(chain), request->start, &at)) {
		request->status = OUTCOME_RANGE;
		return false;
	}
	for (size_t i = 0; i < chain->part_count; i++) {
		struct chain_part *part = &chain->parts[i];
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

bool chain_apply(struct chain *chain, struct list_request *request, struct buf *text)
{
	request->status = OUTCOME_DONE;
	request->number = request->size = 0;
	request->at = buf_size(text);
	switch (request->verb) {
	case LIST_RANGE:
		join(chain, items_range(chain_count(chain), request->start, request->stop), false, request, text);
		return false;
	case LIST_LENGTH:
		request->number = chain_count(chain);
		return false;
	case LIST_POSITION:
		position(chain, request);
		return false;
	case LIST_POP_FRONT:
	case LIST_POP_BACK:
		return pop(chain, request, text);
	case LIST_REMOVE:
		return remove_items(chain, request);
	case LIST_SET:
		return set_item(chain, request);
	case LIST_TRIM:
		return trim(chain, request);
	}
	return false;
}
