/* Stored lists: reading a base, and requests, which must change a list like an array of items. */
#include "collection/list/segmented_list.h"

#include "list_model.h"
#include "unit.h"
#include "util/random.h"

#define L1 "l00000000001.3.1"
#define T1 "t00000000001.1.3.0.99.0123456789abcdef"

/* Bases that cannot be read as lists, and why. */
static const struct {
	const char *base;
	enum oplog_form form;
	bool is_set;
} strangers[] = {
	{ "@set.1 ", OPLOG_GOOD, true },
	{ "@set.1 @" T1 " +a ", OPLOG_GOOD, true },
	{ "+x @set.1 @" T1 " ", OPLOG_GOOD, true },
	{ "@set.4 ", OPLOG_NEWER, false },
	{ "@list.4 @" L1 " ", OPLOG_NEWER, false },
	{ "@c00000000001.0.1 +a ", OPLOG_OUTDATED, false },
	{ "+x @d00000000001.0.1 ", OPLOG_OUTDATED, false },
	{ "hello", OPLOG_CORRUPT, false },
	{ "@list hello", OPLOG_CORRUPT, false },
	{ "@list @" T1 " ", OPLOG_CORRUPT, false },
	{ "@set.1 @" L1 " ", OPLOG_CORRUPT, false },
	{ "+a  @list ", OPLOG_CORRUPT, false },
};

TEST(no_list)
{
	struct segmented_list list = { .piece_count = 0 };

	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
		ck_assert_msg(!segmented_list_read(&list, guard_text(strangers[i].base)), "\"%s\"",
			strangers[i].base);
		ck_assert_msg(list.form == strangers[i].form, "\"%s\": %d", strangers[i].base,
			(int)list.form);
		ck_assert_msg(list.is_set == strangers[i].is_set, "\"%s\"", strangers[i].base);
		segmented_list_free(&list);
	}
}

/* A set that is one log keeps the order of its members, and can be read as a list. */
TEST(parts)
{
	struct segmented_list list = { .piece_count = 0 };

	ck_assert(segmented_list_read(&list, SLICE("+a +b ")));
	ck_assert(!list.is_list && !list.tangled && segmented_list_count(&list) == 2);
	segmented_list_free(&list);
	ck_assert(segmented_list_read(&list, SLICE("+x @list @" L1 ":1:2 @" L1 " +a +b ")));
	ck_assert(list.is_list && !list.tangled && list.piece_count == 4 &&
		segmented_list_count(&list) == 1 + 2 + 3 + 2);
	segmented_list_free(&list);
	ck_assert(segmented_list_read(&list, SLICE("@" L1 " -a ")));
	ck_assert(list.is_list && list.tangled);
	segmented_list_free(&list);
}

static void fill(struct list_model *m, int count)
{
	char name[16];

	for (int i = 0; i < count; i++) {
		int n = snprintf(name, sizeof(name), "m%d", i);
		list_model_push(m, slice_of(name, (size_t)n), false);
		if (i % 20 == 19)
			list_model_compact(m);
	}
}

/* How many segments a request loads. */
TEST(needs)
{
	static const struct {
		struct list_request request;
		size_t loaded;
	} cases[] = {
		{ { .verb = LIST_LENGTH }, 0 },
		{ { .verb = LIST_RANGE, .start = 0, .stop = 2 }, 1 },
		{ { .verb = LIST_RANGE, .start = -3, .stop = -1 }, 0 },
		{ { .verb = LIST_RANGE, .start = 100, .stop = 100 }, 1 },
		{ { .verb = LIST_RANGE, .start = 1000, .stop = 2000 }, 0 },
		{ { .verb = LIST_SET, .start = 100, .item = { "x", 1 } }, 1 },
		{ { .verb = LIST_POP_FRONT, .count = 1 }, 1 },
		{ { .verb = LIST_POP_BACK, .count = 1 }, 0 },
		{ { .verb = LIST_TAKE, .start = 0, .item = { "x", 1 } }, 1 },
		{ { .verb = LIST_TAKE, .start = -1, .item = { "x", 1 } }, 0 },
		{ { .verb = LIST_ROTATE, .start = -1, .stop = 0 }, 0 },
		{ { .verb = LIST_INSERT, .pivot = { "last", 4 }, .item = { "x", 1 } }, 0 },
		{ { .verb = LIST_POSITION, .item = { "x", 1 }, .find = { .rank = -1, .most = 3 } },
			0 },
		{ { .verb = LIST_POSITION, .item = { "y", 1 }, .find = { .rank = 1, .most = 3 } },
			1 },
		{ { .verb = LIST_TRIM, .start = 3, .stop = -30 }, 0 },
	};
	static struct list_model m;
	struct buf text = BUF_EMPTY;

	list_model_init(&m, 64, 128);
	fill(&m, 200);
	for (int i = 0; i < 5; i++)
		list_model_push(&m, SLICE("last"), false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct list_request request = cases[i].request;
		list_model_ask(&m, &request, &text);
		ck_assert_msg(m.loaded == cases[i].loaded, "case %zu: %zu", i, m.loaded);
	}
	buf_free(&text);
	list_model_fini(&m);
}

/* Carries out a read in slices of at most LIST_SLICE elements. Returns their number. */
static size_t slices(struct segmented_list *list, struct list_request request, const char *answer)
{
	struct buf text = BUF_EMPTY;
	size_t count = 0, before;
	bool complete = false;

	for (; !complete; count++) {
		before = request.done;
		complete = segmented_list_read_slice(list, &request, &text);
		ck_assert_uint_le(request.done - before, LIST_SLICE);
	}
	if (answer)
		ck_assert_msg(slice_equal(buf_slice(&text), slice_of(answer, strlen(answer))),
			"not %s", answer);
	buf_free(&text);
	return count;
}

/* However many elements a log or segment has. */
TEST(reads_in_slices)
{
	enum { LOG = 2 * LIST_SLICE, ALL = 2 * LOG, SLICES = ALL / LIST_SLICE };
	const struct list_find first = { .rank = 1 }, last = { .rank = -1 },
			       from_start = { .rank = 1, .many = true },
			       from_end = { .rank = -1, .many = true },
			       some = { .rank = -1, .many = true, .most = LOG + 1 };
	struct list_request find = { .verb = LIST_POSITION, .item = SLICE("x") };
	struct buf base = BUF_EMPTY;
	struct segmented_list list;

	for (int i = 0; i < ALL; i++) {
		if (i == LOG)
			BUF_ADD(&base, "@list ");
		buf_printf(&base, i % 1500 == 700 ? "+x " : "+m%d ", i);
	}
	ck_assert(segmented_list_read(&list, buf_slice(&base)));
	find.find = from_start;
	ck_assert_uint_eq(slices(&list, find, "700 2200 3700"), SLICES);
	find.find = from_end;
	ck_assert_uint_eq(slices(&list, find, "3700 2200 700"), SLICES);
	find.find = some;
	ck_assert_uint_eq(slices(&list, find, "3700 2200"), SLICES / 2 + 1);
	find.find = first;
	ck_assert_uint_eq(slices(&list, find, ""), 1);
	find.item = SLICE("m0");
	find.find = last;
	ck_assert_uint_eq(slices(&list, find, ""), SLICES);
	ck_assert_uint_eq(
		slices(&list, (struct list_request){ .verb = LIST_RANGE, .start = 0, .stop = -1 },
			NULL),
		SLICES);
	segmented_list_free(&list);
	buf_free(&base);
}

static void random_step(struct list_model *m, uint64_t *random, struct buf *text)
{
	static const enum list_verb verbs[] = { LIST_RANGE, LIST_LENGTH, LIST_POSITION,
		LIST_POP_FRONT, LIST_POP_BACK, LIST_REMOVE, LIST_SET, LIST_TRIM, LIST_INSERT,
		LIST_TAKE, LIST_ROTATE };
	uint64_t dice = random_next(random) % 100;
	char name[16];
	size_t n = (size_t)snprintf(name, sizeof(name), "m%d", (int)(random_next(random) % 9));
	struct list_request request = {
		.verb = verbs[random_next(random) % 11],
		.start = (int64_t)(random_next(random) % 61) - 30,
		.stop = (int64_t)(random_next(random) % 61) - 30,
		.count = random_next(random) % 4,
		.item = slice_of(name, n),
	};

	char other[16];
	request.find = (struct list_find){ (int64_t)(random_next(random) % 5) - 2,
		random_next(random) % 4, random_next(random) % 40, random_next(random) % 2 };
	request.find.rank += request.find.rank == 0;
	request.pivot = slice_of(other,
		(size_t)snprintf(other, sizeof(other), "m%d", (int)(random_next(random) % 9)));
	if (request.verb == LIST_TRIM)
		request.start %= 3;
	if (request.verb == LIST_INSERT)
		request.start &= 1;
	if (request.verb == LIST_TAKE || request.verb == LIST_ROTATE) {
		request.start = request.start < 0 ? -1 : 0;
		request.stop = request.stop < 0 ? -1 : 0;
	}
	if (dice < 62)
		list_model_push(m, request.item, dice < 30);
	else if (dice < 64)
		list_model_srem(m, request.item);
	else if (dice < 72)
		list_model_compact(m);
	else
		list_model_ask(m, &request, text);
	buf_consume(text, buf_size(text));
}

/* Bases and segments are small, so that each part of a list occurs in each state. Half of the lists have a limit. */
TEST(as_an_array)
{
	static struct list_model m;
	struct buf text = BUF_EMPTY;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed;
		list_model_init(&m, 24, 40);
		m.max = seed % 2 ? 0 : 1 + seed / 2 % 30;
		m.newest_first = seed % 4;
		for (int i = 0; i < 200; i++)
			random_step(&m, &random, &text);
		list_model_fini(&m);
	}
	buf_free(&text);
}

/* --- a limit --- */

static void is_left(const char *log, uint64_t max, bool newest_first, const char *left)
{
	struct buf out = BUF_EMPTY;

	ck_assert(segmented_list_limit_log(guard_text(log), max, newest_first, 1, &out));
	assert_bytes(buf_slice(&out), left);
	buf_free(&out);
}

TEST(limit_of_a_log)
{
	struct buf out = BUF_EMPTY;

	is_left("+a +b +c ", 2, false, "+b +c ");
	is_left("+a +b +c ", 2, true, "+a +b ");
	is_left("+a +b +c ", 3, true, "+a +b +c ");
	is_left("+a +b +c +d -d ", 2, false, "+b +c ");
	is_left("+a +b -b -a ", 2, false, "");
	is_left("", 2, false, "");
	ck_assert(!segmented_list_limit_log(SLICE("@list @" L1 " +a "), 2, false, 1, &out));
	ck_assert(!segmented_list_limit_log(SLICE("a"), 2, false, 1, &out));
	buf_free(&out);
}

/* As long as elements are pushed, compaction drops segments whole, and the base does not grow. */
TEST(a_feed)
{
	static struct list_model m;

	for (int newest_first = 0; newest_first < 2; newest_first++) {
		size_t there = 0;
		list_model_init(&m, 64, 128);
		m.max = 50;
		m.newest_first = newest_first;
		for (int i = 0; i < 3000; i++) {
			list_model_push(&m, SLICE("element"), newest_first);
			if (i % 20 == 19)
				list_model_compact(&m);
			ck_assert_uint_le(buf_size(&m.base), 600);
		}
		for (size_t i = 0; i < m.segment_count; i++)
			there += m.segments[i].there;
		ck_assert(there > 0 && there < 8);
		ck_assert_uint_eq(m.items.count, 50);
		list_model_fini(&m);
	}
}
