/* The segments of a list, in its lane: reading those that are wanted, writing what is to be written. */
#ifndef COLLECTION_CHAIN_STORE_H
#define COLLECTION_CHAIN_STORE_H

#include "collection/list/segmented_list.h"
#include "collection/rewrite/segments.h"

/* All zeroes but `lane` is one with an empty list. It must stand first in what lane->work points to. */
struct list_store {
	struct lane *lane;
	struct segmented_list list;
	struct segments *segments;
	struct segment_writer writer;
	bool writes;      /* the writer is in use */
	lane_after *done; /* told how it went, perhaps within the call that asks: MISSING is a segment that is gone */
};

void list_store_fini(struct list_store *store);

/* Loads the segments that the list wants. */
void list_store_load(struct list_store *store, lane_after *done);

/* Writes the parts of the list that are to be rewritten to new segments. */
void list_store_write(struct list_store *store, int64_t exptime, lane_after *done);

/* The base that refers to them. */
void list_store_encode(const struct list_store *store, struct buf *out);

/* After the base was written: what it does not refer to is deleted, and what it does lives as long, `ttl`, as it. */
void list_store_committed(struct list_store *store, int64_t ttl);

/* The base was not written, for certain: what was written for it is deleted. */
void list_store_undo(struct list_store *store);

#endif
