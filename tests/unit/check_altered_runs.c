/*
 * Views of a base that contradicts items in memory, which matched its references when they were
 * read: they are not used for it.
 */
#include "collection/set/answer.h"

#include "util/check.h"
#include "viewing.h"

enum { RUNS = 3, NUMBERS = 4 };

static const char fake_run[] = "@t4k0zq81mfwx.1.3.0.29.1048f82143307346 ";
static const char members[] = "a c d e f g i";

static struct oplog_run runs[RUNS];

static void setup(void)
{
	viewing_setup();
	runs[0] = cupboard_log_run(&cupboard, "+a +b +c +d +e ", 2);
	runs[1] = cupboard_log_run(&cupboard, "-b +f +g +h ", 1);
	runs[2] = cupboard_log_run(&cupboard, "-h +i ", 9);
}

static enum oplog_form update(const struct oplog_run *refs, size_t count, const char *more)
{
	struct buf base = BUF_EMPTY;
	enum oplog_form form;

	cupboard_base(&base, "", refs, count, more);
	form = set_model_update(&view, guard_place(buf_slice(&base)));
	buf_free(&base);
	return form;
}

static bool ask(struct set_request *r)
{
	return viewing_ask(r, &(size_t){ 0 });
}

static bool ask_and_free(struct set_request r)
{
	bool answered = ask(&r);

	set_request_free(&r);
	return answered;
}

static bool ask_everything(void)
{
	bool all = ask_and_free(
		(struct set_request){ .verb = SET_TEST, .members = SLICE("a b e f h i k ~") });

	for (uint64_t random = 0; random < 8; random++)
		all &= ask_and_free(
			(struct set_request){ .verb = SET_SAMPLE, .count = 1, .random = random });
	all &= ask_and_free((struct set_request){ .verb = SET_RANGE, .count = 100 });
	all &= ask_and_free((struct set_request){ .verb = SET_COUNT });
	all &= ask_and_free((struct set_request){
		.verb = SET_COUNT, .range = { .from = SLICE("b"), .after = true } });
	all &= ask_and_free((struct set_request){ .verb = SET_INFO });
	return ask_and_free((struct set_request){ .verb = SET_ALL }) && all;
}

/* The unchanged set, with filters of all runs, and all of it in memory. */
static void is_as_before(void)
{
	struct set_request all = { .verb = SET_ALL };

	ck_assert_int_eq(update(runs, RUNS, ""), OPLOG_GOOD);
	ck_assert(ask_everything() && ask(&all));
	assert_bytes(buf_slice(&all.shared->text), members);
	set_request_free(&all);
}

/*
 * Returns whether the index, or the only table, shows that it does not match the reference: a
 * table does not contain all of it.
 */
static bool is_noticed(const struct oplog_run *run, int number)
{
	return run->indexed || number == 1;
}

static void alters(int which, int number, uint64_t value, const char *more)
{
	struct oplog_run refs[RUNS] = { runs[0], runs[1], runs[2] };
	uint64_t *const numbers[NUMBERS] = { &refs[which].tables, &refs[which].entries,
		&refs[which].removals, &refs[which].bytes };
	bool answered;

	if (*numbers[number] == value)
		return;
	*numbers[number] = value;
	if (update(refs, RUNS, more) != OPLOG_GOOD)
		return;
	ck_assert_uint_eq(view.runs[which].ref.entries, refs[which].entries);
	answered = ask_everything();
	ck_assert_msg(answered == (*more != '@' && !is_noticed(&refs[which], number)),
		"run %d, number %d: %d", which, number, answered);
}

static void alters_everything(void (*before)(void), const char *more)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 4, 5, 6, 7, 100, 200000, UINT32_MAX };

	for (int which = 0; which < RUNS; which++) {
		for (int number = 0; number < NUMBERS; number++) {
			for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
				before();
				alters(which, number, values[i], more);
			}
		}
	}
	is_as_before();
}

TEST(beside_another_run)
{
	alters_everything(is_as_before, fake_run);
}

/* No other part of the base differs. */
TEST(nothing_else)
{
	alters_everything(is_as_before, "");
}

static void is_spare(void)
{
	is_as_before();
	ck_assert_int_eq(update(NULL, 0, "+x "), OPLOG_GOOD);
}

/* The items are in memory, but no run has them. */
TEST(spare_items)
{
	alters_everything(is_spare, "");
	alters_everything(is_spare, fake_run);
}

/* Another index names tables in memory, with other counts and in another order than they are in. */
TEST(another_index)
{
	struct oplog_run other = { .indexed = true, .tables = 2 };
	struct fences_writer index = { .count = 0 };
	struct slice data;
	struct fence fences[2];

	is_as_before();
	for (int i = 0; i < 2; i++) {
		fences[i] = *set_view_index(&view, (size_t)i)->list;
		fences[i].first = slice_of("z", i > 0);
		fences[i].entries += 50;
		other.entries += fences[i].entries;
		other.removals += fences[i].removals;
		other.bytes += fences[i].bytes;
	}
	fences_add(&index, &fences[0]);
	fences_add(&index, &fences[1]);
	data = fences_text(&index);
	other.id = cupboard_put(&cupboard, OPLOG_INDEX, data);
	other.check = check_of(data);
	ck_assert_int_eq(update(&other, 1, ""), OPLOG_GOOD);
	ck_assert(!ask_everything());
	is_as_before();
	fences_writer_free(&index);
}

FIXTURE(setup, viewing_teardown)
