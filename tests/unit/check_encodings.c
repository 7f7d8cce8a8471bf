/* The encodings: their texts, their folds, and plans, which must change a collection like an array of members. */
#include "box.h"
#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"
#include "protocol/element.h"
#include "unit.h"
#include "util/random.h"

enum { WORLD = 12 };

static void write_words(const struct fold *f, members_write *write, struct buf *out)
{
	struct snapshot s = { 0 };
	struct members_text text = { .write = write, .fold = f };

	ck_assert(members_text_write(&s, &text, out));
}

TEST(signed_words)
{
	static const char *const wrong[] = { "a", "+", "-", "+a+", "++a", "+a -b", "+a\n", " +a",
		"+a\x7f", "a+b" };
	struct fold f = { .seed = 1 };
	struct buf out = BUF_EMPTY;

	ck_assert(signed_fold(&f, guard_text("+1234+222+987-222")));
	ck_assert_str_eq(box_text(&f), "1234 987");
	ck_assert_uint_eq(f.tokens, 4);
	write_words(&f, signed_write_live, &out);
	assert_bytes(buf_slice(&out), "+1234+987");
	ck_assert_uint_eq(signed_size(&f, false), 9);
	buf_consume(&out, buf_size(&out));
	write_words(&f, signed_write, &out);
	assert_bytes(buf_slice(&out), "+1234-222+987");
	ck_assert_uint_eq(signed_size(&f, true), 13);
	buf_free(&out);
	fold_reset(&f);
	ck_assert(signed_fold(&f, guard_text("")));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fold_reset(&f);
		ck_assert_msg(!signed_fold(&f, guard_text(wrong[i])), "\"%s\"", wrong[i]);
	}
	fold_free(&f);
}

TEST(delimited_texts)
{
	static const char *const wrong[] = { "a", ",", "a,b", "a,,", "a b,", "a\n,", "a;b;" };
	struct buf out = BUF_EMPTY;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct slice text = guard_text(wrong[i]), member;
		while (delimited_next(&text, ',', &member))
			;
		ck_assert_msg(text.n, "\"%s\"", wrong[i]);
	}
	delimited_add(&out, SLICE("a"), ';', 3);
	delimited_add(&out, SLICE("b"), ';', -1);
	assert_bytes(buf_slice(&out), "a;a;a;");
	buf_free(&out);
}

/* The change of a counted text with the members of the test below. */
static void changes(const char *log, const char *added, const char *removed)
{
	enum { TOMBSTONE = 2 };
	struct fold change = { .seed = 1 };
	struct plan plan = { 0 };
	struct snapshot s;
	struct box box;

	box_init(&box, TOMBSTONE);
	box_put(&box, "s", SLICE("c,b,d,d,|a,b,b,c,b,"));
	ck_assert(fold_log(&change, slice_of(log, strlen(log))));
	s = box_look(&box, FOR_WRITE, &change);
	ck_assert_int_eq(box.encoding->change(&s, true, &plan), ADOPTED_OK);
	ck_assert_uint_eq(plan.count, 2);
	ck_assert_int_eq(plan.steps[0].verb, CALL_APPEND);
	assert_bytes(buf_slice(&plan.steps[0].value), added);
	ck_assert_int_eq(plan.steps[1].verb, CALL_PREPEND);
	assert_bytes(buf_slice(&plan.steps[1].value), removed);
	plan_free(&plan);
	snapshot_free(&s);
	fold_free(&change);
	box_free(&box);
}

TEST(counting)
{
	struct counted c = { .fold.seed = 1 };

	ck_assert(counted_read(&c, SLICE("a,b,b,c,b,"), ',', false));
	ck_assert(counted_read(&c, SLICE("c,b,d,d,"), ',', true));
	ck_assert_str_eq(box_text(&c.fold), "a b");
	ck_assert_int_eq(counted_net(&c, SLICE("b")), 2);
	ck_assert_int_eq(counted_net(&c, SLICE("d")), -2);
	ck_assert_int_eq(counted_net(&c, SLICE("e")), 0);
	ck_assert_int_eq(counted_find(&c, SLICE("b")).added, 3);
	changes("+a -b +c +d +e -f ", "c,d,d,d,e,", "b,b,");
	counted_free(&c);
}

/* The examples in the manual. */
TEST(documented)
{
	static const struct {
		unsigned form;
		const char *items[6], *members;
	} given[] = {
		{ 0, { "s", "+1234+222+987-222" }, "1234 987" },
		{ 1, { "s", "user-1234,user-222,user-987," }, "user-1234 user-222 user-987" },
		{ 2, { "s", "user-222,|user-1234,user-222,user-987," }, "user-1234 user-987" },
		{ 2, { "s", "user-222,|user-1234,user-222,user-987,user-222," },
			"user-1234 user-222 user-987" },
		{ 3, { "s", "a,b,c,", "t", "b," }, "a c" },
		{ 4, { "s.a", "^+1+2", "s.b", "+3-2" }, "1 3" },
		{ 5, { "s.a", "+1+2", "s.b", "+3-2", "s.active", "s.b" }, "1 3" },
		{ 5, { "s.a", "+1+2", "s.b", "+3-2", "s.active", "a" }, "3 2 1" },
		{ 6, { "s", "+0+1", "s.0", "+1+2", "s.1", "+3-2" }, "1 3" },
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		struct fold f = { 0 };
		struct snapshot s;
		struct box box;
		box_init(&box, given[i].form);
		for (int j = 0; j < 6 && given[i].items[j]; j += 2)
			box_put(&box, given[i].items[j],
				slice_of(given[i].items[j + 1], strlen(given[i].items[j + 1])));
		ck_assert_int_eq(box_fold(&box, &s, &f), ADOPTED_OK);
		ck_assert_str_eq(box_text(&f), given[i].members);
		fold_free(&f);
		snapshot_free(&s);
		box_free(&box);
	}
}

TEST(reserved)
{
	char longest[MEMBER_MAX + 1];
	struct box box;

	box_init(&box, 2);
	ck_assert_ptr_null(encoding_check_member(&box.rule, SLICE("a+b")));
	ck_assert_ptr_nonnull(encoding_check_member(&box.rule, SLICE("a|b")));
	ck_assert_ptr_nonnull(encoding_check_member(&box.rule, SLICE("a,b")));
	/* An escape, which is not stored as its byte. */
	ck_assert_ptr_nonnull(encoding_check_member(&box.rule, SLICE("a\x01\x42")));
	ck_assert_ptr_nonnull(encoding_check_member(&box.rule, SLICE("a\x7f")));
	memset(longest, 'm', sizeof(longest));
	ck_assert_ptr_null(
		encoding_check_member(&box.rule, slice_of(longest, sizeof(longest) - 1)));
	ck_assert_ptr_nonnull(encoding_check_member(&box.rule, slice_of(longest, sizeof(longest))));
	box.rule.delimiter = ';';
	ck_assert_ptr_null(encoding_check_member(&box.rule, SLICE("a,b")));
	box_init(&box, 0);
	ck_assert_ptr_nonnull(encoding_check_member(&box.rule, SLICE("a+b")));
	ck_assert_ptr_null(encoding_check_member(&box.rule, SLICE("a,b")));
}

/* --- compared with an array --- */

static struct slice name_of(unsigned member)
{
	static const char *const names[WORLD] = { "a", "bb", "c", "dd", "eee", "f", "gg", "h", "ii",
		"j", "kk", "^l" };

	return slice_of(names[member], strlen(names[member]));
}

static void is(struct box *box, const bool in[WORLD], const char *after)
{
	struct fold f = { 0 };
	struct snapshot s;
	enum adopted_status status = box_fold(box, &s, &f);
	size_t count = 0;

	ck_assert_msg(status == ADOPTED_OK, "%s: status %d after %s", box->encoding->name,
		(int)status, after);
	for (unsigned m = 0; m < WORLD; m++) {
		count += in[m];
		ck_assert_msg(fold_contains(&f, name_of(m)) == in[m], "%s: %s after %s",
			box->encoding->name, name_of(m).p, after);
	}
	ck_assert_uint_eq(f.live, count);
	fold_free(&f);
	snapshot_free(&s);
}

static void random_change(struct box *box, bool in[WORLD], uint64_t *random)
{
	struct fold change = { .seed = 5 };

	for (uint64_t n = 1 + random_next(random) % 4; n > 0; n--) {
		unsigned m = (unsigned)(random_next(random) % WORLD);
		in[m] = random_next(random) % 2;
		(in[m] ? fold_add : fold_remove)(&change, name_of(m));
	}
	ck_assert_int_eq(box_change(box, &change, true), ADOPTED_OK);
	is(box, in, "a change");
	fold_free(&change);
}

static void random_replace(struct box *box, bool in[WORLD], uint64_t *random)
{
	struct fold members = { .seed = 5 };

	for (unsigned m = 0; m < WORLD; m++) {
		in[m] = random_next(random) % 2;
		if (in[m])
			fold_add(&members, name_of(m));
	}
	ck_assert_int_eq(box_replace(box, &members), ADOPTED_OK);
	is(box, in, "a replacement");
	fold_free(&members);
}

static void random_take(struct box *box, bool in[WORLD], uint64_t *random)
{
	struct fold taken = { .seed = 5 };

	for (unsigned m = 0; m < WORLD; m++) {
		if (in[m] && random_next(random) % 3 == 0) {
			in[m] = false;
			fold_remove(&taken, name_of(m));
		}
	}
	if (taken.member_count)
		ck_assert_int_eq(box_take(box, &taken), ADOPTED_OK);
	is(box, in, "a pop");
	fold_free(&taken);
}

/* Stops after any step: the set must be unchanged. */
static void random_compaction(struct box *box, const bool in[WORLD], uint64_t *random)
{
	enum adopted_status status;
	bool whole = random_next(random) % 2;
	int most = whole ? 30 : (int)(random_next(random) % 4);

	box->prepared = (struct preparation){ .done = false };
	while (most > 0 &&
		box_compact(box, whole ? PLAN_STEPS_MAX : 1 + random_next(random) % 2, &status)) {
		most--;
		ck_assert_int_eq(status, ADOPTED_OK);
		is(box, in, "a step of a compaction");
	}
	ck_assert_msg(!whole || most > 0, "%s: a compaction does not finish", box->encoding->name);
}

TEST(random_lives)
{
	uint64_t random = 1;

	for (unsigned form = 0; form < BOX_FORMS; form++) {
		struct box box;
		bool in[WORLD] = { false };
		box_init(&box, form);
		random_change(&box, in, &random);
		for (int i = 0; i < 3000; i++) {
			uint64_t dice = random_next(&random) % 12;
			if (dice < 7)
				random_change(&box, in, &random);
			else if (dice < 8)
				random_take(&box, in, &random);
			else if (dice < 9 && form != 6)
				random_replace(&box, in, &random);
			else
				random_compaction(&box, in, &random);
		}
		box_free(&box);
	}
}

/* The words of the list that is active at first are `head`; the other list is missing. */
static void removes_first(unsigned form, const char *head, enum adopted_status expected)
{
	struct fold change = { .seed = 5 }, all = { 0 };
	struct snapshot s;
	struct box box;

	box_init(&box, form);
	box_put(&box, "s.a", slice_of(head, strlen(head)));
	box_put(&box, "s.active", SLICE("s.a"));
	fold_add(&change, SLICE("bob"));
	if (form == 5)
		ck_assert_int_eq(box_change(&box, &change, true), ADOPTED_OK);
	ck_assert_int_eq(box_fold(&box, &s, &all), expected);
	if (expected == ADOPTED_OK)
		ck_assert_str_eq(box_text(&all), form == 5 ? "bob" : "");
	fold_free(&all);
	fold_free(&change);
	snapshot_free(&s);
	box_free(&box);
}

/* A removal of a member that begins with the guard's byte is no guard. */
TEST(like_the_guard)
{
	for (unsigned form = 4; form <= 5; form++) {
		removes_first(form, "-^a", ADOPTED_OK);
		removes_first(form, "-^^", ADOPTED_OK);
		removes_first(form, "-^", ADOPTED_LOST);
		removes_first(form, "-^+bob-bob", ADOPTED_LOST);
		removes_first(form, "-^-^a", ADOPTED_LOST);
	}
}

/* The number of a list has up to 19 digits, and there is one more list after the largest number. */
static void numbered(const char *index, const char *list, enum adopted_status expected)
{
	enum { INDEXED = 6 };
	struct fold all = { .seed = 3 };
	enum adopted_status status;
	struct snapshot s;
	struct box box;

	box_init(&box, INDEXED);
	box.options.base_size = 4;
	box_put(&box, "s", slice_of(index, strlen(index)));
	box_put(&box, list, SLICE("+ann+bob"));
	status = box_fold(&box, &s, &all);
	ck_assert_int_eq(status, expected);
	snapshot_free(&s);
	if (expected == ADOPTED_OK) {
		ck_assert(box_compact(&box, 2, &status) && status == ADOPTED_OK);
		fold_reset(&all);
		ck_assert_int_eq(box_fold(&box, &s, &all), ADOPTED_OK);
		ck_assert_str_eq(box_text(&all), "ann bob");
		ck_assert_uint_eq(s.count, 3);
		snapshot_free(&s);
	}
	fold_free(&all);
	box_free(&box);
}

TEST(numbers_of_lists)
{
	numbered("+1000000000000000000", "s.1000000000000000000", ADOPTED_OK);
	numbered("+9999999999999999999", "s.9999999999999999999", ADOPTED_OK);
	numbered("+10000000000000000000", "s.10000000000000000000", ADOPTED_CORRUPT);
}

/* An sset removes the lists of the former set late, when a new set has a list of the same number. */
TEST(replaced_late)
{
	enum { INDEXED = 6 };
	struct fold members = { .seed = 3 }, all = { .seed = 3 };
	struct plan plan = { 0 };
	struct snapshot late, s;
	struct box box;

	box_init(&box, INDEXED);
	box_put(&box, "s", SLICE("+0"));
	box_put(&box, "s.0", SLICE("+ann"));
	fold_add(&members, SLICE("bob"));
	late = box_look(&box, FOR_REWRITE, NULL);
	ck_assert_int_eq(box.encoding->replace(&late, &members, &plan), ADOPTED_OK);
	ck_assert_uint_eq(plan.count, 3);
	ck_assert(box_step(&box, &late, &plan.steps[0]));
	ck_assert(box_step(&box, &late, &plan.steps[1]));
	box_put(&box, "s.0", SLICE("+cat"));
	box_put(&box, "s", SLICE("+0"));
	ck_assert(box_step(&box, &late, &plan.steps[2]));
	ck_assert_int_eq(box_fold(&box, &s, &all), ADOPTED_OK);
	ck_assert_str_eq(box_text(&all), "cat");
	plan_free(&plan);
	fold_free(&all);
	fold_free(&members);
	snapshot_free(&late);
	snapshot_free(&s);
	box_free(&box);
}

/*
 * Two writers that create or replace a set concurrently write different lists, so that a late one
 * cannot write a list of the other again.
 */
LOOP_TEST(lists_of_their_own, 2)
{
	enum { INDEXED = 6, WRITERS = 2 };
	struct fold members = { .seed = 3 };
	struct plan plans[WRITERS] = { 0 };
	struct snapshot seen[WRITERS];
	struct box box;

	box_init(&box, INDEXED);
	if (_i) {
		box_put(&box, "s", SLICE("+0"));
		box_put(&box, "s.0", SLICE("+ann"));
	}
	fold_add(&members, SLICE("bob"));
	for (int i = 0; i < WRITERS; i++) {
		seen[i] = box_look(&box, FOR_REWRITE, &members);
		ck_assert(snapshot_fold(&seen[i]));
		ck_assert_int_eq(_i ? box.encoding->replace(&seen[i], &members, &plans[i])
				    : box.encoding->change(&seen[i], true, &plans[i]),
			ADOPTED_OK);
		ck_assert_int_eq(plans[i].steps[0].verb, CALL_ADD);
	}
	ck_assert(!slice_equal(
		plans[0].steps[0].item->waiter.key, plans[1].steps[0].item->waiter.key));
	for (int i = 0; i < WRITERS; i++) {
		plan_free(&plans[i]);
		snapshot_free(&seen[i]);
	}
	fold_free(&members);
	box_free(&box);
}
