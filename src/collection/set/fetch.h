/*
 * Reading a set into its view: the base, then the tables and indexes that the requests need.
 *
 *     known view -> read the CAS token -> unchanged: answer
 *                                      -> changed: read the base
 *     read the base -> update the view -> answer -> load what the answers want -> answer again
 *                                                   -> an item is missing: read the base again
 *
 * A missing item was replaced by a merge if the base refers to another run now. If it still refers to the same run, the
 * item was evicted. Then the set is incomplete: it counts as missing, and its base is removed so that it can be loaded
 * again. presence.h keeps items in use that no read needs.
 *
 * For set commands a list is the set of its items: all of it is read.
 */
#ifndef COLLECTION_SET_FETCH_H
#define COLLECTION_SET_FETCH_H

#include "collection/lane/lane.h"
#include "collection/set/cache.h"

struct segments;

/* A read in progress: the first member of what lane->work points to. */
struct fetch {
	struct lane *lane;
	struct set_request *only; /* the request to answer; NULL for those of the batch */
	lane_after *after;
	struct cache_entry *entry;
	struct result read; /* the reply about the base, without slices */
	struct segments *segments;
	size_t checked;      /* segments that the view has taken */
	struct waiter pause; /* between two slices of work */
	lane_step *resume;
	size_t segment_bytes;   /* bytes of the segments of a list */
	char missing[OPLOG_ID]; /* id of a run with a missing item; empty for none */
	uint64_t missing_refs;  /* check of the references when any item was missing; 0 for none */
	bool is_list;           /* the base is a list with segments, whose view is dropped at the end */
	struct buf list_base;   /* its base: the view has all items as one log instead */
};

/*
 * Starts a read, and sets lane->work to `fetch`. `after` gets OUTCOME_DONE when all requests are answered, or what
 * prevented that; it calls fetch_end. If `fresh`, the base is read even if the view may be current.
 */
void fetch_begin(struct fetch *fetch, struct lane *lane, struct set_request *only, bool fresh, lane_after *after);

/* The base as it is stored, to put more behind it. Requires that the requests are answered. Borrowed from the fetch. */
struct slice fetch_base(const struct fetch *fetch);

/* Reads the base and answers again. If the batch has lost too many races, `after` gets OUTCOME_BUSY. */
void fetch_again(struct lane *lane);

/* Releases the view, and frees what the read allocated; drops the view if `drop`, because it may be wrong. */
void fetch_end(struct fetch *fetch, struct lane *lane, bool drop);

/* Carries out the READ operations of the lane's batch. */
void fetch_start(struct lane *lane);

#endif
