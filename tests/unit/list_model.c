#include "list_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "util/check.h"

void list_model_init(struct list_model *m, size_t base_size, size_t segment_size)
{
	*m = (struct list_model){
		.random = 1, .base_size = base_size, .segment_size = segment_size
	};
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
	elements_free(&m->items);
	elements_free(&m->removed);
	buf_free(&m->base);
}

static struct slice keep(struct list_model *m, struct slice item)
{
	struct buf *name = &m->names[m->name_count++];

	MUST(m->name_count <= sizeof(m->names) / sizeof(m->names[0]));
	buf_add_slice(name, item);
	return buf_slice(name);
}

/* --- requests on an array, one item at a time --- */

static struct slice take_out(struct elements *items, size_t at)
{
	struct slice item = items->list[at];

	for (items->count--; at < items->count; at++)
		items->list[at] = items->list[at + 1];
	return item;
}

static void say(struct list_request *request, struct slice item, struct buf *text)
{
	if (request->size)
		buf_add(text, " ", 1);
	buf_add_slice(text, item);
	request->size = buf_size(text) - request->at;
}

static bool is_in_range(const struct list_request *request, int64_t i, int64_t count)
{
	int64_t start = request->start < 0 ? request->start + count : request->start;
	int64_t stop = request->stop < 0 ? request->stop + count : request->stop;

	return i >= start && i <= stop;
}

/* The first equal item in the direction of the search; `count` for none. */
static size_t position(const struct elements *items, struct slice item, bool from_tail)
{
	size_t found = items->count;

	for (size_t i = 0; i < items->count; i++) {
		if (slice_equal(items->list[i], item) && (from_tail || found == items->count))
			found = i;
	}
	return found;
}

static void remove_equal(struct elements *items, struct list_request *request)
{
	bool from_tail = request->start < 0, all = request->start == 0;
	uint64_t most = from_tail ? -(uint64_t)request->start : (uint64_t)request->start;
	size_t at;

	while ((all || request->number < most) &&
		(at = position(items, request->item, from_tail)) < items->count) {
		take_out(items, at);
		request->number++;
	}
}

static void trim(struct elements *items, const struct list_request *request)
{
	size_t before = items->count;

	for (size_t i = before; i-- > 0;) {
		if (!is_in_range(request, (int64_t)i, (int64_t)before))
			take_out(items, i);
	}
}

static bool set(struct elements *items, struct list_request *request)
{
	int64_t count = (int64_t)items->count,
		at = request->start < 0 ? request->start + count : request->start;

	if (at < 0 || at >= count) {
		request->status = OUTCOME_RANGE;
		return false;
	}
	items->list[at] = request->item;
	return true;
}

static void put(struct elements *items, size_t at, struct slice item)
{
	elements_add(items, item);
	for (size_t i = items->count - 1; i > at; i--) {
		items->list[i] = items->list[i - 1];
		items->list[i - 1] = item;
	}
}

/* Position by position, in the direction of the rank, without those that its amount skips. */
static void find_positions(
	const struct elements *items, struct list_request *request, struct buf *text)
{
	const struct list_find *how = &request->find;
	int64_t step = how->rank < 0 ? -1 : 1, skip = how->rank * step - 1,
		at = step < 0 ? (int64_t)items->count - 1 : 0;
	uint64_t looked = 0, given = 0;
	char number[24];

	for (; at >= 0 && at < (int64_t)items->count && (how->most == 0 || looked < how->most);
		at += step, looked++) {
		if (!slice_equal(items->list[at], request->item) || skip-- > 0)
			continue;
		if (how->many && how->count && given == how->count)
			break;
		if (!how->many && given)
			break;
		given++;
		request->number = (uint64_t)at;
		if (how->many)
			say(request, slice_of(number, (size_t)sprintf(number, "%d", (int)at)),
				text);
	}
	request->status = given || how->many ? OUTCOME_DONE : OUTCOME_MISSING;
}

static void say_range(const struct elements *items, struct list_request *request, struct buf *text)
{
	for (size_t i = 0; i < items->count; i++) {
		if (is_in_range(request, (int64_t)i, (int64_t)items->count))
			say(request, items->list[i], text);
	}
}

bool list_model_apply(struct elements *items, struct list_request *request, struct buf *text)
{
	size_t before = items->count, at;

	request->status = OUTCOME_DONE;
	request->number = request->size = 0;
	request->at = buf_size(text);
	switch (request->verb) {
	case LIST_RANGE:
		say_range(items, request, text);
		break;
	case LIST_LENGTH:
		request->number = before;
		break;
	case LIST_POSITION:
		find_positions(items, request, text);
		break;
	case LIST_INSERT:
		at = position(items, request->pivot, false);
		request->status = at < before ? OUTCOME_DONE : OUTCOME_MISSING;
		if (at < before)
			put(items, at + (size_t)request->start, request->item);
		request->number = at < before ? items->count : 0;
		return at < before;
	case LIST_TAKE:
		at = request->start ? before - 1 : 0;
		request->status = before && slice_equal(items->list[at], request->item)
			? OUTCOME_DONE
			: OUTCOME_CHANGED;
		if (request->status == OUTCOME_DONE)
			take_out(items, at);
		break;
	case LIST_ROTATE:
		if (before == 0)
			return false;
		say(request, items->list[request->start ? before - 1 : 0], text);
		if (before == 1 || request->start == request->stop)
			return false;
		put(items, request->stop ? before - 1 : 0,
			take_out(items, request->start ? before - 1 : 0));
		return true;
	case LIST_POP_FRONT:
	case LIST_POP_BACK:
		for (uint64_t i = 0; i < request->count && items->count; i++)
			say(request,
				take_out(items,
					request->verb == LIST_POP_FRONT ? 0 : items->count - 1),
				text);
		break;
	case LIST_REMOVE:
		remove_equal(items, request);
		break;
	case LIST_SET:
		return set(items, request);
	case LIST_TRIM:
		trim(items, request);
		break;
	default:
		abort();
	}
	return items->count < before;
}

/* Drops the elements beyond the limit. */
static void limit_items(struct list_model *m)
{
	while (m->max && m->items.count > m->max)
		take_out(&m->items, m->newest_first ? m->items.count - 1 : 0);
}

static struct elements copy_items(const struct list_model *m)
{
	struct elements copy = { 0 };

	for (size_t i = 0; i < m->items.count; i++)
		elements_add(&copy, m->items.list[i]);
	return copy;
}

/* Restores the items of a copy, which it frees. */
static void restore_items(struct list_model *m, struct elements *copy)
{
	elements_free(&m->items);
	m->items = *copy;
}

/* --- the stored list --- */

void list_model_push(struct list_model *m, struct slice item, bool front)
{
	struct slice name = keep(m, item);
	struct buf base = BUF_EMPTY;

	if (!front)
		buf_add_slice(&base, buf_slice(&m->base));
	BUF_ADD(&base, "+");
	buf_add_slice(&base, name);
	BUF_ADD(&base, " ");
	if (front)
		buf_add_slice(&base, buf_slice(&m->base));
	buf_free(&m->base);
	m->base = base;
	if (front && position(&m->removed, name, false) < m->removed.count)
		return;
	elements_add(&m->items, name);
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
	remove_equal(&m->items, &(struct list_request){ .item = item });
	elements_add(&m->removed, keep(m, item));
}

static struct list_model_segment *find(struct list_model *m, struct slice id)
{
	for (size_t i = 0; i < m->segment_count; i++) {
		if (m->segments[i].there && slice_equal(buf_slice(&m->segments[i].id), id))
			return &m->segments[i];
	}
	abort();
}

static void limit(const struct list_model *m, struct segmented_list *list)
{
	if (!list->tangled)
		segmented_list_limit(list, m->max, m->newest_first);
}

static void load(struct list_model *m, struct segmented_list *list)
{
	m->loaded = 0;
	for (size_t i = 0; i < list->piece_count; i++) {
		struct list_piece *part = &list->pieces[i];
		if (!part->needed)
			continue;
		struct slice data = buf_slice(&find(m, part->ref.id)->data);
		MUST(part->ref.check.known && oplog_matches(part->ref.check, data));
		struct log_index *log_index = log_index_create(data, NULL);
		MUST(log_index && segmented_list_load(part, log_index));
		log_index_release(log_index);
		m->loaded++;
	}
	if (list->tangled)
		segmented_list_settle(list, 1);
	limit(m, list);
}

/* Writes a piece as list.c does. */
static void write_part(struct list_model *m, struct list_piece *part, struct buf *refs)
{
	struct buf log = BUF_EMPTY;
	char group[OPLOG_ID];

	list_piece_log(part, &log);
	part->refs_from = buf_size(refs);
	while (buf_size(&log)) {
		struct list_model_segment *segment = &m->segments[m->segment_count++];
		size_t n = oplog_cut(buf_slice(&log), m->segment_size);
		MUST(m->segment_count <= LIST_MODEL_SEGMENTS && n);
		buf_add_slice(&segment->data, slice_of(buf_slice(&log).p, n));
		segment->there = true;
		oplog_new_id(OPLOG_LIST, 0, &m->random, group);
		oplog_add_id(&segment->id, group, oplog_count(buf_slice(&segment->data)), n);
		oplog_add_ref(refs,
			&(struct oplog_ref){ .id = buf_slice(&segment->id),
				.check = { true, check_of(buf_slice(&segment->data)) } });
		buf_consume(&log, n);
	}
	part->refs_to = buf_size(refs);
	buf_free(&log);
}

static void commit(struct list_model *m, struct segmented_list *list)
{
	struct buf refs = BUF_EMPTY, dropped = BUF_EMPTY, base = BUF_EMPTY;
	struct oplog_ref ref;
	struct slice unread;

	for (size_t i = 0; i < list->piece_count; i++) {
		if (list->pieces[i].rewritten && list->pieces[i].ref.keep)
			write_part(m, &list->pieces[i], &refs);
	}
	segmented_list_encode(list, buf_slice(&refs), false, &base);
	segmented_list_dropped(list, &dropped);
	unread = buf_slice(&dropped);
	while (oplog_next_ref(&unread, &ref))
		find(m, ref.id)->there = false;
	if (list->settled)
		m->removed.count = 0;
	buf_free(&m->base);
	m->base = base;
	buf_free(&refs);
	buf_free(&dropped);
}

/* Reads the stored list and compares it with the array. */
static void check(struct list_model *m)
{
	struct list_request all = { .verb = LIST_RANGE, .start = 0, .stop = -1 };
	struct buf expected = BUF_EMPTY, got = BUF_EMPTY;
	struct elements stored = copy_items(m);
	struct segmented_list list;
	size_t there = 0;

	MUST(segmented_list_read(&list, buf_slice(&m->base)) && list.is_list);
	for (size_t i = 0; i < m->segment_count; i++)
		there += m->segments[i].there;
	MUST(there == list.piece_count - 2);
	segmented_list_need_all(&list);
	load(m, &list);
	limit_items(m);
	MUST(segmented_list_count(&list) == m->items.count);
	segmented_list_apply(&list, &all, &got);
	list_model_apply(&m->items, &all, &expected);
	MUST(slice_equal(buf_slice(&got), buf_slice(&expected)));
	restore_items(m, &stored);
	buf_free(&got);
	buf_free(&expected);
	segmented_list_free(&list);
}

void list_model_ask(struct list_model *m, struct list_request *request, struct buf *text)
{
	struct list_request same = *request;
	struct buf expected = BUF_EMPTY;
	struct elements stored = copy_items(m);
	struct segmented_list list;
	size_t loaded;

	if (request->verb == LIST_SET || request->verb == LIST_INSERT)
		same.item = keep(m, request->item);
	MUST(segmented_list_read(&list, buf_slice(&m->base)));
	limit(m, &list);
	segmented_list_need(&list, request);
	load(m, &list);
	limit_items(m);
	loaded = m->loaded;
	bool changed = segmented_list_apply(&list, request, text);
	MUST(changed == list_model_apply(&m->items, &same, &expected));
	MUST(request->status == same.status && request->number == same.number);
	MUST(slice_equal(
		slice_of(buf_slice(text).p + request->at, request->size), buf_slice(&expected)));
	if (changed && list.settled)
		segmented_list_spill(&list, m->base_size);
	if (changed)
		commit(m, &list);
	if (changed)
		elements_free(&stored);
	else
		restore_items(m, &stored);
	segmented_list_free(&list);
	buf_free(&expected);
	check(m);
	m->loaded = loaded;
}

void list_model_compact(struct list_model *m)
{
	struct segmented_list list;

	MUST(segmented_list_read(&list, buf_slice(&m->base)));
	limit(m, &list);
	if (segmented_list_plan(&list, m->base_size, m->segment_size, true)) {
		load(m, &list);
		segmented_list_compact(&list, m->base_size);
		commit(m, &list);
		limit_items(m);
	}
	segmented_list_free(&list);
	check(m);
}
