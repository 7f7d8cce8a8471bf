/*
 * Compaction of a list, alone in its lane, begun by compact.c: its log goes to segments, that at the tail behind those that
 * are there, that at the head in front. To keep segments few, the neighbour goes along where both fit into one.
 *
 *     read -> read the neighbours -> write new segments -> commit a base that refers to them
 *
 * Nothing is dropped that is said twice. Where the log removes something, all of the list is read and written anew.
 */
#include <stdlib.h>

#include "collection/chain_store.h"
#include "collection/lane.h"
#include "util/alloc.h"

struct list_compaction {
	struct chain_store store;
	lane_after *after;
	struct buf replacement;
	int64_t exptime; /* of new segments */
};

static void end(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;
	lane_after *after = c->after;
	struct result kept = { 0 };
	struct buf line = BUF_EMPTY;
	bool failed = false;

	/* The failure may lie in what ends here. */
	if (failure)
		segments_keep_failure(failure, &failed, &kept, &line);
	chain_store_fini(&c->store);
	buf_free(&c->replacement);
	free(c);
	lane->work = NULL;
	after(lane, status, failed ? &kept : NULL);
	buf_free(&line);
}

static void committed(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;

	if (status == OUTCOME_DONE) {
		lane->lanes->stats.compactions++;
		lane->lanes->stats.spills += c->store.writes;
		chain_store_committed(&c->store, lane_rest(lane)->commit.ttl);
	} else if (status != OUTCOME_FAILED) {
		chain_store_undo(&c->store);
	}
	end(lane, status, failure);
}

static void written(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;
	struct slice base = buf_slice(&c->store.chain.base);

	if (status != OUTCOME_DONE) {
		end(lane, status, failure);
		return;
	}
	chain_store_encode(&c->store, &c->replacement);
	/* What a removal takes back depends on what is in front of it: then nothing may have come there. */
	if (c->store.chain.removes)
		commit_run(lane, base, buf_slice(&c->replacement), NULL, committed);
	else
		commit_run_anywhere(lane, base, buf_slice(&c->replacement), committed);
}

static void loaded(struct lane *lane, enum outcome_status status, const struct result *failure)
{
	struct list_compaction *c = lane->work;
	const struct collection_options *options = lane_host(lane)->options;
	struct chain *chain = &c->store.chain;

	if (status == OUTCOME_MISSING && !chain->tangled) {
		/* The neighbour is gone, of which a read will have to say so. */
		(void)chain_plan(chain, options->base_size, options->segment_size, false);
	} else if (status != OUTCOME_DONE) {
		end(lane, status == OUTCOME_MISSING ? OUTCOME_BUSY : status, failure);
		return;
	}
	if (chain->tangled)
		chain_settle(chain, lane_host(lane)->seed);
	chain_compact(chain, options->base_size);
	chain_store_write(&c->store, c->exptime, written);
}

void list_compact(struct lane *lane, const struct result *r, lane_after *after)
{
	struct list_compaction *c = xcalloc(1, sizeof(*c));
	const struct collection_options *options = lane_host(lane)->options;
	struct chain *chain = &c->store.chain;

	lane->work = c;
	c->after = after;
	c->store.lane = lane;
	if (!chain_read(chain, r->value)) {
		end(lane, lane_unreadable(lane, chain->form), NULL);
		return;
	}
	chain->is_list = true;
	if (!lane_exptime(lane_host(lane), r->ttl, &c->exptime) ||
		!chain_plan(chain, options->base_size, options->segment_size, true))
		end(lane, OUTCOME_DONE, NULL);
	else
		chain_store_load(&c->store, loaded);
}
