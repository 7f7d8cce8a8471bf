#include "collection/set/merge_plan.h"

enum {
	OLDEST_PART = 2, /* all is merged when the newer runs are this part of the oldest */
	TIER = 4,        /* so many runs are merged; a tier is so many times as large as the one below */
	SMALLEST = 4096, /* bytes: what is smaller is of the lowest tier */
	WIDTH = 16       /* runs that are merged at once */
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
	/* The newest runs of a tier and those below it; the lowest tier that has enough of them. */
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
