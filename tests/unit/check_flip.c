/* Plans of the encoding flip that are executed late, or during which others change the items. */
#include "box.h"
#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"
#include "unit.h"

enum { FLIP_BY_MARK = 4, FLIP = 5 };

static struct box box;
static struct fold cat, all;
static struct plan plan;
static struct snapshot s, late;

static void setup(void)
{
	cat.seed = all.seed = 3;
	ck_assert(signed_fold(&cat, SLICE("+cat")));
}

static void teardown(void)
{
	plan_free(&plan);
	snapshot_free(&s);
	snapshot_free(&late);
	fold_free(&all);
	fold_free(&cat);
	box_free(&box);
}

/* Both lists have words, and none is marked: that is no set, but an item that can be deleted. */
TEST(without_a_mark)
{
	box_init(&box, FLIP_BY_MARK);
	box_put(&box, "s.a", SLICE("+ann"));
	box_put(&box, "s.b", SLICE("+bob"));
	ck_assert_int_eq(box_fold(&box, &s, &all), ADOPTED_CORRUPT);
	ck_assert(box.encoding->vital_item(&s) && box.encoding->vital_item(&s)->there);
}

/* A plan that is to create a set is carried out after others created one, flipped its lists, and lost the first. */
static void create_late(bool replaces)
{
	box_init(&box, FLIP_BY_MARK);
	late = box_look(&box, replaces ? FOR_REWRITE : FOR_ALL, &cat);
	if (replaces)
		ck_assert_int_eq(box.encoding->replace(&late, &cat, &plan), ADOPTED_OK);
	else
		ck_assert_int_eq(box.encoding->change(&late, true, &plan), ADOPTED_OK);
	ck_assert(plan.count > 0 && plan.again);
	box_put(&box, "s.b", SLICE("+bob"));
	for (size_t i = 0; i < plan.count; i++)
		(void)box_step(&box, &plan.steps[i]);
	ck_assert_int_eq(box_fold(&box, &s, &all), ADOPTED_OK);
	ck_assert_str_eq(box_text(&all), "bob");
}

LOOP_TEST(created_late, 2)
{
	create_late(_i);
}

/*
 * A half flip is completed by two writes: the first one takes the other list away from clients
 * that would create a set there.
 */
TEST(finished)
{
	box_init(&box, FLIP_BY_MARK);
	box_put(&box, "s.a", SLICE("^"));
	box_put(&box, "s.b", SLICE("^-^"));
	s = box_look(&box, FOR_ALL, &cat);
	ck_assert_int_eq(box.encoding->change(&s, true, &plan), ADOPTED_OK);
	ck_assert(plan.count == 2 && plan.again);
	assert_bytes(plan.steps[0].item->waiter.key, "s.a");
	assert_bytes(buf_slice(&plan.steps[0].value), "^");
	assert_bytes(plan.steps[1].item->waiter.key, "s.b");
	assert_bytes(buf_slice(&plan.steps[1].value), "-^");
	ck_assert(plan.steps[0].verb == CALL_CAS && plan.steps[1].verb == CALL_CAS);
}

static void compact_once(void)
{
	enum adopted_status status;

	ck_assert(box_compact(&box, PLAN_STEPS_MAX, &status) && status == ADOPTED_OK);
}

static void pointer_is(const char *list)
{
	assert_bytes(buf_slice(&box_find(&box, SLICE("s.active"))->value), list);
}

/* A pointer, an active list with waste, and an inactive one with no more than the guard. */
static void init_flipped(void)
{
	box_init(&box, FLIP);
	box_put(&box, "s.active", SLICE("s.a"));
	box_put(&box, "s.a", SLICE("+ann-ann+ann-ann+bob"));
	box_put(&box, "s.b", SLICE("-^"));
}

/*
 * The rest of a lost set is deleted late, when its guard already is the active list of a new set.
 */
TEST(cleared_late)
{
	box_init(&box, FLIP);
	box_put(&box, "s.a", SLICE("+ann"));
	box_put(&box, "s.b", SLICE("-^"));
	ck_assert_int_eq(box_fold(&box, &late, &all), ADOPTED_LOST);
	box.encoding->clear(&late, &plan);
	ck_assert_uint_eq(plan.count, 2);
	box_put(&box, "s.active", SLICE("s.a"));
	box_put(&box, "s.a", SLICE("+ann-ann+ann-ann+bob"));
	for (int i = 0; i < 2; i++)
		compact_once();
	pointer_is("s.b");
	for (size_t i = 0; i < plan.count; i++)
		ck_assert(!box_step(&box, &plan.steps[i]));
	fold_reset(&all);
	ck_assert_int_eq(box_fold(&box, &s, &all), ADOPTED_OK);
	ck_assert_str_eq(box_text(&all), "bob");
}

/* The list that was prepared for one pointer is prepared once more for another. */
TEST(prepared_for_another)
{
	init_flipped();
	compact_once();
	box_put(&box, "s.active", SLICE("s.a"));
	compact_once();
	pointer_is("s.a");
	compact_once();
	pointer_is("s.b");
}

/* A touch is executed between the read of a time to live and the write of its copy. */
TEST(touched)
{
	init_flipped();
	box_find(&box, SLICE("s.a"))->expires = 100;
	compact_once();
	ck_assert_int_eq(box_find(&box, SLICE("s.b"))->expires, 100);
	box_find(&box, SLICE("s.a"))->expires = 5000;
	compact_once();
	pointer_is("s.a");
	ck_assert_int_eq(box_find(&box, SLICE("s.b"))->expires, 5000);
	compact_once();
	pointer_is("s.b");
	ck_assert_int_eq(box_find(&box, SLICE("s.active"))->expires, 0);
}

/* Changes the set as a write does that was repeated: it reads both lists. */
static void change_again(const char *words)
{
	struct fold change = { .seed = 3 };
	bool again = true;

	ck_assert(signed_fold(&change, slice_of(words, strlen(words))));
	for (int round = 0; round < 5 && again; round++) {
		struct snapshot now = box_look(&box, FOR_ALL, &change);
		struct plan steps = { 0 };
		ck_assert_int_eq(box.encoding->change(&now, true, &steps), ADOPTED_OK);
		for (size_t i = 0; i < steps.count; i++)
			ck_assert(box_step(&box, &steps.steps[i]));
		again = steps.again;
		plan_free(&steps);
		snapshot_free(&now);
	}
	ck_assert(!again);
	fold_free(&change);
}

/*
 * A removal arrives late, at the list that is about to become active. It is repeated, and then the
 * member is added again. The late removal must not take effect again with the flip.
 */
TEST(flipped_behind_late_words)
{
	init_flipped();
	compact_once();
	late = box_look(&box, FOR_REWRITE, NULL);
	ck_assert_int_eq(box.encoding->fold(&late, &all), ADOPTED_OK);
	box.encoding->compact(&late, &all, &plan);
	ck_assert(plan.count == 1 && plan.steps[0].item->role == 2);
	box_put(&box, "s.b", SLICE("-^-bob"));
	change_again("-bob");
	change_again("+bob");
	ck_assert(!box_step(&box, &plan.steps[0]));
	fold_reset(&all);
	ck_assert_int_eq(box_fold(&box, &s, &all), ADOPTED_OK);
	ck_assert_str_eq(box_text(&all), "bob");
}

/* Pops and compactions do not leave such a flip possible either: they move the late words. */
LOOP_TEST(moves_late_words, 2)
{
	init_flipped();
	box_put(&box, "s.b", SLICE("-^+cat"));
	late = box_look(&box, FOR_REWRITE, NULL);
	ck_assert_int_eq(box.encoding->fold(&late, &all), ADOPTED_OK);
	if (_i)
		box.encoding->take(&late, &all, &cat, &plan);
	else
		box.encoding->compact(&late, &all, &plan);
	ck_assert(plan.count == 2 && plan.again);
	assert_bytes(plan.steps[0].item->waiter.key, "s.active");
	assert_bytes(buf_slice(&plan.steps[0].value), "s.a");
	assert_bytes(plan.steps[1].item->waiter.key, "s.b");
	assert_bytes(buf_slice(&plan.steps[1].value), "+cat");
	ck_assert(plan.steps[0].verb == CALL_CAS && plan.steps[1].verb == CALL_CAS);
}

/* The clocks of the lists' servers are 10 seconds apart. */
TEST(between_clocks)
{
	init_flipped();
	box_find(&box, SLICE("s.a"))->expires = 100;
	for (int copies = 0; copies < 2; copies++) {
		compact_once();
		pointer_is("s.a");
		ck_assert_int_eq(box_find(&box, SLICE("s.b"))->expires, 100);
		box_find(&box, SLICE("s.b"))->expires = 110;
	}
	compact_once();
	pointer_is("s.b");
}

FIXTURE(setup, teardown)
