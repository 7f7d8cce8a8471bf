#include "collection/machines.h"

#include "collection/lane/lane.h"
#include "collection/list/segment_cache.h"
#include "collection/rewrite/ahead.h"
#include "collection/set/cache.h"

static machine *const oplog[] = {
	[OP_APPEND] = append_start,
	[OP_READ] = fetch_start,
	[OP_REPLACE] = replace_start,
	[OP_COUNT] = count_start,
	[OP_POP] = pop_start,
	[OP_TAKE] = take_start,
	[OP_COMPACT] = compact_start,
	[OP_COMMIT] = base_commit_start,
	[OP_LIST] = list_start,
	[OP_CLAIM] = claim_start,
	[OP_EXPIRE] = expire_start,
	[OP_LEASE] = lease_start,
	[OP_LOAD] = load_start,
	[OP_TOUCH] = touch_start,
	[OP_DELETE] = delete_start,
};

/*
 * Returns whether the machine of such an operation itself reports to ahead.h how it
 * changes the base.
 */
static bool reads_ahead(enum op_kind kind)
{
	return kind == OP_APPEND || kind == OP_READ || kind == OP_POP || kind == OP_CLAIM ||
		kind == OP_LIST;
}

/* A rule's encoding applies to sets and lists; counters have none. */
static void machines_start(struct lane *lane, enum op_kind kind)
{
	if (lane->rule->encoding != ENCODING_OPLOG && kind != OP_COUNT) {
		adopted_start(lane, kind);
		return;
	}
	if (!reads_ahead(kind))
		ahead_forget(lane);
	oplog[kind](lane);
}

static void machines_open(struct lanes *lanes)
{
	lanes->cache = cache_create(lanes->env->options->cache, lanes->env->seed);
	lanes->segment_cache = segment_cache_create();
	lanes->aheads = aheads_create();
}

static void machines_close(struct lanes *lanes)
{
	cache_destroy(lanes->cache);
	segment_cache_destroy(lanes->segment_cache);
	aheads_destroy(lanes->aheads);
}

/*
 * A long log is slow to read. A short one makes many small runs, and merges cost more, the
 * larger the set is. So the log may be longer if this proxy does not read the set, or if
 * its runs are large.
 */
static size_t machines_log_size(const struct lane *lane)
{
	/*
	 * Factors for the option log_size: UNREAD for a set that this proxy does not read,
	 * LARGE for one with LARGE_BYTES of runs.
	 */
	enum { UNREAD = 4, LARGE = 2, LARGE_BYTES = 1 << 20 };
	const struct collection_options *options = lane_env(lane)->options;
	const struct cache_entry *entry;
	uint64_t bytes = 0;

	if (lane->pushes || lane->rule->type == COLLECTION_LIST ||
		lane->rule->encoding != ENCODING_OPLOG)
		return options->base_size;
	entry = cache_find(lane->lanes->cache, lane->waiter.key, lane->hash);
	if (!entry)
		return UNREAD * options->log_size;
	for (size_t i = 0; i < entry->view.run_count; i++)
		bytes += entry->view.runs[i].ref.bytes;
	return (bytes < LARGE_BYTES ? 1 : LARGE) * options->log_size;
}

const struct lane_machines machines = {
	machines_open,
	machines_close,
	machines_start,
	machines_log_size,
};

size_t machines_cache_memory(const struct lanes *lanes)
{
	return cache_memory(lanes->cache) + segment_cache_memory(lanes->segment_cache) +
		aheads_memory(lanes->aheads);
}
