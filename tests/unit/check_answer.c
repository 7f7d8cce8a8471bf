/*
 * A view's answers equal those of a sorted array, however the set is stored and whatever is in
 * memory.
 */
#include "collection/set/answer.h"

#include "set_model.h"
#include "unit.h"
#include "util/random.h"

static struct set_model model;
static struct set_store store;
static struct set_view view;

static bool is_over(struct env *e)
{
	e->grain = random_next(&e->random) % 64;
	return true;
}

static struct env env = { .is_over = is_over };

static void setup(void)
{
	TAILQ_INIT(&store.used);
}

static void begin(uint64_t seed, size_t runs)
{
	set_model_init(&model, seed, runs, seed % 2);
	set_view_init(&view, seed, &store);
	/* All at once, or in slices down to a single member. */
	view.env = seed % 3 ? &env : NULL;
	env.random = seed;
}

static void end(void)
{
	set_view_free(&view);
	set_model_fini(&model);
	ck_assert(TAILQ_EMPTY(&store.used));
	ck_assert_uint_eq(store.memory, 0);
}

/* As in a cache that is too small, when no reader has the view open. */
static void throw_out(uint64_t *random)
{
	struct set_part *item, *next;

	for (item = TAILQ_FIRST(&store.used); item; item = next) {
		next = TAILQ_NEXT(item, link);
		if (random_next(random) % 3 == 0)
			set_part_drop(item);
	}
}

static void put(struct set_request *r, uint64_t seed, int step)
{
	bool answered = set_model_ask(&model, &view, r);

	ck_assert_msg(
		answered, "seed %d, step %d: verb %d has no answer", (int)seed, step, (int)r->verb);
	ck_assert_msg(set_model_agrees(&model, r), "seed %d, step %d: verb %d", (int)seed, step,
		(int)r->verb);
	set_request_free(r);
}

/* Large enough for a separate text. */
static void add_members(struct buf *base, int from, int to)
{
	for (int i = from; i < to; i++)
		buf_printf(base, "+member-%04d ", i);
}

static uint64_t slices_of(struct set_request *r)
{
	uint64_t before = view.slices;

	while (!set_answer(&view, r))
		ck_assert_uint_eq(view.want_count, 0);
	return view.slices - before;
}

/* The same query is answered immediately, as long as the set does not change. */
TEST(equal_questions)
{
	struct set_request range[2], counts[3], other, some;
	struct buf base = BUF_EMPTY;

	set_view_init(&view, 1, &store);
	view.env = &env;
	add_members(&base, 0, 1000);
	ck_assert_int_eq(set_model_update(&view, buf_slice(&base)), OPLOG_GOOD);
	for (int i = 0; i < 2; i++)
		range[i] = (struct set_request){
			.verb = SET_RANGE, .count = 2000, .range.from = SLICE("member-0100")
		};
	for (int i = 0; i < 3; i++)
		counts[i] = (struct set_request){ .verb = SET_COUNT,
			.range = { .from = SLICE("member-0100") } };
	other = range[0];
	other.range.from = SLICE("member-0101");
	some = range[0];
	some.pattern = SLICE("*5");
	ck_assert_uint_gt(slices_of(&range[0]), 0);
	ck_assert_uint_eq(slices_of(&range[1]), 0);
	ck_assert_ptr_eq(range[1].shared, range[0].shared);
	ck_assert_uint_eq(buf_size(&range[0].shared->text), 900 * 12 - 1);
	ck_assert_uint_gt(slices_of(&other), 0);
	ck_assert_uint_eq(buf_size(&other.shared->text), 899 * 12 - 1);
	(void)slices_of(&some);
	ck_assert_uint_eq(buf_size(&some.text), 90 * 12);
	(void)slices_of(&counts[0]);
	ck_assert_uint_eq(counts[0].number, 900);
	env.grain = 1 << 20;
	(void)slices_of(&counts[1]);
	ck_assert_uint_eq(counts[1].number, 900);
	ck_assert_uint_eq(env.grain, 1 << 20);
	add_members(&base, 1000, 1001);
	ck_assert_int_eq(set_model_update(&view, buf_slice(&base)), OPLOG_GOOD);
	(void)slices_of(&counts[2]);
	ck_assert_uint_eq(counts[2].number, 901);
	set_request_free(&range[0]);
	set_request_free(&range[1]);
	set_request_free(&other);
	set_request_free(&some);
	set_view_free(&view);
	buf_free(&base);
}

/* An answer that clients may not hold is given up as soon as that is known. */
TEST(too_large_for_clients)
{
	static const struct collection_options options = { .result_max = 4096 };
	static struct env bounded = { .is_over = is_over, .options = &options };
	struct set_request r = { .verb = SET_SAMPLE, .count = 1000000, .repeats = true };
	struct buf base = BUF_EMPTY;

	set_view_init(&view, 1, &store);
	view.env = &bounded;
	add_members(&base, 0, 200);
	ck_assert_int_eq(set_model_update(&view, buf_slice(&base)), OPLOG_GOOD);
	ck_assert_uint_lt(slices_of(&r), 10000);
	ck_assert(r.too_large && !r.text.data && !r.shared);
	r = (struct set_request){ .verb = SET_ALL };
	(void)slices_of(&r);
	ck_assert(!r.too_large);
	ck_assert_uint_eq(buf_size(&r.shared->text), 200 * 12 - 1);
	set_request_free(&r);
	add_members(&base, 200, 400);
	ck_assert_int_eq(set_model_update(&view, buf_slice(&base)), OPLOG_GOOD);
	r = (struct set_request){ .verb = SET_ALL };
	(void)slices_of(&r);
	ck_assert(r.too_large && !r.shared);
	set_view_free(&view);
	buf_free(&base);
}

static void history(uint64_t seed)
{
	struct buf members = BUF_EMPTY;
	struct set_request r;
	uint64_t random = seed;

	begin(seed, seed % 7);
	for (int step = 0; step < 40; step++) {
		/*
		 * The view keeps a copy: the next one replaces this one, and nothing may be read
		 * after it.
		 */
		ck_assert_int_eq(
			set_model_update(&view, guard_place(buf_slice(&model.base))), OPLOG_GOOD);
		for (int i = 0; i < 4; i++) {
			set_model_request(&model, &r, &members);
			put(&r, seed, step);
			/* The base stays the same, but members expire. */
			if (model.dated && random_next(&random) % 3 == 0)
				set_model_wait(&model, (uint32_t)(1 + random_next(&random) % 9));
		}
		if (random_next(&random) % 4 == 0)
			throw_out(&random);
		set_model_change(&model);
	}
	buf_free(&members);
	end();
}

TEST(as_a_sorted_array)
{
	for (uint64_t seed = 1; seed <= 250; seed++)
		history(seed);
}

/* Each verb on a small set and on a large one, when nothing is in memory. */
TEST(from_nothing)
{
	struct buf members = BUF_EMPTY;
	struct set_request r;

	for (uint64_t seed = 1000; seed < 1300; seed++) {
		begin(seed, seed % 7);
		set_model_request(&model, &r, &members);
		ck_assert_int_eq(
			set_model_update(&view, guard_place(buf_slice(&model.base))), OPLOG_GOOD);
		put(&r, seed, 0);
		end();
	}
	buf_free(&members);
}

/* --- counting, which is remembered --- */

/* Counts while the log grows and runs are added: no item is read again. */
TEST(counts_go_on)
{
	struct set_request r;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		begin(seed, 1 + seed % 5);
		for (int step = 0; step < 60; step++) {
			ck_assert_int_eq(
				set_model_update(&view, guard_place(buf_slice(&model.base))),
				OPLOG_GOOD);
			r = (struct set_request){ .verb = SET_COUNT };
			put(&r, seed, step);
			model.loaded = 0;
			put(&(struct set_request){ .verb = SET_COUNT }, seed, step);
			put(&(struct set_request){ .verb = SET_INFO }, seed, step);
			ck_assert_uint_eq(model.loaded, 0);
			if (step % 12 == 11)
				set_model_spill(&model);
			else if (step % 25 == 24)
				set_model_merge(&model, model.run_count / 2, model.run_count);
			else
				set_model_append(&model, 1 + (size_t)step % 3);
		}
		end();
	}
}

/* --- samples --- */

enum { DRAWS = 100 };

/*
 * How far the numbers of draws deviate from an even distribution, and what this means for a member
 * on average.
 */
static double spread(const size_t *drawn, double expected)
{
	double sum = 0;

	for (size_t i = 0; i < model.world.count; i++) {
		double off = (double)drawn[i] - expected;
		sum += model.in[i] ? off * off / expected : 0;
	}
	return sum / (double)model.count;
}

static double draw(size_t count, bool repeats, size_t times)
{
	size_t drawn[TABLE_MODEL_MAX] = { 0 };

	for (size_t i = 0; i < times; i++) {
		struct set_request r = {
			.verb = SET_SAMPLE, .count = count, .random = random_next(&model.random)
		};
		r.repeats = repeats;
		ck_assert(set_model_ask(&model, &view, &r) && set_model_agrees(&model, &r));
		struct slice rest = buf_slice(&r.text), member;
		while ((member = slice_token(&rest)).n)
			drawn[table_model_seek(&model.world, member)]++;
		set_request_free(&r);
	}
	return spread(drawn, (double)(times * count) / (double)model.count);
}

/*
 * Whether a member is in the log, the head or a run, old or new, each is equally likely: one at a
 * time, where entries are drawn; a third of all at a time, where all are visited; and more than
 * all, with repeats. With these fixed seeds it cannot fail by chance.
 */
TEST(each_is_as_likely)
{
	int tried = 0;

	for (uint64_t seed = 1; tried < 15; seed++) {
		begin(seed, seed % 6);
		ck_assert_int_eq(
			set_model_update(&view, guard_place(buf_slice(&model.base))), OPLOG_GOOD);
		if (model.count >= 6) {
			double one = draw(1, false, model.count * DRAWS),
			       some = draw(model.count / 3, false, 3 * DRAWS);
			double again = draw(model.count / 6, true, 6 * DRAWS),
			       all = draw(3 * model.count, true, DRAWS);
			/* 1 on average, with a deviation of about sqrt(2 / count). */
			ck_assert_msg(one < 2.5, "seed %d: %f", (int)seed, one);
			ck_assert_msg(some < 2.5, "seed %d: %f", (int)seed, some);
			ck_assert_msg(again < 2.5, "seed %d: %f", (int)seed, again);
			ck_assert_msg(all < 2.5, "seed %d: %f", (int)seed, all);
			tried++;
		}
		end();
	}
}

/* Only the tables with drawn entries are read, and those that may override them. */
TEST(samples_read_little)
{
	struct table_model *entries = calloc(1, sizeof(*entries));
	struct oplog_run run;
	struct buf base = BUF_EMPTY;
	char name[16];

	set_view_init(&view, 1, &store);
	for (int i = 0; i < TABLE_MODEL_MAX; i++)
		table_model_add(entries,
			slice_of(name, (size_t)snprintf(name, sizeof(name), "m%04d", i)), false);
	run = cupboard_run(&model.cupboard, entries, 3, NULL);
	cupboard_base(&base, "", &run, 1, "");
	ck_assert_int_eq(set_model_update(&view, buf_slice(&base)), OPLOG_GOOD);
	struct set_request r = { .verb = SET_SAMPLE, .count = 2, .random = 7 };
	ck_assert(set_model_ask(&model, &view, &r));
	ck_assert_uint_le(model.loaded, 1 + 2);
	set_request_free(&r);
	free(entries);
	buf_free(&base);
	cupboard_free(&model.cupboard);
	set_view_free(&view);
}

/* --- a fold that is all there is --- */

TEST(from_a_fold)
{
	struct buf members = BUF_EMPTY;
	struct set_request r;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct fold fold = { .seed = seed };
		set_model_init(&model, seed, 0, false);
		ck_assert(fold_log(&fold, buf_slice(&model.base)));
		for (int i = 0; i < 20; i++) {
			do {
				set_model_request(&model, &r, &members);
			} while (r.verb == SET_INFO);
			set_answer_fold(&fold, &r);
			ck_assert_msg(r.answered && set_model_agrees(&model, &r),
				"seed %d: verb %d", (int)seed, (int)r.verb);
			set_request_free(&r);
		}
		fold_free(&fold);
		set_model_fini(&model);
	}
	buf_free(&members);
}

FIXTURE(setup, NULL)
