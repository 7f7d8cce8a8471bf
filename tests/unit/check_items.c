/* The algebra of lists, by a table: what each request makes of a list. */
#include "collection/list/items.h"

#include "unit.h"

#define RANGE(a, b) \
	{ \
		.verb = LIST_RANGE, .start = (a), .stop = (b) \
	}
#define LENGTH \
	{ \
		.verb = LIST_LENGTH \
	}
#define POSITION(i) \
	{ \
		.verb = LIST_POSITION, .item = { i, sizeof(i) - 1 } \
	}
#define POP_FRONT(n) \
	{ \
		.verb = LIST_POP_FRONT, .count = (n) \
	}
#define POP_BACK(n) \
	{ \
		.verb = LIST_POP_BACK, .count = (n) \
	}
#define REMOVE(n, i) \
	{ \
		.verb = LIST_REMOVE, .start = (n), .item = { i, sizeof(i) - 1 } \
	}
#define SET(n, i) \
	{ \
		.verb = LIST_SET, .start = (n), .item = { i, sizeof(i) - 1 } \
	}
#define TRIM(a, b) \
	{ \
		.verb = LIST_TRIM, .start = (a), .stop = (b) \
	}

static const struct {
	const char *before;
	struct list_request request;
	enum outcome_status status;
	uint64_t number;
	const char *text, *after;
} cases[] = {
	{ "a b c", RANGE(0, -1), OUTCOME_DONE, 0, "a b c", "a b c" },
	{ "a b c", RANGE(1, 1), OUTCOME_DONE, 0, "b", "a b c" },
	{ "a b c", RANGE(-2, -1), OUTCOME_DONE, 0, "b c", "a b c" },
	{ "a b c", RANGE(-100, 100), OUTCOME_DONE, 0, "a b c", "a b c" },
	{ "a b c", RANGE(INT64_MIN, INT64_MAX), OUTCOME_DONE, 0, "a b c", "a b c" },
	{ "a b c", RANGE(2, 1), OUTCOME_DONE, 0, "", "a b c" },
	{ "a b c", RANGE(3, 3), OUTCOME_DONE, 0, "", "a b c" },
	{ "a b c", RANGE(-4, -4), OUTCOME_DONE, 0, "", "a b c" },
	{ "a b c", RANGE(INT64_MAX, INT64_MAX), OUTCOME_DONE, 0, "", "a b c" },
	{ "", RANGE(0, -1), OUTCOME_DONE, 0, "", "" },
	{ "a b a", LENGTH, OUTCOME_DONE, 3, "", "a b a" },
	{ "", LENGTH, OUTCOME_DONE, 0, "", "" },
	{ "a b a", POSITION("a"), OUTCOME_DONE, 0, "", "a b a" },
	{ "a b a", POSITION("b"), OUTCOME_DONE, 1, "", "a b a" },
	{ "a bc a", POSITION("b"), OUTCOME_MISSING, 3, "", "a bc a" },
	{ "a b c", POP_FRONT(1), OUTCOME_DONE, 0, "a", "b c" },
	{ "a b c", POP_FRONT(2), OUTCOME_DONE, 0, "a b", "c" },
	{ "a b c", POP_FRONT(UINT64_MAX), OUTCOME_DONE, 0, "a b c", "" },
	{ "a b c", POP_FRONT(0), OUTCOME_DONE, 0, "", "a b c" },
	{ "", POP_FRONT(1), OUTCOME_DONE, 0, "", "" },
	{ "a b c", POP_BACK(1), OUTCOME_DONE, 0, "c", "a b" },
	{ "a b c", POP_BACK(2), OUTCOME_DONE, 0, "c b", "a" },
	{ "a b c", POP_BACK(4), OUTCOME_DONE, 0, "c b a", "" },
	{ "a b a c a", REMOVE(0, "a"), OUTCOME_DONE, 3, "", "b c" },
	{ "a b a c a", REMOVE(2, "a"), OUTCOME_DONE, 2, "", "b c a" },
	{ "a b a c a", REMOVE(-2, "a"), OUTCOME_DONE, 2, "", "a b c" },
	{ "a b a c a", REMOVE(-1, "b"), OUTCOME_DONE, 1, "", "a a c a" },
	{ "a b a", REMOVE(INT64_MIN, "a"), OUTCOME_DONE, 2, "", "b" },
	{ "a b a", REMOVE(1, "x"), OUTCOME_DONE, 0, "", "a b a" },
	{ "a a", REMOVE(0, "a"), OUTCOME_DONE, 2, "", "" },
	{ "a b c", SET(1, "x"), OUTCOME_DONE, 0, "", "a x c" },
	{ "a b c", SET(-1, "x"), OUTCOME_DONE, 0, "", "a b x" },
	{ "a b c", SET(-3, "x"), OUTCOME_DONE, 0, "", "x b c" },
	{ "a b c", SET(3, "x"), OUTCOME_RANGE, 0, "", "a b c" },
	{ "a b c", SET(-4, "x"), OUTCOME_RANGE, 0, "", "a b c" },
	{ "", SET(0, "x"), OUTCOME_RANGE, 0, "", "" },
	{ "a b c d", TRIM(1, 2), OUTCOME_DONE, 0, "", "b c" },
	{ "a b c d", TRIM(0, -1), OUTCOME_DONE, 0, "", "a b c d" },
	{ "a b c d", TRIM(-2, -1), OUTCOME_DONE, 0, "", "c d" },
	{ "a b c d", TRIM(3, 1), OUTCOME_DONE, 0, "", "" },
	{ "a b c d", TRIM(9, 9), OUTCOME_DONE, 0, "", "" },
};

START_TEST(table)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice rest = slice_of(cases[i].before, strlen(cases[i].before)), item;
		struct list_request request = cases[i].request;
		struct buf text = BUF_EMPTY, after = BUF_EMPTY;
		struct items items = { 0 };

		while ((item = slice_token(&rest)).n)
			items_add(&items, item);
		bool changed = items_apply(&items, &request, &text);
		for (size_t j = 0; j < items.count; j++)
			items_join(&after, 0, items.list[j]);
		ck_assert_msg(request.status == cases[i].status, "case %zu: status %d", i, (int)request.status);
		ck_assert_msg(request.number == cases[i].number, "case %zu: %d", i, (int)request.number);
		assert_bytes(buf_slice(&text), cases[i].text);
		assert_bytes(buf_slice(&after), cases[i].after);
		ck_assert_msg(changed == (strcmp(cases[i].before, cases[i].after) != 0), "case %zu: changed", i);
		items_free(&items);
		buf_free(&text);
		buf_free(&after);
	}
}
END_TEST

SUITE(items, table)
