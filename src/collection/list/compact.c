/*
 * Compaction of a list, alone in its lane; set/compact.c reads the base and starts it. The log at the tail becomes segments
 * behind the existing ones, and the log at the head becomes segments before them. If a log and the segment beside it fit into
 * one segment, they are merged, so that segments stay few.
 *
 *     plan -> load the segments beside the logs -> write new segments -> commit a base that refers to them
 *
 * Duplicate items stay. If a log has removals, the whole list is loaded and rewritten.
 */
#include "collection/list/compact.h"

#include <stdlib.h>

#include "collection/lane/batch.h"
#include "collection/list/store.h"
#include "collection/rewrite/base.h"
#include "collection/ttl.h"
#include "util/alloc.h"

struct list_compaction {
	struct list_store store;
	struct base_rewrite rewrite;
	lane_after *after;
	struct buf replacement;
	int64_t exptime; /* the expiry of new segments */
};

static lane_after loaded, written, committed;

static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;
	lane_after *after = c->after;
	struct failure kept = { 0 };

	/* The failure may be part of the memory that is freed here. */
	if (failure)
		failure_keep(&kept, failure);
	list_store_fini(&c->store);
	buf_free(&c->replacement);
	free(c);
	lane->work = NULL;
	after(lane, status, failure ? &kept.result : NULL);
	failure_free(&kept);
}

void list_compact(struct lane *lane, const struct result *r, lane_after *after)
{
	struct list_compaction *c = xcalloc(1, sizeof(*c));
	const struct collection_options *options = lane_env(lane)->options;
	struct segmented_list *list = &c->store.list;

	lane->work = c;
	c->after = after;
	c->store.lane = lane;
	if (!segmented_list_read(list, r->value)) {
		end(lane, lane_unreadable(lane, list->form), NULL);
		return;
	}
	list->is_list = true;
	if (!list->tangled && lane_is_measured(lane))
		lane_measured(lane, segmented_list_count(list), segmented_list_bytes(list));
	if (!ttl_exptime(lane_env(lane), r->ttl, &c->exptime) ||
		!segmented_list_plan(list, options->base_size, options->segment_size, true))
		end(lane, OUTCOME_DONE, NULL);
	else
		list_store_load(&c->store, loaded);
}

static void loaded(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;
	const struct collection_options *options = lane_env(lane)->options;
	struct segmented_list *list = &c->store.list;

	if (status == OUTCOME_MISSING && !list->tangled) {
		/* The segment beside the log is missing. The next read reports that; here it is left alone. */
		(void)segmented_list_plan(list, options->base_size, options->segment_size, false);
	} else if (status != OUTCOME_DONE) {
		end(lane, status == OUTCOME_MISSING ? OUTCOME_BUSY : status, failure);
		return;
	}
	if (list->tangled)
		segmented_list_settle(list, lane_env(lane)->seed);
	segmented_list_compact(list, options->base_size);
	list_store_write(&c->store, c->exptime, written);
}

static void written(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;
	struct slice base = buf_slice(&c->store.list.base);

	if (status != OUTCOME_DONE) {
		end(lane, status, failure);
		return;
	}
	list_store_encode(&c->store, &c->replacement);
	/* The meaning of a removal depends on the items before it, so no push at the head may have come between. */
	if (c->store.list.removes)
		base_rewrite_head(&c->rewrite, lane, base, buf_slice(&c->replacement), NULL, committed);
	else
		base_rewrite_part(&c->rewrite, lane, base, buf_slice(&c->replacement), committed);
}

static void committed(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;

	if (status == OUTCOME_DONE) {
		lane->lanes->stats.compactions++;
		lane->lanes->stats.spills += c->store.writes;
		list_store_committed(&c->store, c->rewrite.cas.ttl);
	} else if (status != OUTCOME_FAILED) {
		list_store_undo(&c->store);
	}
	end(lane, status, failure);
}
