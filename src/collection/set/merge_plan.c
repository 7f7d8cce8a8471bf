#include "collection/set/merge_plan.h"

enum {
	OLDEST_PART = 2, /* all runs are merged if the newer ones have 1 / OLDEST_PART of the oldest one's bytes */
	TIER = 4,        /* runs that make a merge; the factor between the sizes of two tiers */
	SMALLEST = 4096, /* bytes; smaller runs are of the lowest tier */
	WIDTH = 16       /* maximum runs of one merge */
};

static unsigned tier_of(const struct oplog_run *run)
{
	unsigned tier = 0;

	for (uint64_t bytes = run->bytes / SMALLEST; bytes >= TIER; bytes /= TIER)
		tier++;
	return tier;
}

bool merge_plan(const struct oplog_run *runs, size_t count, size_t *from, size_t *to)
{
	enum { TIERS = 16 };
	uint64_t newer = 0;

	for (size_t i = 1; i < count; i++)
		newer += runs[i].bytes;
	*from = 0;
	*to = count;
	if (count < 2)
		return false;
	if (newer * OLDEST_PART >= runs[0].bytes && count <= WIDTH)
		return true;
	/* The lowest tier that, with the tiers below it, has enough of the newest runs. */
	for (unsigned tier = 0; tier < TIERS; tier++) {
		for (*from = count; *from > 1 && tier_of(&runs[*from - 1]) <= tier; --*from)
			;
		if (count - *from < TIER)
			continue;
		*to = count - *from > WIDTH ? *from + WIDTH : count;
		return true;
	}
	return false;
}

size_t merge_list(struct slice block, struct oplog_run runs[MERGE_RUNS_MAX], size_t ends[MERGE_RUNS_MAX])
{
	struct slice rest = slice_skip(block, sizeof(OPLOG_SET_MARK) - 1);
	size_t count = 0;

	while (count < MERGE_RUNS_MAX && oplog_next_run(&rest, &runs[count]))
		ends[count++] = block.n - rest.n;
	return count;
}
