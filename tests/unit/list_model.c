#include "list_model.h"

#include <stdlib.h>
#include <string.h>

/* Never compiled away. */
#define MUST(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

void list_model_init(struct list_model *m, size_t base_size, size_t segment_size)
{
	*m = (struct list_model){ .random = 1, .base_size = base_size, .segment_size = segment_size };
	BUF_ADD(&m->base, OPLOG_LIST_MARK);
}

void list_model_fini(struct list_model *m)
{
	for (size_t i = 0; i < m->segment_count; i++) {
		buf_free(&m->segments[i].id);
		buf_free(&m->segments[i].data);
	}
	for (size_t i = 0; i < m->name_count; i++)
		buf_free(&m->names[i]);
	items_free(&m->items);
	items_free(&m->removed);
	buf_free(&m->base);
}

static struct slice keep(struct list_model *m, struct slice item)
{
	struct buf *name = &m->names[m->name_count++];

	MUST(m->name_count <= sizeof(m->names) / sizeof(m->names[0]));
	buf_add_slice(name, item);
	return buf_slice(name);
}

void list_model_push(struct list_model *m, struct slice item, bool front)
{
	struct slice name = keep(m, item);
	struct buf base = BUF_EMPTY;
	size_t at;

	if (!front)
		buf_add_slice(&base, buf_slice(&m->base));
	BUF_ADD(&base, "+");
	buf_add_slice(&base, name);
	BUF_ADD(&base, " ");
	if (front)
		buf_add_slice(&base, buf_slice(&m->base));
	buf_free(&m->base);
	m->base = base;
	if (front && items_find(&m->removed, name, &at))
		return;
	items_add(&m->items, name);
	if (front) {
		memmove(m->items.list + 1, m->items.list, (m->items.count - 1) * sizeof(name));
		m->items.list[0] = name;
	}
}

void list_model_srem(struct list_model *m, struct slice item)
{
	BUF_ADD(&m->base, "-");
	buf_add_slice(&m->base, item);
	BUF_ADD(&m->base, " ");
	items_remove(&m->items, UINT64_MAX, false, item);
	items_add(&m->removed, keep(m, item));
}

static struct list_model_segment *find(struct list_model *m, struct slice id)
{
	for (size_t i = 0; i < m->segment_count; i++) {
		if (m->segments[i].there && slice_equal(buf_slice(&m->segments[i].id), id))
			return &m->segments[i];
	}
	abort();
}

static void load(struct list_model *m, struct segmented_list *chain)
{
	m->loaded = 0;
	for (size_t i = 0; i < chain->part_count; i++) {
		struct list_part *part = &chain->parts[i];
		if (!part->wanted)
			continue;
		struct log_index *log_index = log_index_create(buf_slice(&find(m, part->id)->data), NULL);
		MUST(log_index && segmented_list_load(part, log_index));
		log_index_release(log_index);
		m->loaded++;
	}
	if (chain->tangled)
		segmented_list_settle(chain, 1);
}

/* What segment_writer_add does. */
static void write_part(struct list_model *m, struct list_part *part, struct buf *refs)
{
	struct buf log = BUF_EMPTY;
	char group[OPLOG_ID];

	list_part_log(part, &log);
	part->refs_from = buf_size(refs);
	while (buf_size(&log)) {
		struct list_model_segment *segment = &m->segments[m->segment_count++];
		size_t n = oplog_cut(buf_slice(&log), m->segment_size);
		MUST(m->segment_count <= LIST_MODEL_SEGMENTS && n);
		buf_add_slice(&segment->data, slice_of(buf_slice(&log).p, n));
		segment->there = true;
		oplog_new_id(OPLOG_LIST, &m->random, group);
		oplog_add_id(&segment->id, group, oplog_count(buf_slice(&segment->data)), n);
		oplog_add_ref(refs, buf_slice(&segment->id), 0, 0, 0);
		buf_consume(&log, n);
	}
	part->refs_to = buf_size(refs);
	buf_free(&log);
}

static void commit(struct list_model *m, struct segmented_list *chain)
{
	struct buf refs = BUF_EMPTY, dropped = BUF_EMPTY, base = BUF_EMPTY;
	struct oplog_ref ref;
	struct slice rest;

	for (size_t i = 0; i < chain->part_count; i++) {
		if (chain->parts[i].rewritten && chain->parts[i].keep)
			write_part(m, &chain->parts[i], &refs);
	}
	segmented_list_encode(chain, buf_slice(&refs), &base);
	segmented_list_dropped(chain, &dropped);
	rest = buf_slice(&dropped);
	while (oplog_next_ref(&rest, &ref))
		find(m, ref.id)->there = false;
	if (chain->settled)
		m->removed.count = 0;
	buf_free(&m->base);
	m->base = base;
	buf_free(&refs);
	buf_free(&dropped);
}

/* Reads all that is stored, without what is tested but oplog_split. */
static void check(struct list_model *m)
{
	struct list_request all = { .verb = LIST_RANGE, .start = 0, .stop = -1 };
	struct buf expected = BUF_EMPTY, got = BUF_EMPTY;
	struct segmented_list chain;
	size_t there = 0;

	MUST(segmented_list_read(&chain, buf_slice(&m->base)) && chain.is_list);
	for (size_t i = 0; i < m->segment_count; i++)
		there += m->segments[i].there;
	MUST(there == chain.part_count - 2);
	segmented_list_need_all(&chain);
	load(m, &chain);
	MUST(segmented_list_count(&chain) == m->items.count);
	segmented_list_apply(&chain, &all, &got);
	items_apply(&m->items, &all, &expected);
	MUST(slice_equal(buf_slice(&got), buf_slice(&expected)));
	buf_free(&got);
	buf_free(&expected);
	segmented_list_free(&chain);
}

void list_model_ask(struct list_model *m, struct list_request *request, struct buf *text)
{
	struct list_request same = *request;
	struct buf expected = BUF_EMPTY;
	struct segmented_list chain;
	size_t loaded;

	if (request->verb == LIST_SET)
		same.item = keep(m, request->item);
	MUST(segmented_list_read(&chain, buf_slice(&m->base)));
	segmented_list_need(&chain, request);
	load(m, &chain);
	loaded = m->loaded;
	bool changed = segmented_list_apply(&chain, request, text);
	MUST(changed == items_apply(&m->items, &same, &expected));
	MUST(request->status == same.status && (same.status == OUTCOME_MISSING || request->number == same.number));
	MUST(slice_equal(slice_of(buf_slice(text).p + request->at, request->size), buf_slice(&expected)));
	if (changed && chain.settled)
		segmented_list_spill(&chain, m->base_size);
	if (changed)
		commit(m, &chain);
	segmented_list_free(&chain);
	buf_free(&expected);
	check(m);
	m->loaded = loaded;
}

void list_model_compact(struct list_model *m)
{
	struct segmented_list chain;

	MUST(segmented_list_read(&chain, buf_slice(&m->base)));
	if (segmented_list_plan(&chain, m->base_size, m->segment_size, true)) {
		load(m, &chain);
		segmented_list_compact(&chain, m->base_size);
		commit(m, &chain);
	}
	segmented_list_free(&chain);
	check(m);
}
