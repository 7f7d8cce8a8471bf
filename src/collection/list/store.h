/* Reads and writes the segments of a list, for a machine in its lane. */
#ifndef COLLECTION_LIST_STORE_H
#define COLLECTION_LIST_STORE_H

#include "collection/list/segmented_list.h"
#include "collection/rewrite/segments.h"

/* All zeroes except `lane` is a store with an empty list. It must be the first member of the struct in lane->work. */
struct list_store {
	struct lane *lane;
	struct segmented_list list;
	struct segments *segments;
	struct segment_writer writer;
	bool writes;      /* the writer is in use */
	lane_after *done; /* gets the outcome, perhaps before the call returns; OUTCOME_MISSING: a segment is missing */
};

void list_store_fini(struct list_store *store);

/* Loads the segments that are marked as needed. */
void list_store_load(struct list_store *store, lane_after *done);

/* Writes the parts that are marked as rewritten to new segments. */
void list_store_write(struct list_store *store, int64_t exptime, lane_after *done);

/* Appends the base that refers to the segments. */
void list_store_encode(const struct list_store *store, struct buf *out);

/* After the base was written: deletes the segments that it dropped. The new ones get `ttl`, its time to live. */
void list_store_committed(struct list_store *store, int64_t ttl);

/* Deletes the new segments. The base must be known not to have been written. */
void list_store_undo(struct list_store *store);

#endif
