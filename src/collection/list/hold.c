#include "collection/list/hold.h"

/* --- giving back --- */

bool hold_is_due(const struct segmented_list *list, int64_t now)
{
	return held_next(&list->held) <= now;
}

/* Moves the due elements of one end to `out`, in the order in which they were taken. */
static void take_due(struct held *held, bool right, int64_t now, struct elements *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < held->count; i++) {
		struct held_element element = held->list[i];
		if (element.right != right || element.date > now) {
			held->list[kept++] = element;
			continue;
		}
		held_count_keep(held, &element);
		elements_add(out, element.word);
	}
	held_forget(held, kept);
}

void hold_give_back(struct segmented_list *list, int64_t now)
{
	for (int right = 0; right < 2; right++) {
		struct elements due = { 0 };
		take_due(&list->held, right, now, &due);
		if (right)
			elements_reverse(&due);
		if (due.count)
			segmented_list_put(list, &due, !right);
		list->given |= due.count > 0;
		elements_free(&due);
	}
}

/* --- requests --- */

static void add_answer(
	const struct held_element *element, struct list_request *request, struct buf *text)
{
	buf_add_word(text, element->ticket);
	buf_add_u64(text, element->deliveries);
	BUF_ADD(text, " ");
	buf_add_slice(text, element->word);
	request->size = buf_size(text) - request->at;
	request->number = element->deliveries;
}

static bool take_and_hold(
	struct segmented_list *list, struct list_request *request, int64_t now, struct buf *text)
{
	bool front = request->start == 0;
	struct held_element element = { .right = !front, .ticket = request->item };

	if (segmented_list_count(list) == 0)
		return false;
	element.word = segmented_list_end(list, front);
	if (!held_has_room(&list->held, element.word)) {
		request->status = OUTCOME_FULL;
		return false;
	}
	element.deliveries = held_count_take(&list->held, element.word);
	element.deliveries += element.deliveries < UINT32_MAX;
	/* The clock may have been read up to a second late, in both. */
	element.date = now + 1 +
		(request->count && element.deliveries > request->count ? HOLD_DEAD_SECONDS
								       : request->stop);
	segmented_list_drop(list, 1, front);
	held_add(&list->held, &element);
	add_answer(&element, request, text);
	return true;
}

static bool acknowledge(struct segmented_list *list, struct list_request *request)
{
	size_t i;

	if (!held_find(&list->held, request->item, &i)) {
		request->status = OUTCOME_MISSING;
		return false;
	}
	held_remove(&list->held, i);
	return true;
}

/* The element is added to the other end, so that others are next. */
static bool fail(struct segmented_list *list, struct list_request *request)
{
	struct held_element element;
	struct elements one = { 0 };
	size_t i;

	if (!held_find(&list->held, request->item, &i)) {
		request->status = OUTCOME_MISSING;
		return false;
	}
	element = list->held.list[i];
	held_remove(&list->held, i);
	held_count_keep(&list->held, &element);
	elements_add(&one, element.word);
	segmented_list_put(list, &one, element.right);
	elements_free(&one);
	list->given = true;
	return true;
}

/*
 * The words are the answer to a pop, with spaces between them. COMPARED of them are compared with
 * the counts; if more elements leave the list, it loses all counts.
 */
static void forget_counts(struct held *held, struct slice words)
{
	enum { COMPARED = 100 };
	struct slice word;

	for (int i = 0; held->count_count && (word = slice_token(&words)).n; i++) {
		(void)held_count_take(held, word);
		if (i == COMPARED)
			held->count_count = 0;
	}
}

static bool apply_other(struct segmented_list *list, struct list_request *request, struct buf *text)
{
	bool changed = segmented_list_apply(list, request, text);

	if (!changed || !list->held.count_count)
		return changed;
	if (request->verb == LIST_POP_FRONT || request->verb == LIST_POP_BACK)
		forget_counts(
			&list->held, slice_of(buf_slice(text).p + request->at, request->size));
	else if (request->verb == LIST_TAKE || request->verb == LIST_REMOVE)
		(void)held_count_take(&list->held, request->item);
	/* Whichever was removed otherwise. */
	if (segmented_list_count(list) == 0 && list->held.count == 0)
		list->held.count_count = 0;
	return changed;
}

bool hold_apply(
	struct segmented_list *list, struct list_request *request, int64_t now, struct buf *text)
{
	request->status = OUTCOME_DONE;
	request->number = request->size = 0;
	request->at = buf_size(text);
	switch (request->verb) {
	case LIST_HOLD:
		return take_and_hold(list, request, now, text);
	case LIST_ACK:
		return acknowledge(list, request);
	case LIST_FAIL:
		return fail(list, request);
	default:
		return apply_other(list, request, text);
	}
}
