/*
 * Which runs are merged: those of similar size, or all with the oldest; and the long-term cost of
 * that.
 */
#include "collection/set/merge.h"

#include "unit.h"

static const struct {
	uint64_t sizes[20]; /* in KB, the oldest first */
	size_t from, to;    /* both 0 for none */
} plans[] = {
	{ { 0 }, 0, 0 },
	{ { 100 }, 0, 0 },
	{ { 100, 49 }, 0, 0 },
	{ { 100, 50 }, 0, 2 },
	{ { 1, 100 }, 0, 2 },
	{ { 100, 20, 20 }, 0, 0 },
	{ { 100, 20, 20, 10 }, 0, 4 },
	{ { 100000, 1, 1, 1 }, 0, 0 },
	{ { 100000, 1, 1, 1, 1 }, 1, 5 },
	{ { 100000, 1, 2, 15, 1 }, 1, 5 },
	/*
	 * The smallest tier with enough runs, without the earlier ones; and a larger one with the
	 * later ones.
	 */
	{ { 100000, 300, 300, 1, 1, 1, 1 }, 3, 7 },
	{ { 100000, 300, 1, 300, 300, 1, 300, 1 }, 1, 8 },
	/* At most this number at once. */
	{ { 100000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 1, 17 },
};

TEST(which_runs)
{
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct oplog_run runs[20] = { { .bytes = 0 } };
		size_t count = 0, from = 99, to = 99;

		for (; plans[i].sizes[count]; count++)
			runs[count].bytes = plans[i].sizes[count] * 1024;
		bool merges_some = merge_plan(runs, count, 0, &from, &to);
		ck_assert_msg(merges_some == (plans[i].to > 0), "plan %zu", i);
		if (merges_some)
			ck_assert_msg(from == plans[i].from && to == plans[i].to,
				"plan %zu: %zu to %zu", i, from, to);
	}
}

/*
 * Once about half of a run has expired, it is merged with the oldest ones, whatever the sizes; 16
 * runs at most, so that it takes a second merge if it is a later one.
 */
TEST(expired)
{
	static const struct {
		size_t count, spent; /* of the runs, and which one */
		int64_t now;
		size_t to; /* 0 for none */
	} cases[] = { { 1, 0, 999, 0 }, { 1, 0, 1000, 1 }, { 2, 0, 1000, 2 }, { 2, 1, 999, 0 },
		{ 2, 1, 1000, 2 }, { 3, 1, 1000, 3 }, { 16, 15, 1000, 16 }, { 17, 0, 1000, 16 },
		{ 17, 16, 1000, 16 }, { 1, 0, 0, 0 }, { 2, 1, 0, 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct oplog_run runs[20] = { { .bytes = 0 } };
		size_t from = 99, to = 99;

		/* Sizes of which none is due, except that there are too many of them. */
		for (size_t k = 0; k < cases[i].count; k++)
			runs[k] = (struct oplog_run){ .bytes = UINT64_C(1) << (60 - 3 * k),
				.entries = 100,
				.dated = 24,
				.mean = 1 };
		if (cases[i].count <= 3)
			ck_assert(!merge_plan(runs, cases[i].count, 5000, &from, &to));
		runs[cases[i].spent].dated = 25;
		runs[cases[i].spent].mean = 1000;
		bool merges = merge_plan(runs, cases[i].count, cases[i].now, &from, &to);
		ck_assert_msg(merges == (cases[i].to > 0), "case %zu", i);
		ck_assert_msg(!merges || (from == 0 && to == cases[i].to), "case %zu: %zu to %zu",
			i, from, to);
	}
}

/* However many are added, few are kept. */
TEST(in_the_long_run)
{
	struct oplog_run runs[64] = { { .bytes = 1000000 } };
	size_t count = 1, most = 0, from, to;

	for (int i = 0; i < 4000; i++) {
		runs[count++].bytes = 1000;
		while (merge_plan(runs, count, 0, &from, &to)) {
			uint64_t bytes = 0;
			for (size_t k = from; k < to; k++)
				bytes += runs[k].bytes;
			runs[from].bytes = bytes;
			memmove(&runs[from + 1], &runs[to], (count - to) * sizeof(runs[0]));
			count -= to - from - 1;
		}
		most = count > most ? count : most;
		ck_assert_uint_lt(count, 40);
	}
	ck_assert_uint_lt(most, 24);
}

TEST(listed)
{
	struct oplog_run runs[MERGE_RUNS_MAX];
	size_t ends[MERGE_RUNS_MAX];
	struct slice block = SLICE(OPLOG_SET_MARK "@t00000000001.1.3.0.99.0123456789abcdef "
						  "@i00000000003.2.9.7.42.0000000000000000 ");

	ck_assert_uint_eq(merge_list(SLICE(OPLOG_SET_MARK), runs, ends), 0);
	ck_assert_uint_eq(merge_list(block, runs, ends), 2);
	ck_assert(runs[0].bytes == 99 && runs[1].bytes == 42 && runs[1].indexed);
	ck_assert_uint_eq(ends[1], block.n);
	ck_assert_uint_eq(
		ends[0], block.n - sizeof("@i00000000003.2.9.7.42.0000000000000000 ") + 1);
}
