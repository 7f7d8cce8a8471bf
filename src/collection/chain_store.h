/* The segments of a chain, in its lane: reading those that are wanted, writing what is to be written. */
#ifndef COLLECTION_CHAIN_STORE_H
#define COLLECTION_CHAIN_STORE_H

#include "collection/chain.h"
#include "collection/segments.h"

/* All zeroes but `lane` is one with an empty chain. It must stand first in what lane->work points to. */
struct chain_store {
	struct lane *lane;
	struct chain chain;
	struct segments *segments;
	struct segment_writer writer;
	bool writes;      /* the writer is in use */
	lane_after *done; /* told how it went, perhaps within the call that asks: MISSING is a segment that is gone */
};

void chain_store_fini(struct chain_store *store);

/* Loads the segments that the chain wants. */
void chain_store_load(struct chain_store *store, lane_after *done);

/* Writes the parts of the chain that are to be rewritten to new segments. */
void chain_store_write(struct chain_store *store, int64_t exptime, lane_after *done);

/* The base that refers to them. */
void chain_store_encode(const struct chain_store *store, struct buf *out);

/* After the base was written: what it does not refer to is deleted, and what it does lives as long, `ttl`, as it. */
void chain_store_committed(struct chain_store *store, int64_t ttl);

/* The base was not written, for certain: what was written for it is deleted. */
void chain_store_undo(struct chain_store *store);

#endif
