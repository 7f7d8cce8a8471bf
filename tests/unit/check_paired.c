/* Plans of the encoding paired during which others change the items. */
#include "box.h"
#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"
#include "unit.h"

enum {
	PAIRED = 3,
	COUNTS = 3,
	CASES = COUNTS * COUNTS * COUNTS * COUNTS,
	ORDERS = 16,
	STEPS_MAX = 4
};

static struct box box;
static struct fold ann, all;

static void setup(void)
{
	ann.seed = all.seed = 3;
	ck_assert(signed_fold(&ann, SLICE("+ann")));
}

static void teardown(void)
{
	fold_free(&all);
	fold_free(&ann);
	box_free(&box);
}

static void members_are(const char *expected, const char *after)
{
	struct snapshot s;

	fold_reset(&all);
	ck_assert_int_eq(box_fold(&box, &s, &all), ADOPTED_OK);
	ck_assert_msg(strcmp(box_text(&all), expected) == 0, "\"%s\", not \"%s\", after %s",
		box_text(&all), expected, after);
	snapshot_free(&s);
}

/* An operation that has its plan; others may act before its next step. */
struct late {
	struct snapshot s;
	struct plan plan;
	size_t step;
	bool lost;
};

static void begin_compaction(struct late *late)
{
	struct fold members = { .seed = 3 };

	*late = (struct late){ .s = box_look(&box, FOR_REWRITE, NULL) };
	late->s.forced = true;
	ck_assert_int_eq(box_fold_of(&late->s, &members), ADOPTED_OK);
	(void)box.encoding->compact(&late->s, &late->plan);
	ck_assert_uint_le(late->plan.count, STEPS_MAX / 2);
	fold_free(&members);
}

static bool go_on(struct late *late)
{
	if (late->lost || late->step == late->plan.count)
		return false;
	late->lost = !box_step(&box, &late->s, &late->plan.steps[late->step++]);
	return !late->lost;
}

static void end(struct late *late)
{
	plan_free(&late->plan);
	snapshot_free(&late->s);
}

/* Stores an item in which ann follows as often. */
static void put_count(const char *key, const char *head, int count)
{
	struct buf value = BUF_EMPTY;

	buf_add_slice(&value, slice_of(head, strlen(head)));
	delimited_add(&value, SLICE("ann"), ',', count);
	box_put(&box, key, buf_slice(&value));
	buf_free(&value);
}

/*
 * Between the plans of two compactions, others append to the items. Then the compactions make
 * steps in this order.
 */
static void compact_both(int added, int removed, int then_added, int then_removed, unsigned order)
{
	bool in = added + then_added > removed + then_removed;
	char after[128];
	struct late first, second;

	box_init(&box, PAIRED);
	put_count("s", "bob,", added);
	put_count("t", "", removed);
	begin_compaction(&first);
	if (then_added)
		put_count("s", "bob,", added + then_added);
	if (then_removed)
		put_count("t", "", removed + then_removed);
	begin_compaction(&second);
	snprintf(after, sizeof(after), "%d-%d, then %d-%d more, in order %u", added, removed,
		then_added, then_removed, order);
	for (int i = 0; i < STEPS_MAX; i++) {
		if (go_on(order >> i & 1 ? &second : &first))
			members_are(in ? "bob ann" : "bob", after);
	}
	while (go_on(&first) || go_on(&second))
		members_are(in ? "bob ann" : "bob", after);
	end(&first);
	end(&second);
	box_free(&box);
}

/*
 * No step of a compaction may change the set, whatever another compaction with other counts does.
 */
LOOP_TEST(two_compactions, CASES)
{
	int digits[4];

	for (int i = 0, rest = _i; i < 4; i++, rest /= COUNTS)
		digits[i] = rest % COUNTS;
	for (unsigned order = 0; order < ORDERS; order++)
		compact_both(digits[0], digits[1], digits[2], digits[3], order);
}

/*
 * While a set is created, another client creates it, which has not seen that a member was removed
 * from the earlier set. Removals apply to the set that exists by then, so they must not be
 * dropped.
 */
TEST(created_by_another)
{
	struct late late = { 0 };

	box_init(&box, PAIRED);
	box_put(&box, "t", SLICE("ann,"));
	late.s = box_look(&box, FOR_WRITE, &ann);
	ck_assert_int_eq(box.encoding->change(&late.s, true, &late.plan), ADOPTED_OK);
	box_put(&box, "s", SLICE("ann,bob,"));
	while (go_on(&late))
		members_are("bob", "a step of the late creation");
	members_are("bob", "the late creation");
	end(&late);
}

/* A new set outweighs the removals of an earlier one, which do not expire before it. */
TEST(outweighs)
{
	box_init(&box, PAIRED);
	box_put(&box, "t", SLICE("ann,cat,ann,"));
	box_find(&box, SLICE("t"))->expires = 100;
	ck_assert_int_eq(box_change(&box, &ann, true), ADOPTED_OK);
	members_are("ann", "the creation");
	assert_bytes(buf_slice(&box_find(&box, SLICE("t"))->value), "ann,cat,ann,");
	ck_assert_int_eq(box_find(&box, SLICE("t"))->expires, 0);
}

/* A removal that did not see an addition is not done as long as the member is in: a compaction may put it out later. So is an addition. */
LOOP_TEST(not_done_yet, 2)
{
	const char *first = _i ? "s" : "t", *second = _i ? "t" : "s";
	struct fold change = { .seed = 3 };
	struct snapshot before, now;

	box_init(&box, PAIRED);
	box_put(&box, "s", _i ? SLICE("bob,") : SLICE("bob,ann,"));
	box_put(&box, "t", SLICE(""));
	ck_assert(signed_fold(&change, _i ? SLICE("+ann") : SLICE("-ann")));
	before = box_look(&box, FOR_WRITE, &change);
	put_count(second, _i ? "" : "bob,", _i ? 1 : 2);
	put_count(first, _i ? "bob," : "", 1);
	now = box_look(&box, FOR_CHECK, NULL);
	ck_assert_int_eq(box.encoding->check(&before, &now), ADOPTED_LOST);
	snapshot_free(&now);
	put_count(first, _i ? "bob," : "", 2);
	now = box_look(&box, FOR_CHECK, NULL);
	ck_assert_int_eq(box.encoding->check(&before, &now), ADOPTED_OK);
	snapshot_free(&now);
	snapshot_free(&before);
	fold_free(&change);
}

/*
 * Documented for an item of removals that was evicted: a pop may return a member that a compaction
 * is just dropping. The simulation does not check such a pop, see tests/sim/form.h.
 */
TEST(popped_while_dropped)
{
	struct fold taken = { .seed = 3 };
	struct plan pop = { 0 };
	struct snapshot s;
	struct late late;

	box_init(&box, PAIRED);
	box_put(&box, "s", SLICE("bob,ann,"));
	box_put(&box, "t", SLICE("ann,"));
	begin_compaction(&late);
	ck_assert_uint_eq(late.plan.count, 2);
	ck_assert(go_on(&late));
	memcached_remove(box_find(&box, SLICE("t")));
	fold_reset(&all);
	s = box_look(&box, FOR_REWRITE, NULL);
	ck_assert_int_eq(box_fold_of(&s, &all), ADOPTED_OK);
	ck_assert(go_on(&late));
	ck_assert(signed_fold(&taken, SLICE("-ann")));
	(void)box.encoding->take(&s, &taken, &pop);
	ck_assert_uint_eq(pop.count, 1);
	ck_assert(box_step(&box, &s, &pop.steps[0]));
	members_are("bob", "the pop");
	plan_free(&pop);
	snapshot_free(&s);
	fold_free(&taken);
	end(&late);
}

FIXTURE(setup, teardown)
