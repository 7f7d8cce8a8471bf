/* Lists as they are stored: what a base says, and that every request does to it what it does to a plain sequence. */
#include "collection/chain.h"

#include <stdio.h>

#include "list_model.h"
#include "unit.h"
#include "util/random.h"

#define L1 "l00000000001.3.1"
#define L2 "l00000000002.40.1"
#define C1 "c00000000001.0.1"

static const struct {
	const char *base, *head, *refs, *log;
	size_t ref_count;
	bool is_list, good;
} splits[] = {
	{ "", "", "", "", 0, false, true },
	{ "+a -b ", "", "", "+a -b ", 0, false, true },
	{ "@list ", "", "", "", 0, true, true },
	{ "+x @list +a ", "+x ", "", "+a ", 0, true, true },
	{ "+x+@ +y @" C1 " -a ", "+x+@ +y ", "@" C1 " ", "-a ", 1, false, true },
	{ "@" L1 ":1:2 @" L2 " +a ", "", "@" L1 ":1:2 @" L2 " ", "+a ", 2, true, true },
	{ "+x @list @" L1 " ", "+x ", "@" L1 " ", "", 1, true, true },
	{ "+a@list +b ", "", "", "+a@list +b ", 0, false, true },
	{ "+@list +b ", "", "", "+@list +b ", 0, false, true },
	{ "@list @list ", NULL, NULL, NULL, 0, true, false },
	{ "@list +a @list ", NULL, NULL, NULL, 0, true, false },
	{ "@list +a @" L1 " ", NULL, NULL, NULL, 0, true, false },
	{ "@" L1 " @list ", NULL, NULL, NULL, 0, true, false },
	{ "@lists ", NULL, NULL, NULL, 0, false, false },
	{ "@list", NULL, NULL, NULL, 0, false, false },
	{ "@" L1 ":0:0 ", NULL, NULL, NULL, 0, false, false },
	{ "@" L1 ":1:3 ", NULL, NULL, NULL, 0, false, false },
	{ "@" L1 ":4294967295:2 ", NULL, NULL, NULL, 0, false, false },
	{ "@" L1 ":1 ", NULL, NULL, NULL, 0, false, false },
	{ "@" L1 ":1:1:1 ", NULL, NULL, NULL, 0, false, false },
	{ "@" C1 ":0:1 ", NULL, NULL, NULL, 0, false, false },
	{ "@l00000000001.0.1 ", NULL, NULL, NULL, 0, false, false },
	{ "@x00000000001.0.1 ", NULL, NULL, NULL, 0, false, false },
};

START_TEST(splitting)
{
	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		struct oplog_base base;
		bool good = oplog_split(slice_of(splits[i].base, strlen(splits[i].base)), &base);

		ck_assert_msg(good == splits[i].good, "\"%s\"", splits[i].base);
		if (!good)
			continue;
		ck_assert_msg(base.is_list == splits[i].is_list, "\"%s\"", splits[i].base);
		ck_assert_uint_eq(base.ref_count, splits[i].ref_count);
		assert_bytes(base.head, splits[i].head);
		assert_bytes(base.refs, splits[i].refs);
		assert_bytes(base.log, splits[i].log);
	}
}
END_TEST

START_TEST(windows)
{
	struct slice refs = SLICE("@" L1 ":1:2 @" L1 " ");
	struct oplog_ref ref;
	struct buf again = BUF_EMPTY;

	ck_assert(oplog_next_ref(&refs, &ref));
	assert_bytes(ref.id, L1);
	ck_assert(ref.count == 3 && ref.skip == 1 && ref.keep == 2);
	assert_bytes(oplog_window(SLICE("+a +b +c "), &ref), "+b +c ");
	oplog_add_ref(&again, ref.id, ref.count, ref.skip, ref.keep);
	assert_bytes(buf_slice(&again), "@" L1 ":1:2 ");
	ck_assert(oplog_next_ref(&refs, &ref));
	ck_assert(ref.skip == 0 && ref.keep == 3);
	assert_bytes(oplog_window(SLICE("+a +b +c "), &ref), "+a +b +c ");
	buf_free(&again);
}
END_TEST

/* A piece at the end begins with a whole token. */
START_TEST(cutting_at_the_end)
{
	struct slice log = SLICE("+aa +b +ccc ");

	ck_assert_uint_eq(oplog_cut_end(log, 100), 12);
	ck_assert_uint_eq(oplog_cut_end(log, 12), 12);
	ck_assert_uint_eq(oplog_cut_end(log, 11), 8);
	ck_assert_uint_eq(oplog_cut_end(log, 8), 8);
	ck_assert_uint_eq(oplog_cut_end(log, 7), 5);
	ck_assert_uint_eq(oplog_cut_end(log, 4), 0);
}
END_TEST

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

/* What a request needs read: all else is known from the base. */
START_TEST(needs)
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
END_TEST

static void random_step(struct list_model *m, uint64_t *random, struct buf *text)
{
	static const enum list_verb verbs[] = { LIST_RANGE, LIST_LENGTH, LIST_POSITION, LIST_POP_FRONT, LIST_POP_BACK,
		LIST_REMOVE, LIST_SET, LIST_TRIM };
	uint64_t dice = random_next(random) % 100;
	char name[16];
	size_t n = (size_t)snprintf(name, sizeof(name), "m%d", (int)(random_next(random) % 9));
	struct list_request request = {
		.verb = verbs[random_next(random) % 8],
		.start = (int64_t)(random_next(random) % 61) - 30,
		.stop = (int64_t)(random_next(random) % 61) - 30,
		.count = random_next(random) % 4,
		.item = slice_of(name, n),
	};

	if (request.verb == LIST_TRIM)
		request.start %= 3;
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

/* Small bases and segments, so that every part of a list is met in every state. */
START_TEST(as_a_plain_sequence)
{
	static struct list_model m;
	struct buf text = BUF_EMPTY;

	for (uint64_t seed = 1; seed <= 150; seed++) {
		uint64_t random = seed;
		list_model_init(&m, 24, 40);
		for (int i = 0; i < 200; i++)
			random_step(&m, &random, &text);
		list_model_fini(&m);
	}
	buf_free(&text);
}
END_TEST

SUITE(chain, splitting, windows, cutting_at_the_end, needs, as_a_plain_sequence)
