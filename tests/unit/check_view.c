/*
 * Views: they follow the base, keep valid data, and reject items that do not match their
 * references. Answers are tested in check_answer.c.
 */
#include "collection/set/answer.h"

#include "viewing.h"

static enum oplog_form update(const char *base)
{
	return set_model_update(&view, guard_text(base));
}

/* A base of a head, runs and a log; borrowed until the next one. */
static const char *base_of(
	const char *head, const struct oplog_run *runs, size_t count, const char *log)
{
	static struct buf base;

	buf_consume(&base, buf_size(&base));
	cupboard_base(&base, head, runs, count, log);
	BUF_ADD(&base, "\0");
	return buf_slice(&base).p;
}

static void load(void)
{
	ck_assert(set_model_load(&cupboard, &view));
}

/* Returns how many items had to be loaded for the answer. */
static size_t ask(struct set_request *r)
{
	size_t loaded = 0;

	ck_assert(viewing_ask(r, &loaded));
	return loaded;
}

/* All members, and how many items had to be loaded for them. */
static size_t is(const char *members)
{
	struct set_request all = { .verb = SET_ALL };
	size_t loaded = ask(&all);

	assert_bytes(buf_slice(&all.shared->text), members);
	set_request_free(&all);
	return loaded;
}

/* Follows a base that has these members. Returns how many items had to be loaded for them. */
static size_t becomes(const char *base, const char *members)
{
	ck_assert_int_eq(update(base), OPLOG_GOOD);
	return is(members);
}

/* --- the base --- */

/* A long log is folded in portions, and the view is unusable before the last one. */
TEST(long_logs)
{
	struct buf log = BUF_EMPTY;
	struct set_request all = { .verb = SET_COUNT };
	size_t loaded = 0, portions = 1;

	for (int i = 0; i < 5000; i++)
		buf_printf(&log, "+user%05d ", i);
	ck_assert_int_eq(set_view_update(&view, buf_slice(&log)), OPLOG_GOOD);
	for (; set_view_is_unfolded(&view); portions++) {
		ck_assert(!view.known);
		ck_assert(set_view_fold(&view));
	}
	ck_assert(view.known);
	ck_assert_uint_ge(portions, 3);
	ck_assert(viewing_ask(&all, &loaded));
	ck_assert_uint_eq(all.number, 5000);
	set_request_free(&all);
	/* A malformed part may follow the first portion. Then the view can start again. */
	BUF_ADD(&log, "x ");
	ck_assert_int_eq(update(""), OPLOG_GOOD);
	ck_assert_int_eq(set_model_update(&view, buf_slice(&log)), OPLOG_CORRUPT);
	ck_assert(!view.known);
	becomes("+a ", "a");
	/* So it can in the middle. */
	ck_assert_int_eq(
		set_view_update(&view, slice_of(log.data, buf_size(&log) - 2)), OPLOG_GOOD);
	becomes("+b ", "b");
	buf_free(&log);
}

TEST(nothing_is_known_at_first)
{
	ck_assert(!view.known);
	ck_assert_int_eq(update(""), OPLOG_GOOD);
	ck_assert(view.known);
	is("");
}

/* An answer about every member of the log is kept as long as the view follows the base. */
static void count(uint64_t expected)
{
	struct set_request r = { .verb = SET_COUNT };

	ask(&r);
	ck_assert_uint_eq(r.number, expected);
}

TEST(follows_what_is_appended)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);
	struct set_run *runs;

	ck_assert_uint_eq(becomes(base_of("", &run, 1, "-b +x "), "a c d e x"), 4);
	count(5);
	runs = view.runs;
	ck_assert_ptr_nonnull(view.below);
	ck_assert_int_eq(update(base_of("", &run, 1, "-b +x +b -a ")), OPLOG_GOOD);
	ck_assert(view.runs == runs && view.below);
	ck_assert_uint_eq(view.overlay.tokens, 4);
	ck_assert_uint_eq(is("b c d e x"), 0);
	count(5);
	/* The same once more. */
	ck_assert_int_eq(update(base_of("", &run, 1, "-b +x +b -a ")), OPLOG_GOOD);
	ck_assert(view.runs == runs && view.below && view.text);
	/* The former base was another one. */
	ck_assert_int_eq(update(base_of("", &run, 1, "-b +y +b -a -b ")), OPLOG_GOOD);
	ck_assert_ptr_null(view.below);
	ck_assert_uint_eq(is("c d e y"), 0);
	/* Less than was there. */
	ck_assert_uint_eq(becomes(base_of("", &run, 1, "-b +y "), "a c d e y"), 0);
	/* Something in front of all. */
	ck_assert_uint_eq(becomes(base_of("+z -c +y ", &run, 1, "-b +y "), "a c d e y z"), 0);
}

static bool points_into_base(const struct fold *fold)
{
	const char *start = view.base.data + view.base.start, *end = view.base.data + view.base.end;

	for (size_t i = 0; i < fold->member_count; i++) {
		if (fold->members[i].p < start || fold->members[i].p + fold->members[i].n > end)
			return false;
	}
	return true;
}

/* The buffer of the base moves as it grows, and all pointers into it are updated. */
TEST(grows_and_grows)
{
	static char text[64 * 1024];
	struct oplog_run run = cupboard_log_run(&cupboard, "+m1 +m3 +m5 ", 1);
	const char *base = base_of("+m0 +m2 ", &run, 1, "");
	size_t n = strlen(base), live = 0;
	char name[16];

	memcpy(text, base, n);
	for (int i = 0; i < 4000; i++) {
		ck_assert_int_eq(
			set_model_update(&view, guard_place(slice_of(text, n))), OPLOG_GOOD);
		ck_assert_uint_eq(view.overlay.tokens, (size_t)i);
		ck_assert_uint_eq(view.overlay.live, live);
		ck_assert(points_into_base(&view.overlay) && points_into_base(&view.head));
		ck_assert_uint_eq(view.head.live, 2);
		ck_assert(view.split.log.p + view.split.log.n == view.base.data + view.base.end);
		ck_assert(slice_starts(view.split.refs, SLICE("@i")) &&
			slice_starts(view.split.block, SLICE("@set.1 @i")));
		if (i % 200 == 0)
			count(live + 5 - (i > 0) - (i > 1) - (i > 2) - (i > 3) - (i > 5));
		live += i % 7 != 4;
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%cm%d ", i % 7 == 4 ? '-' : '+', i);
	}
	for (int i = 0; i < 3999; i++) {
		struct slice member =
			slice_of(name, (size_t)snprintf(name, sizeof(name), "m%d", i));
		bool live_now = false;
		ck_assert(fold_mentions(&view.overlay, member, &live_now) &&
			live_now == (i % 7 != 4));
	}
}

/*
 * Results for the members are kept, and so are the positions in the base. A read may find writes
 * of others.
 */
TEST(follows_a_compaction)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);
	const struct shared *text;

	becomes(base_of("", &run, 1, "-b +x +x -b -longer "), "a c d e x");
	count(5);
	text = view.text;
	view.cas = 7;
	set_view_compacted(&view, guard_text(base_of("", &run, 1, "-b +x -longer ")));
	ck_assert(set_view_is_of(&view, guard_text(base_of("", &run, 1, "-b +x -longer "))));
	ck_assert_uint_eq(view.cas, 0);
	ck_assert_ptr_eq(view.text, text);
	ck_assert(view.below && points_into_base(&view.overlay));
	ck_assert_uint_eq(view.overlay.tokens, 3);
	ck_assert(view.split.log.p + view.split.log.n == view.base.data + view.base.end);
	ck_assert_uint_eq(
		becomes(base_of("", &run, 1, "-b +x -longer +y +b "), "a b c d e x y"), 0);
	ck_assert_ptr_nonnull(view.below);
	count(7);
	set_view_compacted(&view, guard_text(base_of("", &run, 1, "+b +x -longer +y ")));
	becomes(base_of("", &run, 1, "+b +x +z -longer "), "a b c d e x z");
}

/* Without its removals the members would have other numbers. */
TEST(follows_no_compaction_that_forgets)
{
	becomes("+a -b +c -a ", "c");
	set_view_compacted(&view, guard_text("+c "));
	ck_assert(set_view_is_of(&view, guard_text("+a -b +c -a ")));
	ck_assert(!set_view_is_of(&view, guard_text("+a -b +c -a +c ")));
	becomes("+c +d ", "c d");
	ck_assert_int_eq(update("+c +d x"), OPLOG_CORRUPT);
	ck_assert(!set_view_is_of(&view, guard_text("+c +d x")));
}

static const struct {
	const char *base;
	enum oplog_form form;
} strangers[] = {
	{ "x", OPLOG_CORRUPT },
	{ "+a", OPLOG_CORRUPT },
	{ "+a -b +c -d  ", OPLOG_CORRUPT },
	{ "@set.1 +a \n", OPLOG_CORRUPT },
	{ "@set.1 @t0 ", OPLOG_CORRUPT },
	{ "- @set.1 ", OPLOG_CORRUPT },
	{ "@set.4 +a ", OPLOG_NEWER },
	{ "@list.9 ", OPLOG_NEWER },
	{ "+x @c00000000001.1.1 +y ", OPLOG_OUTDATED },
};

/* After any of them it is empty, and continues with data that can be read again. */
TEST(what_cannot_be_read)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c ", 1);

	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
		becomes(base_of("", &run, 1, "-b "), "a c");
		count(2);
		ck_assert_msg(update(strangers[i].base) == strangers[i].form, "\"%s\"",
			strangers[i].base);
		ck_assert(!view.known);
		ck_assert_msg(update(strangers[i].base) == strangers[i].form, "\"%s\" again",
			strangers[i].base);
		becomes("+a +x ", "a x");
		ck_assert(view.known);
		ck_assert_msg(update(strangers[i].base) == strangers[i].form, "\"%s\"",
			strangers[i].base);
	}
}

/*
 * As long as it follows the base that it has read, it must detect that the appended part is not a
 * log.
 */
TEST(stops_to_follow)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c ", 1);
	char text[200];

	ck_assert_int_eq(update("+a +b "), OPLOG_GOOD);
	ck_assert_int_eq(update("+a +b x"), OPLOG_CORRUPT);
	ck_assert(!view.known);
	becomes("+a +b ", "a b");
	ck_assert_int_eq(update("+a +b +"), OPLOG_CORRUPT);
	becomes("+a +b +c ", "a b c");
	/* The log is now in front of a block. */
	ck_assert_int_eq(update("+x -b "), OPLOG_GOOD);
	becomes(base_of("+x -b ", &run, 1, "-a "), "b c x");
	snprintf(text, sizeof(text), "%s@set.1 ", base_of("+x -b ", &run, 1, "-a "));
	ck_assert_int_eq(update(text), OPLOG_CORRUPT);
}

TEST(heads)
{
	struct oplog_run runs[] = { cupboard_log_run(&cupboard, "+a +b +c ", 9),
		cupboard_log_run(&cupboard, "-a +d -x ", 9) };

	/* Tokens in front are older than the runs, and only their additions count. */
	becomes(base_of("+a -b +x +y -y +z ", runs, 2, "-z +a "), "a b c d");
	count(4);
	ck_assert_int_eq(update(base_of("+e +a -b +x +y -y +z ", runs, 2, "-z +a ")), OPLOG_GOOD);
	count(5);
	is("a b c d e");
	ck_assert_int_eq(update(base_of("", runs, 2, "-z +a ")), OPLOG_GOOD);
	count(4);
	is("a b c d");
	becomes(base_of("+e ", runs, 0, "+f "), "e f");
	count(2);
}

/* --- lists --- */

TEST(lists)
{
	ck_assert_int_eq(update("@list +a +b +a "), OPLOG_GOOD);
	ck_assert(view.split.is_list && view.split.ref_count == 0);
	is("a b");
	ck_assert_int_eq(update("+c @list @l00000000001.3.1 +d -b "), OPLOG_GOOD);
	ck_assert(view.known && view.split.is_list && view.split.ref_count == 1 &&
		view.run_count == 0);
	ck_assert_int_eq(update("+c +a +b +c +d -b "), OPLOG_GOOD);
	is("c a d");
	count(3);
	/* It follows a log that is not the base: there is nothing to follow in the base itself. */
	ck_assert_int_eq(update("+c @list @l00000000001.3.1 +d -b +q "), OPLOG_GOOD);
	ck_assert_int_eq(update("+c +a +b +c +d -b +q "), OPLOG_GOOD);
	is("c a d q");
	ck_assert_int_eq(update("+c +a"), OPLOG_CORRUPT);
	ck_assert(!view.known);
}

/* --- runs that stay --- */

TEST(runs_that_stay_are_kept)
{
	struct oplog_run runs[] = { cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2),
		cupboard_log_run(&cupboard, "-a +f ", 2),
		cupboard_log_run(&cupboard, "-b +g +h ", 1),
		cupboard_log_run(&cupboard, "+a +i ", 2) };
	struct oplog_run ends[] = { runs[0], runs[3] };

	ck_assert_uint_eq(becomes(base_of("", runs, 2, "+z "), "b c d e f z"), 3 + 1 + 1);
	count(6);
	ck_assert_uint_eq(view.counted_runs, 2);
	/* One more: four items of its own, and the counts are still correct. */
	ck_assert_int_eq(update(base_of("", runs, 3, "")), OPLOG_GOOD);
	ck_assert_uint_eq(view.counted_runs, 2);
	ck_assert_uint_eq(is("c d e f g h"), 4);
	count(6);
	/* Two others in the place of some. */
	ck_assert_uint_eq(becomes(base_of("", ends, 2, ""), "a b c d e i"), 1);
	count(6);
	/* Lost items may return, as long as not too much has happened. */
	ck_assert_uint_eq(becomes(base_of("", runs, 4, ""), "a c d e f g h i"), 0);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(update(base_of("", runs, 1 + (size_t)i % 2, "")), OPLOG_GOOD);
	ck_assert_uint_eq(becomes(base_of("", runs, 4, ""), "a c d e f g h i"), 4 + 1);
}

/* Items written by this proxy are in memory before they are referred to. */
TEST(what_was_written_is_kept)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);

	ck_assert_int_eq(update("+a "), OPLOG_GOOD);
	for (size_t i = 0; i < cupboard.count; i++) {
		struct cupboard_item *item = &cupboard.items[i];
		set_view_keep(&view, slice_of(item->id, OPLOG_ID), item->id[0] == OPLOG_TABLE,
			buf_slice(&item->data));
	}
	/* Nothing that does not parse. */
	set_view_keep(&view, SLICE("t00000000000"), true, SLICE("T2"));
	set_view_keep(&view, SLICE("i00000000000"), false, SLICE("I1"));
	ck_assert_uint_eq(becomes(base_of("", &run, 1, "+f "), "a b c d e f"), 0);
}

/* --- loading --- */

static void wants_index(const struct oplog_run *run)
{
	struct set_request all = { .verb = SET_ALL };

	set_view_end_wants(&view);
	/* Data of a run is not used for another base with the same run. */
	ck_assert_int_eq(update("+x "), OPLOG_GOOD);
	ck_assert_int_eq(update(base_of("", run, 1, "")), OPLOG_GOOD);
	ck_assert(!set_answer(&view, &all));
	ck_assert_uint_eq(view.want_count, 1);
	ck_assert(slice_equal(set_view_want_id(&view, &view.wants[0]), run->id));
}

static void refuses(const char *why, struct slice data)
{
	struct set_want want = view.wants[0];

	ck_assert_msg(!set_view_load(&view, &want, guard_place(data)), "%s", why);
}

/* Cut, with a byte changed, with one more. */
static void refuses_all_others(struct slice data)
{
	char bytes[400];

	ck_assert_uint_lt(data.n, sizeof(bytes));
	memcpy(bytes, data.p, data.n);
	bytes[data.n] = 0;
	refuses("one byte more", slice_of(bytes, data.n + 1));
	for (size_t n = 0; n < data.n; n++)
		refuses("less", slice_of(bytes, n));
	for (size_t i = 0; i < data.n; i++) {
		bytes[i] ^= 1;
		refuses("another byte", slice_of(bytes, data.n));
		bytes[i] ^= 1;
	}
	refuses("another table", SLICE("T1\0\2a\2\0\0\0\1\0\0\0"));
	refuses("another packed table", SLICE("T2\0\0\1\x0d\1\1\1a\1"));
	refuses("another index", buf_slice(&cupboard.items[0].data));
}

TEST(refuses_other_items)
{
	struct oplog_run other = cupboard_log_run(&cupboard, "+x ", 2), run;
	struct set_request all = { .verb = SET_ALL };

	(void)other;
	run = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);
	wants_index(&run);
	refuses_all_others(buf_slice(&cupboard_find(&cupboard, run.id)->data));
	ck_assert_uint_eq(store.memory, 0);
	load();
	ck_assert(!set_answer(&view, &all));
	ck_assert_uint_eq(view.want_count, 3);
	refuses_all_others(buf_slice(
		&cupboard_find(&cupboard, set_view_want_id(&view, &view.wants[0]))->data));
	load();
	ck_assert_uint_eq(is("a b c d e"), 0);
}

/* The content matches the check, but not the rest of the reference. */
TEST(refuses_other_counts)
{
	struct oplog_run table = cupboard_log_run(&cupboard, "+a -b +c ", 3), good = table;
	struct oplog_run index = cupboard_log_run(&cupboard, "+a -b +c ", 1);

	table.entries = 2;
	wants_index(&table);
	refuses("a table of another count", buf_slice(&cupboard_find(&cupboard, table.id)->data));
	for (int i = 0; i < 8; i++) {
		struct oplog_run wrong = index;
		uint64_t *const numbers[] = { &wrong.tables, &wrong.entries, &wrong.removals,
			&wrong.bytes };
		*numbers[i / 2] += i % 2 ? 1 : (uint64_t)-1;
		wants_index(&wrong);
		refuses("an index of other counts",
			buf_slice(&cupboard_find(&cupboard, wrong.id)->data));
	}
	wants_index(&good);
	refuses("an index", buf_slice(&cupboard_find(&cupboard, index.id)->data));
	load();
	is("a c");
}

/* A single member is looked for in one table of each run, and no further down than it is found. */
static size_t test(const char *members, const char *digits)
{
	struct set_request r = { .verb = SET_TEST, .members = slice_of(members, strlen(members)) };
	size_t loaded = ask(&r);

	assert_bytes(buf_slice(&r.text), digits);
	set_request_free(&r);
	return loaded;
}

TEST(loads_what_is_needed)
{
	struct oplog_run runs[] = { cupboard_log_run(&cupboard, "+b +d +f +h +j +l ", 1),
		cupboard_log_run(&cupboard, "-b +c +d -e +k ", 2) };

	ck_assert_int_eq(update(base_of("", runs, 2, "+x -d ")), OPLOG_GOOD);
	/* The answer is in the log. */
	ck_assert_uint_eq(test("x", "1"), 0);
	ck_assert_uint_eq(test("d", "0"), 0);
	/* Both indexes, and a table of each, are requested together. */
	ck_assert_uint_eq(test("b", "0"), 4);
	ck_assert_uint_eq(test("c", "1"), 0);
	ck_assert_uint_eq(test("a", "0"), 0);
	ck_assert_uint_eq(test("k", "1"), 2);
	ck_assert_uint_eq(test("l", "1"), 1);
	ck_assert_uint_eq(test("b c d e f h j k l x", "0 1 0 0 1 1 1 1 1 1"), 4);
	ck_assert_uint_eq(test("nothing of all that", "0 0 0 0"), 0);
}

/* An item that is wanted twice is requested once; a missing one may be wanted again. */
TEST(wants_are_noted_once)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+b +d +f +h +j +l ", 1);
	struct set_request r = { .verb = SET_TEST, .members = SLICE("a b c d e f") };

	ck_assert_int_eq(update(base_of("", &run, 1, "")), OPLOG_GOOD);
	for (int i = 0; i < 3; i++) {
		ck_assert(!set_answer(&view, &r));
		ck_assert(!set_answer(&view, &r));
		ck_assert_uint_eq(view.want_count, 1);
		set_view_end_wants(&view);
		ck_assert_uint_eq(view.want_count, 0);
	}
	ck_assert(!set_answer(&view, &r));
	load();
	ck_assert(!set_answer(&view, &r));
	ck_assert_uint_eq(view.want_count, 3);
	load();
	ck_assert(set_answer(&view, &r));
	assert_bytes(buf_slice(&r.text), "0 1 0 1 0 1");
	set_request_free(&r);
}

/* A table that arrives after its index was dropped is dropped too. */
TEST(index_is_thrown_out)
{
	struct oplog_run run = cupboard_log_run(&cupboard, "+b +d +f +h ", 1);
	struct set_request r = { .verb = SET_TEST, .members = SLICE("f") };
	struct slice data;

	ck_assert_int_eq(update(base_of("", &run, 1, "")), OPLOG_GOOD);
	ck_assert(!set_answer(&view, &r));
	load();
	ck_assert(!set_answer(&view, &r));
	data = buf_slice(&cupboard_find(&cupboard, set_view_want_id(&view, &view.wants[0]))->data);
	set_part_drop(view.runs[0].index.part);
	ck_assert(set_view_load(&view, &view.wants[0], data));
	set_view_end_wants(&view);
	ck_assert_uint_eq(test("f", "1"), 2);
	/* Tables stay when the index goes. */
	set_part_drop(view.runs[0].index.part);
	ck_assert_uint_eq(test("f", "1"), 1);
	set_request_free(&r);
}

FIXTURE(viewing_setup, viewing_teardown)
