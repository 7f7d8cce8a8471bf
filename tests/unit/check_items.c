/* A table of requests: the answer, and the list after it. It must not matter how the list is divided into parts. */
#include "collection/list/segmented_list.h"
#include "collection/list_request.h"

#include "list_model.h"
#include "unit.h"

#define RANGE(a, b) .verb = LIST_RANGE, .start = (a), .stop = (b)
#define LENGTH .verb = LIST_LENGTH
#define POSITION(i) .verb = LIST_POSITION, .item = BYTES(i)
#define POP_FRONT(n) .verb = LIST_POP_FRONT, .count = (n)
#define POP_BACK(n) .verb = LIST_POP_BACK, .count = (n)
#define REMOVE(n, i) .verb = LIST_REMOVE, .start = (n), .item = BYTES(i)
#define SET(n, i) .verb = LIST_SET, .start = (n), .item = BYTES(i)
#define TRIM(a, b) .verb = LIST_TRIM, .start = (a), .stop = (b)

static const struct {
	const char *before;
	struct list_request request;
	enum outcome_status status;
	uint64_t number;
	const char *text, *after;
} cases[] = {
	{ "a b c", { RANGE(0, -1) }, OUTCOME_DONE, 0, "a b c", "a b c" },
	{ "a b c", { RANGE(1, 1) }, OUTCOME_DONE, 0, "b", "a b c" },
	{ "a b c", { RANGE(-2, -1) }, OUTCOME_DONE, 0, "b c", "a b c" },
	{ "a b c", { RANGE(-100, 100) }, OUTCOME_DONE, 0, "a b c", "a b c" },
	{ "a b c", { RANGE(INT64_MIN, INT64_MAX) }, OUTCOME_DONE, 0, "a b c", "a b c" },
	{ "a b c", { RANGE(2, 1) }, OUTCOME_DONE, 0, "", "a b c" },
	{ "a b c", { RANGE(3, 3) }, OUTCOME_DONE, 0, "", "a b c" },
	{ "a b c", { RANGE(-4, -4) }, OUTCOME_DONE, 0, "", "a b c" },
	{ "a b c", { RANGE(INT64_MAX, INT64_MAX) }, OUTCOME_DONE, 0, "", "a b c" },
	{ "", { RANGE(0, -1) }, OUTCOME_DONE, 0, "", "" },
	{ "a b a", { LENGTH }, OUTCOME_DONE, 3, "", "a b a" },
	{ "", { LENGTH }, OUTCOME_DONE, 0, "", "" },
	{ "a b a", { POSITION("a") }, OUTCOME_DONE, 0, "", "a b a" },
	{ "a b a", { POSITION("b") }, OUTCOME_DONE, 1, "", "a b a" },
	{ "a bc a", { POSITION("b") }, OUTCOME_MISSING, 0, "", "a bc a" },
	{ "a b c", { POP_FRONT(1) }, OUTCOME_DONE, 0, "a", "b c" },
	{ "a b c", { POP_FRONT(2) }, OUTCOME_DONE, 0, "a b", "c" },
	{ "a b c", { POP_FRONT(UINT64_MAX) }, OUTCOME_DONE, 0, "a b c", "" },
	{ "a b c", { POP_FRONT(0) }, OUTCOME_DONE, 0, "", "a b c" },
	{ "", { POP_FRONT(1) }, OUTCOME_DONE, 0, "", "" },
	{ "a b c", { POP_BACK(1) }, OUTCOME_DONE, 0, "c", "a b" },
	{ "a b c", { POP_BACK(2) }, OUTCOME_DONE, 0, "c b", "a" },
	{ "a b c", { POP_BACK(4) }, OUTCOME_DONE, 0, "c b a", "" },
	{ "a b a c a", { REMOVE(0, "a") }, OUTCOME_DONE, 3, "", "b c" },
	{ "a b a c a", { REMOVE(2, "a") }, OUTCOME_DONE, 2, "", "b c a" },
	{ "a b a c a", { REMOVE(-2, "a") }, OUTCOME_DONE, 2, "", "a b c" },
	{ "a b a c a", { REMOVE(-1, "b") }, OUTCOME_DONE, 1, "", "a a c a" },
	{ "a b a", { REMOVE(INT64_MIN, "a") }, OUTCOME_DONE, 2, "", "b" },
	{ "a b a", { REMOVE(1, "x") }, OUTCOME_DONE, 0, "", "a b a" },
	{ "a a", { REMOVE(0, "a") }, OUTCOME_DONE, 2, "", "" },
	{ "a b c", { SET(1, "x") }, OUTCOME_DONE, 0, "", "a x c" },
	{ "a b c", { SET(-1, "x") }, OUTCOME_DONE, 0, "", "a b x" },
	{ "a b c", { SET(-3, "x") }, OUTCOME_DONE, 0, "", "x b c" },
	{ "a b c", { SET(3, "x") }, OUTCOME_RANGE, 0, "", "a b c" },
	{ "a b c", { SET(-4, "x") }, OUTCOME_RANGE, 0, "", "a b c" },
	{ "", { SET(0, "x") }, OUTCOME_RANGE, 0, "", "" },
	{ "a b c d", { TRIM(1, 2) }, OUTCOME_DONE, 0, "", "b c" },
	{ "a b c d", { TRIM(0, -1) }, OUTCOME_DONE, 0, "", "a b c d" },
	{ "a b c d", { TRIM(-2, -1) }, OUTCOME_DONE, 0, "", "c d" },
	{ "a b c d", { TRIM(3, 1) }, OUTCOME_DONE, 0, "", "" },
	{ "a b c d", { TRIM(9, 9) }, OUTCOME_DONE, 0, "", "" },
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static struct elements items_of(const char *text)
{
	struct slice unread = slice_of(text, strlen(text)), item;
	struct elements items = { 0 };

	while ((item = slice_token(&unread)).n)
		elements_add(&items, item);
	return items;
}

/* Compares the answer to a case, and the list after it, as joined items. */
static void answered(size_t i, const struct list_request *request, bool changed, struct slice text,
	struct slice after)
{
	ck_assert_msg(
		request->status == cases[i].status, "case %zu: status %d", i, (int)request->status);
	ck_assert_msg(request->number == cases[i].number, "case %zu: %d", i, (int)request->number);
	ck_assert_msg(
		changed == (strcmp(cases[i].before, cases[i].after) != 0), "case %zu: changed", i);
	ck_assert_uint_eq(request->size, text.n);
	assert_bytes(text, cases[i].text);
	assert_bytes(after, cases[i].after);
}

static void applied(size_t i, struct segmented_list *list)
{
	struct list_request request = cases[i].request, all = { RANGE(0, -1) };
	struct buf text = BUF_EMPTY, after = BUF_EMPTY;
	bool changed = segmented_list_apply(list, &request, &text);

	(void)segmented_list_apply(list, &all, &after);
	answered(i, &request, changed, buf_slice(&text), buf_slice(&after));
	buf_free(&text);
	buf_free(&after);
}

TEST(one_part)
{
	for (size_t i = 0; i < CASES; i++) {
		struct elements items = items_of(cases[i].before);
		struct segmented_list list;
		struct buf log = BUF_EMPTY, expected = BUF_EMPTY;

		segmented_list_of(&list, &items);
		ck_assert_ptr_null(items.list);
		applied(i, &list);
		list_piece_log(list.pieces, &log);
		items = items_of(cases[i].after);
		for (size_t j = 0; j < items.count; j++)
			buf_printf(&expected, "+%.*s ", (int)items.list[j].n, items.list[j].p);
		ck_assert(slice_equal(buf_slice(&log), buf_slice(&expected)));
		elements_free(&items);
		segmented_list_free(&list);
		buf_free(&log);
		buf_free(&expected);
	}
}

static void add_part(const struct elements *items, size_t from, size_t to, struct buf *log)
{
	for (size_t i = from; i < to; i++)
		buf_printf(log, "+%.*s ", (int)items->list[i].n, items->list[i].p);
}

static void divided(size_t i, const struct elements *items, size_t first, size_t second)
{
	struct buf base = BUF_EMPTY, segment = BUF_EMPTY;
	struct log_index *log_index;
	struct segmented_list list;

	add_part(items, 0, first, &base);
	add_part(items, first, second, &segment);
	BUF_ADD(&base, OPLOG_LIST_MARK);
	if (second > first)
		buf_printf(&base, "@l00000000001.%d.1 ", (int)(second - first));
	add_part(items, second, items->count, &base);
	ck_assert(segmented_list_read(&list, buf_slice(&base)));
	log_index = log_index_create(buf_slice(&segment), &segment);
	ck_assert(second == first || segmented_list_load(&list.pieces[1], log_index));
	applied(i, &list);
	log_index_release(log_index);
	segmented_list_free(&list);
	buf_free(&base);
}

TEST(three_parts)
{
	for (size_t i = 0; i < CASES; i++) {
		struct elements items = items_of(cases[i].before);
		for (size_t first = 0; first <= items.count; first++) {
			for (size_t second = first; second <= items.count; second++)
				divided(i, &items, first, second);
		}
		elements_free(&items);
	}
}

/* Other tests compare lists with this model. */
TEST(the_model)
{
	for (size_t i = 0; i < CASES; i++) {
		struct elements items = items_of(cases[i].before);
		struct list_request request = cases[i].request, all = { RANGE(0, -1) };
		struct buf text = BUF_EMPTY, after = BUF_EMPTY;
		bool changed = list_model_apply(&items, &request, &text);

		(void)list_model_apply(&items, &all, &after);
		answered(i, &request, changed, buf_slice(&text), buf_slice(&after));
		elements_free(&items);
		buf_free(&text);
		buf_free(&after);
	}
}
