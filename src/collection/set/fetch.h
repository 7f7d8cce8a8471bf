/*
 * Reading a set into its view: the base, then what the requests want of runs.
 *
 *     a view that is known -> ask for the CAS token alone -> the same: answer
 *                                                         -> another: read the base
 *     read the base -> the view follows -> answer -> what is wanted of runs is loaded -> answer
 *                                                    -> it is gone: read the base again
 *
 * An item that is gone was replaced by a merge, and then the base refers to another run by now. If it still refers to the same
 * one, the item was evicted: the set is not whole, so it counts as missing, and its base is removed so that it can be loaded
 * again. Items that no read needs are asked for now and then behind the replies, which keeps them as recently used as the base.
 *
 * To set commands a list is the set of its items: all of it is read.
 */
#ifndef COLLECTION_SET_FETCH_H
#define COLLECTION_SET_FETCH_H

#include "collection/lane/lane.h"
#include "collection/set/cache.h"

struct segments;

/* A read under way. It stands first in what lane->work points to. */
struct fetch {
	struct lane *lane;
	struct set_request *only; /* what is answered; NULL for the operations of the batch */
	lane_after *after;
	struct cache_entry *entry;
	struct result read; /* about the base, without its slices */
	size_t base_size;
	struct segments *segments;
	size_t loaded;        /* of those segments that the view wants */
	struct waiter pause;  /* between two slices of work */
	lane_step *resume;
	size_t segment_bytes;   /* of a list */
	char missing[OPLOG_ID]; /* the run of which an item was missing; empty for none */
	uint64_t missing_refs;  /* the check of references of which some item was missing; 0 for none */
	bool is_list;           /* the view is of no use to later reads */
};

/*
 * Begins to read. `after` is called when all is answered, or with what stands in the way; it calls fetch_end. With `fresh` the
 * base is read even if the view may be current.
 */
void fetch_begin(struct fetch *fetch, struct lane *lane, struct set_request *only, bool fresh, lane_after *after);

/* Reads the base again and answers again, unless the batch has lost too many races: then `after` is told OUTCOME_BUSY. */
void fetch_again(struct lane *lane);

/* Gives the view back; drops it when it may be wrong. */
void fetch_end(struct fetch *fetch, struct lane *lane, bool drop);

/* Carries out the READ operations of the lane's batch. */
void fetch_start(struct lane *lane);

#endif
