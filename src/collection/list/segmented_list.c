#include "collection/list/segmented_list.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/list/span.h"
#include "collection/text/date.h"
#include "collection/text/fold.h"
#include "util/alloc.h"
#include "util/num.h"

/* A log shorter than this fraction of a base is not moved to a segment. */
enum { MOVED_FRACTION = 4 };

/* --- pieces --- */

static struct list_piece *head_of(const struct segmented_list *list)
{
	return &list->pieces[0];
}

static struct list_piece *tail_of(const struct segmented_list *list)
{
	return &list->pieces[list->piece_count - 1];
}

static bool is_loaded(const struct list_piece *piece)
{
	return piece->log_index || piece->elements.list;
}

static bool is_segment(const struct list_piece *piece)
{
	return piece->ref.id.n > 0;
}

/* --- reading --- */

static bool read_log(struct segmented_list *list, struct list_piece *piece, struct slice log)
{
	piece->log_index = log_index_create(log, NULL);
	if (!piece->log_index)
		return false;
	piece->ref.count = piece->ref.keep = piece->log_index->count;
	list->removes |= piece->log_index->removals > 0;
	list->log_bytes += log.n;
	return true;
}

/* Reads the tokens that are neither elements nor the block. Returns the rest of the base. */
static struct slice read_extras(struct segmented_list *list)
{
	struct slice base = expiry_drop(buf_slice(&list->base), &list->lasting);

	if (base.n == 0 || !memchr(base.p, '~', base.n))
		return base;
	base = held_read(base, &list->held, &list->unheld);
	return date_undated(base, &list->undated);
}

bool segmented_list_read(struct segmented_list *list, struct slice base)
{
	struct oplog_base split;
	struct oplog_ref ref;
	size_t i = 1;

	*list = (struct segmented_list){ 0 };
	buf_add_slice(&list->base, base);
	(void)oplog_split(read_extras(list), &split);
	list->form = split.form;
	list->is_set = split.form == OPLOG_GOOD && split.block.n && !split.is_list;
	if (split.form != OPLOG_GOOD || list->is_set)
		return false;
	list->piece_count = split.ref_count + 2;
	list->pieces = xcalloc(list->piece_count, sizeof(*list->pieces));
	list->is_list = split.is_list;
	list->wide = split.wide;
	while (oplog_next_ref(&split.refs, &ref))
		list->pieces[i++].ref = ref;
	if (!read_log(list, head_of(list), split.head) ||
		!read_log(list, tail_of(list), split.log)) {
		list->form = OPLOG_CORRUPT;
		return false;
	}
	list->tangled = list->removes;
	if (list->tangled)
		segmented_list_need_all(list);
	return true;
}

void segmented_list_of(struct segmented_list *list, struct elements *elements)
{
	*list = (struct segmented_list){
		.pieces = xcalloc(1, sizeof(*list->pieces)), .piece_count = 1, .is_list = true
	};
	list->pieces->elements = *elements;
	list->pieces->ref.count = list->pieces->ref.keep = elements->count;
	*elements = (struct elements){ 0 };
}

static void free_held(struct segmented_list *list)
{
	buf_free(&list->unheld);
	held_free(&list->held);
}

void segmented_list_free(struct segmented_list *list)
{
	for (size_t i = 0; list->pieces && i < list->piece_count; i++) {
		log_index_release(list->pieces[i].log_index);
		elements_free(&list->pieces[i].elements);
	}
	free(list->pieces);
	buf_free(&list->base);
	buf_free(&list->lasting);
	buf_free(&list->undated);
	if (list->held.list || list->held.counts)
		free_held(list);
	*list = (struct segmented_list){ 0 };
}

size_t segmented_list_count(const struct segmented_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->piece_count; i++)
		count += list->pieces[i].ref.keep;
	return count;
}

uint64_t segmented_list_bytes(const struct segmented_list *list)
{
	uint64_t bytes = buf_size(&list->base);

	for (size_t i = 0; i < list->piece_count; i++)
		bytes += (uint64_t)list->pieces[i].ref.kilobytes * 1024;
	return bytes;
}

/* --- the segments that a request needs --- */

static void need_span(struct segmented_list *list, struct span span)
{
	size_t at = 0;

	for (size_t i = 0; i < list->piece_count; i++) {
		struct list_piece *piece = &list->pieces[i];
		if (span.count && piece->ref.keep && at < span.first + span.count &&
			at + piece->ref.keep > span.first)
			piece->needed |= !is_loaded(piece);
		at += piece->ref.keep;
	}
}

void segmented_list_need_all(struct segmented_list *list)
{
	for (size_t i = 0; i < list->piece_count; i++)
		list->pieces[i].needed |= !is_loaded(&list->pieces[i]);
}

void segmented_list_need_ends(struct segmented_list *list, uint64_t front, uint64_t back)
{
	size_t count = segmented_list_count(list);

	need_span(list, span_of_end(count, true, front));
	need_span(list, span_of_end(count, false, back));
}

static struct slice element_of(const struct list_piece *piece, size_t i)
{
	return piece->elements.list ? piece->elements.list[piece->ref.skip + i]
				    : log_index_element(piece->log_index, piece->ref.skip + i);
}

static bool find_element(const struct list_piece *piece, struct slice element, size_t *at)
{
	for (*at = 0; *at < piece->ref.keep; ++*at) {
		if (slice_equal(element_of(piece, *at), element))
			return true;
	}
	return false;
}

static void need_positions(struct segmented_list *list, const struct list_request *request)
{
	const struct list_find *how = &request->find;
	size_t count = segmented_list_count(list), at;
	size_t most = how->most && how->most < count ? (size_t)how->most : count;

	if (how->rank == 1 && !how->many && find_element(head_of(list), request->item, &at))
		return;
	need_span(list, (struct span){ how->rank < 0 ? count - most : 0, most });
}

void segmented_list_need(struct segmented_list *list, const struct list_request *request)
{
	size_t count = segmented_list_count(list), at;

	switch (request->verb) {
	case LIST_RANGE:
		need_span(list, span_of_range(count, request->start, request->stop));
		break;
	case LIST_POSITION:
		need_positions(list, request);
		break;
	case LIST_INSERT:
		if (!find_element(head_of(list), request->pivot, &at))
			segmented_list_need_all(list);
		break;
	case LIST_TAKE:
	case LIST_ROTATE:
		segmented_list_need_ends(list, request->start == 0, request->start != 0);
		break;
	case LIST_REMOVE:
		segmented_list_need_all(list);
		break;
	case LIST_SET:
		if (span_index(count, request->start, &at))
			need_span(list, (struct span){ at, 1 });
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

void segmented_list_needed(const struct segmented_list *list, struct buf *refs)
{
	for (size_t i = 0; i < list->piece_count; i++) {
		if (list->pieces[i].needed)
			oplog_add_ref(refs, &list->pieces[i].ref);
	}
}

bool segmented_list_repeats(const struct segmented_list *list)
{
	struct oplog_base base;

	return oplog_split(buf_slice(&list->base), &base) && oplog_refs_repeat(&base);
}

bool segmented_list_load(struct list_piece *piece, struct log_index *log_index)
{
	assert(!piece->log_index);
	piece->log_index = log_index_share(log_index);
	return log_index->count == piece->ref.count && log_index->removals == 0;
}

/* --- a tangled list --- */

/* Goes from right to left: a removal cancels the equal elements to its left. */
static void settle_piece(
	const struct list_piece *piece, struct fold *removed, struct elements *elements)
{
	for (size_t i = piece->ref.keep; i-- > 0;) {
		struct slice element = element_of(piece, i);
		if (log_index_removes(piece->log_index, piece->ref.skip + i))
			fold_add(removed, element);
		else if (!fold_contains(removed, element))
			elements_add(elements, element);
	}
}

void segmented_list_settle(struct segmented_list *list, uint64_t seed)
{
	struct fold removed = { .seed = seed };
	struct elements elements = { 0 };

	for (size_t i = list->piece_count; i-- > 0;) {
		settle_piece(&list->pieces[i], &removed, &elements);
		list->pieces[i].ref.keep = 0;
	}
	fold_free(&removed);
	elements_reverse(&elements);
	tail_of(list)->elements = elements;
	tail_of(list)->ref.skip = 0;
	tail_of(list)->ref.keep = elements.count;
	list->tangled = false;
	list->settled = true;
}

/* --- requests --- */

static void add_elements(struct elements *elements, const struct list_piece *piece)
{
	for (size_t i = 0; i < piece->ref.keep; i++)
		elements_add(elements, element_of(piece, i));
}

/* Copies the elements of a piece to an array, where they can be changed. */
static void loosen(struct list_piece *piece)
{
	struct elements elements = { 0 };

	add_elements(&elements, piece);
	elements_free(&piece->elements);
	piece->elements = elements;
	piece->ref.skip = 0;
	piece->rewritten = is_segment(piece);
}

static void join_element(struct buf *out, size_t start, struct slice element)
{
	if (buf_size(out) > start)
		BUF_ADD(out, " ");
	buf_add_slice(out, element);
}

static void join_span(const struct segmented_list *list, struct span span, bool backwards,
	struct list_request *request, struct buf *text)
{
	size_t at = 0, end = span.first + span.count;

	for (size_t n = 0; n < list->piece_count && at < end; n++) {
		const struct list_piece *piece =
			&list->pieces[backwards ? list->piece_count - 1 - n : n];
		size_t from = span.first > at ? span.first - at : 0;
		size_t to = end - at < piece->ref.keep ? end - at : piece->ref.keep;
		for (size_t i = from; i < to; i++)
			join_element(text, request->at,
				element_of(piece, backwards ? piece->ref.keep - 1 - i : i));
		at += piece->ref.keep;
	}
	request->size = buf_size(text) - request->at;
}

void segmented_list_drop(struct segmented_list *list, size_t count, bool front)
{
	for (size_t n = 0; n < list->piece_count && count; n++) {
		struct list_piece *piece = &list->pieces[front ? n : list->piece_count - 1 - n];
		size_t taken = count < piece->ref.keep ? count : piece->ref.keep;
		piece->ref.keep -= taken;
		piece->ref.skip += front ? taken : 0;
		count -= taken;
	}
}

void segmented_list_limit(struct segmented_list *list, uint64_t max, bool newest_first)
{
	size_t count = segmented_list_count(list);

	if (max && count > max) {
		segmented_list_drop(list, count - (size_t)max, !newest_first);
		list->limited = true;
	}
}

static bool pop(struct segmented_list *list, struct list_request *request, struct buf *text)
{
	bool front = request->verb == LIST_POP_FRONT;
	size_t n = span_of_end(segmented_list_count(list), true, request->count).count;

	join_span(list, (struct span){ 0, n }, !front, request, text);
	segmented_list_drop(list, n, front);
	return n > 0;
}

static bool trim(struct segmented_list *list, const struct list_request *request)
{
	size_t count = segmented_list_count(list);
	struct span span = span_of_range(count, request->start, request->stop);

	segmented_list_drop(list, span.first, true);
	segmented_list_drop(list, count - span.first - span.count, false);
	return span.count < count;
}

static void join_number(struct buf *out, size_t start, uint64_t number)
{
	char digits[NUM_U64_MAX];

	join_element(out, start, slice_of(digits, num_format_u64(digits, number)));
}

/* Handles an element that equals the item. Returns true if no further one is needed. */
static bool found_at(struct list_request *request, uint64_t at, struct buf *text)
{
	const struct list_find *how = &request->find;
	uint64_t rank = how->rank < 0 ? 0 - (uint64_t)how->rank : (uint64_t)how->rank;

	if (++request->found < rank)
		return false;
	request->number = at;
	if (!how->many)
		return true;
	join_number(text, request->at, at);
	return request->found - rank + 1 == how->count;
}

/* Compares the next elements with the item. Returns true if the answer is complete. */
static bool position(
	const struct segmented_list *list, struct list_request *request, struct buf *text)
{
	const struct list_find *how = &request->find;
	bool backwards = how->rank < 0;
	size_t count = segmented_list_count(list), before = 0;
	size_t most = how->most && how->most < count ? (size_t)how->most : count;
	size_t end = most - request->done < LIST_SLICE ? most : request->done + LIST_SLICE;

	for (size_t n = 0; request->done < end; n++) {
		const struct list_piece *piece =
			&list->pieces[backwards ? list->piece_count - 1 - n : n];
		size_t next = before + piece->ref.keep;
		while (request->done < end && request->done < next) {
			size_t i = request->done++;
			if (slice_equal(element_of(piece, backwards ? next - 1 - i : i - before),
				    request->item) &&
				found_at(request, backwards ? count - 1 - i : i, text))
				return true;
		}
		before = next;
	}
	if (end < most)
		return false;
	request->status = how->many ? OUTCOME_DONE : OUTCOME_MISSING;
	return true;
}

/* Appends the next elements of a range. Returns true if the range is complete. */
static bool join_more(
	const struct segmented_list *list, struct list_request *request, struct buf *text)
{
	struct span all = span_of_range(segmented_list_count(list), request->start, request->stop);
	size_t left = all.count - request->done;
	struct span next = { all.first + request->done, left < LIST_SLICE ? left : LIST_SLICE };

	join_span(list, next, false, request, text);
	request->done += next.count;
	return next.count == left;
}

bool segmented_list_read_slice(
	struct segmented_list *list, struct list_request *request, struct buf *text)
{
	if (request->done == 0) {
		request->status = OUTCOME_DONE;
		request->number = request->size = 0;
		request->found = 0;
		request->at = buf_size(text);
	}
	if (request->verb == LIST_RANGE)
		return join_more(list, request, text);
	if (request->verb == LIST_POSITION) {
		bool complete = position(list, request, text);
		request->size = buf_size(text) - request->at;
		return complete;
	}
	request->number = segmented_list_count(list);
	request->held = list->held.count;
	request->due = held_next(&list->held);
	return true;
}

static bool remove_elements(struct segmented_list *list, struct list_request *request)
{
	bool from_tail = request->start < 0;
	uint64_t most = from_tail ? 0 - (uint64_t)request->start : (uint64_t)request->start;
	size_t at;

	if (most == 0)
		most = UINT64_MAX;
	for (size_t n = 0; n < list->piece_count && most; n++) {
		struct list_piece *piece = &list->pieces[from_tail ? list->piece_count - 1 - n : n];
		if (piece->ref.keep == 0 || !find_element(piece, request->item, &at))
			continue;
		loosen(piece);
		size_t removed = elements_remove(&piece->elements, most, from_tail, request->item);
		piece->ref.keep = piece->elements.count;
		most -= removed;
		request->number += removed;
	}
	return request->number > 0;
}

static bool set_element(struct segmented_list *list, struct list_request *request)
{
	size_t at;

	if (!span_index(segmented_list_count(list), request->start, &at)) {
		request->status = OUTCOME_RANGE;
		return false;
	}
	for (size_t i = 0; i < list->piece_count; i++) {
		struct list_piece *piece = &list->pieces[i];
		if (at < piece->ref.keep) {
			loosen(piece);
			piece->elements.list[at] = request->item;
			break;
		}
		at -= piece->ref.keep;
	}
	return true;
}

static void insert_element(struct list_piece *piece, size_t at, struct slice element)
{
	struct slice *list;

	loosen(piece);
	elements_add(&piece->elements, element);
	list = piece->elements.list;
	memmove(list + at + 1, list + at, (piece->elements.count - 1 - at) * sizeof(*list));
	list[at] = element;
	piece->ref.keep = piece->elements.count;
}

void segmented_list_put(struct segmented_list *list, const struct elements *more, bool front)
{
	struct list_piece *piece = front ? head_of(list) : tail_of(list);
	struct elements joined = { 0 };

	for (size_t i = 0; front && i < more->count; i++)
		elements_add(&joined, more->list[i]);
	add_elements(&joined, piece);
	for (size_t i = 0; !front && i < more->count; i++)
		elements_add(&joined, more->list[i]);
	elements_free(&piece->elements);
	piece->elements = joined;
	piece->ref.skip = 0;
	piece->ref.keep = joined.count;
}

static bool insert(struct segmented_list *list, struct list_request *request)
{
	size_t at;

	for (size_t i = 0; i < list->piece_count; i++) {
		struct list_piece *piece = &list->pieces[i];
		if (piece->ref.keep == 0 || !find_element(piece, request->pivot, &at))
			continue;
		insert_element(piece, at + (request->start ? 1 : 0), request->item);
		request->number = segmented_list_count(list);
		return true;
	}
	request->status = OUTCOME_MISSING;
	return false;
}

struct slice segmented_list_end(const struct segmented_list *list, bool front)
{
	const struct list_piece *piece = front ? head_of(list) : tail_of(list);

	while (piece->ref.keep == 0)
		piece += front ? 1 : -1;
	return element_of(piece, front ? 0 : piece->ref.keep - 1);
}

static bool take_end(struct segmented_list *list, struct list_request *request)
{
	bool front = request->start == 0;

	if (segmented_list_count(list) == 0 ||
		!slice_equal(segmented_list_end(list, front), request->item)) {
		request->status = OUTCOME_CHANGED;
		return false;
	}
	segmented_list_drop(list, 1, front);
	return true;
}

static bool rotate(struct segmented_list *list, struct list_request *request, struct buf *text)
{
	bool front = request->start == 0, to_front = request->stop == 0;
	size_t count = segmented_list_count(list);
	struct list_piece *piece = to_front ? head_of(list) : tail_of(list);
	struct slice element;

	join_span(list, (struct span){ 0, count > 0 }, !front, request, text);
	if (count < 2 || front == to_front)
		return false;
	element = segmented_list_end(list, front);
	segmented_list_drop(list, 1, front);
	insert_element(piece, to_front ? 0 : piece->ref.keep, element);
	return true;
}

bool segmented_list_apply(
	struct segmented_list *list, struct list_request *request, struct buf *text)
{
	request->status = OUTCOME_DONE;
	request->number = request->size = 0;
	request->at = buf_size(text);
	switch (request->verb) {
	case LIST_RANGE:
	case LIST_LENGTH:
	case LIST_POSITION:
		break;
	case LIST_POP_FRONT:
	case LIST_POP_BACK:
		return pop(list, request, text);
	case LIST_REMOVE:
		return remove_elements(list, request);
	case LIST_SET:
		return set_element(list, request);
	case LIST_TRIM:
		return trim(list, request);
	case LIST_INSERT:
		return insert(list, request);
	case LIST_TAKE:
		return take_end(list, request);
	case LIST_ROTATE:
		return rotate(list, request, text);
	case LIST_HOLD:
	case LIST_ACK:
	case LIST_FAIL:
		assert(!"carried out by hold_apply");
		return false;
	}
	while (!segmented_list_read_slice(list, request, text))
		;
	return false;
}

/* --- segments to be written --- */

static size_t piece_log_size(const struct list_piece *piece)
{
	size_t size = 0;

	if (piece->log_index && !piece->elements.list)
		return log_index_tokens(piece->log_index, piece->ref.skip, piece->ref.keep).n;
	for (size_t i = 0; i < piece->ref.keep; i++)
		size += piece->elements.list[piece->ref.skip + i].n + 2;
	return size;
}

void list_piece_log(const struct list_piece *piece, struct buf *out)
{
	char *p;

	if (piece->log_index && !piece->elements.list) {
		buf_add_slice(
			out, log_index_tokens(piece->log_index, piece->ref.skip, piece->ref.keep));
		return;
	}
	p = buf_reserve(out, piece_log_size(piece));
	for (size_t i = 0; i < piece->ref.keep; i++) {
		struct slice element = piece->elements.list[piece->ref.skip + i];
		*p++ = '+';
		memcpy(p, element.p, element.n);
		p += element.n;
		*p++ = ' ';
	}
	buf_commit(out, piece_log_size(piece));
}

bool segmented_list_limit_log(
	struct slice log, uint64_t max, bool newest_first, uint64_t seed, struct buf *out)
{
	struct segmented_list list;
	bool good = segmented_list_read(&list, log) && list.piece_count == 2;

	if (good) {
		if (list.tangled)
			segmented_list_settle(&list, seed);
		segmented_list_limit(&list, max, newest_first);
		list_piece_log(head_of(&list), out);
		list_piece_log(tail_of(&list), out);
	}
	segmented_list_free(&list);
	return good;
}

/* --- compaction --- */

/* Plans to merge the log and the segment next to it, if they fit into one segment. */
static void plan_absorption(struct list_piece *log, struct list_piece *beside, size_t segment_size)
{
	if (!is_segment(beside) || beside->needed || beside->ref.keep < beside->ref.count ||
		beside->ref.kilobytes * (size_t)1024 + piece_log_size(log) > segment_size)
		return;
	log->absorbs = beside->needed = true;
}

bool segmented_list_plan(
	struct segmented_list *list, size_t base_size, size_t segment_size, bool absorb)
{
	struct list_piece *head = &list->pieces[0], *tail = &list->pieces[list->piece_count - 1];

	size_t size;

	if (list->tangled)
		return true;
	size = piece_log_size(head) + piece_log_size(tail);
	if (size <= base_size && !list->limited)
		return false;
	for (size_t i = 0; i < list->piece_count; i++)
		list->pieces[i].needed = list->pieces[i].absorbs = false;
	head->rewritten = size > base_size && piece_log_size(head) > base_size / MOVED_FRACTION;
	tail->rewritten = size > base_size && piece_log_size(tail) > base_size / MOVED_FRACTION;
	if (absorb && tail->rewritten)
		plan_absorption(tail, tail - 1, segment_size);
	if (absorb && head->rewritten)
		plan_absorption(head, head + 1, segment_size);
	return true;
}

static void absorb(struct list_piece *log, struct list_piece *first, struct list_piece *second)
{
	struct elements elements = { 0 };

	add_elements(&elements, first);
	add_elements(&elements, second);
	first->ref.keep = second->ref.keep = 0;
	log->elements = elements;
	log->ref.skip = 0;
	log->ref.keep = elements.count;
}

void segmented_list_spill(struct segmented_list *list, size_t base_size)
{
	struct list_piece *tail = &list->pieces[list->piece_count - 1];

	tail->rewritten = list->is_list && piece_log_size(tail) > base_size;
}

void segmented_list_compact(struct segmented_list *list, size_t base_size)
{
	struct list_piece *head = &list->pieces[0], *tail = &list->pieces[list->piece_count - 1];

	if (list->settled)
		segmented_list_spill(list, base_size);
	if (tail->absorbs)
		absorb(tail, tail - 1, tail);
	if (head->absorbs)
		absorb(head, head, head + 1);
}

/* --- the base --- */

void segmented_list_encode(
	const struct segmented_list *list, struct slice written, bool wide, struct buf *out)
{
	const struct list_piece *head = &list->pieces[0],
				*tail = &list->pieces[list->piece_count - 1];

	if (!head->rewritten)
		list_piece_log(head, out);
	/* Only a list has held elements: without a mark, the base may be that of a set. */
	if (list->is_list || held_any(&list->held))
		oplog_add_mark(out, true, wide || list->wide);
	for (const struct list_piece *piece = head; piece <= tail; piece++) {
		if (piece->rewritten)
			buf_add_slice(out,
				slice_of(written.p + piece->refs_from,
					piece->refs_to - piece->refs_from));
		else if (is_segment(piece) && piece->ref.keep)
			oplog_add_ref(out, &piece->ref);
	}
	if (!tail->rewritten)
		list_piece_log(tail, out);
	held_write(&list->held, out);
}

void segmented_list_dropped(const struct segmented_list *list, struct buf *refs)
{
	for (size_t i = 0; i < list->piece_count; i++) {
		const struct list_piece *piece = &list->pieces[i];
		if (is_segment(piece) && (piece->rewritten || piece->ref.keep == 0))
			oplog_add_ref(refs, &(struct oplog_ref){ .id = piece->ref.id });
	}
}
