#include "collection/machines.h"

#include "collection/adopted/adopted.h"
#include "collection/event/count.h"
#include "collection/lane/lane.h"
#include "collection/list/list.h"
#include "collection/list/segment_cache.h"
#include "collection/rewrite/base.h"
#include "collection/set/append.h"
#include "collection/set/cache.h"
#include "collection/set/compact.h"
#include "collection/set/fetch.h"
#include "collection/set/pop.h"
#include "collection/set/replace.h"
#include "collection/set/touch_delete.h"

typedef void start_machine(struct lane *lane);

static start_machine *const oplog[] = {
	[OP_APPEND] = append_start,
	[OP_READ] = fetch_start,
	[OP_REPLACE] = replace_start,
	[OP_COUNT] = count_start,
	[OP_POP] = pop_start,
	[OP_COMPACT] = compact_start,
	[OP_COMMIT] = base_commit_start,
	[OP_LIST] = list_start,
	[OP_TOUCH] = touch_start,
	[OP_DELETE] = delete_start,
};

/* The encoding of a key is that of its sets and lists: counters have none. */
static void start(struct lane *lane, enum op_kind kind)
{
	if (lane->rule->encoding == ENCODING_OPLOG || kind == OP_COUNT)
		oplog[kind](lane);
	else
		adopted_start(lane, kind);
}

static void open(struct lanes *lanes)
{
	lanes->cache = cache_create(lanes->env->options->cache, lanes->env->seed);
	lanes->segment_cache = segment_cache_create();
}

static void close(struct lanes *lanes)
{
	cache_destroy(lanes->cache);
	segment_cache_destroy(lanes->segment_cache);
}

const struct lane_machines machines = { open, close, start, compact_log_size };

size_t machines_cache_memory(const struct lanes *lanes)
{
	return cache_memory(lanes->cache) + segment_cache_memory(lanes->segment_cache);
}
