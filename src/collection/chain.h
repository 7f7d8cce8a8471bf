/*
 * A list as its base says it: a chain of parts, the log at the head, segments, the log at the tail. Which items are where is
 * known from the base alone, so that only those segments need be read of which something is wanted. Where that cannot be said,
 * since the log holds removals, the chain is `tangled`: all of it must be loaded, and is then one log at the tail.
 *
 *     chain_read -> chain_need -> load what is wanted -> chain_apply ... -> write what is to be written -> chain_encode
 *
 * Nothing here does I/O: what loads and writes is in chain_store.c.
 */
#ifndef COLLECTION_CHAIN_H
#define COLLECTION_CHAIN_H

#include "collection/items.h"
#include "collection/pack.h"
#include "collection/text/oplog.h"

struct chain_part {
	struct slice id; /* of its segment; empty for a log of the base */
	uint32_t kilobytes;
	size_t count;              /* of the items in the segment, or the log */
	size_t skip, keep;         /* which of them count */
	bool wanted;               /* to be loaded */
	bool absorbs;              /* of a log: its neighbour goes with it to a new segment */
	bool rewritten;            /* to be written to a new segment */
	struct pack *pack;         /* what was loaded */
	struct items items;        /* in place of that, once it is changed */
	size_t refs_from, refs_to; /* where among the references to what was written are those to it */
};

struct chain {
	struct buf base;
	struct chain_part *parts; /* the log at the head, segments, the log at the tail */
	size_t part_count;
	enum oplog_form form;
	bool is_set;  /* of sorted tables, which have no order of their own: it is no list */
	bool is_list; /* so that nothing is dropped that it says twice */
	bool tangled, settled;
	bool removes; /* the base has removals */
	size_t log_bytes;
};

/* Reads a base, a copy of which the chain keeps; false when it is none, and `form` or `is_set` says why. The chain must be all zeroes, or freed. */
bool chain_read(struct chain *chain, struct slice base) __attribute__((warn_unused_result));
void chain_free(struct chain *chain);

/* How many items it has; not known while it is tangled. */
size_t chain_count(const struct chain *chain);

/* Marks the segments that a request needs loaded, or, of neighbouring pops, what `front` and `back` of them take. */
void chain_need(struct chain *chain, const struct list_request *request);
void chain_need_ends(struct chain *chain, uint64_t front, uint64_t back);
void chain_need_all(struct chain *chain);

/* Gives a part what was read of its segment; shares the pack. False when it is not what the base says. */
bool chain_load(struct chain_part *part, struct pack *pack) __attribute__((warn_unused_result));

/* Makes one log of a tangled chain that is loaded. */
void chain_settle(struct chain *chain, uint64_t seed);

/*
 * Carries out a request, as items_apply does, on what it needs loaded. True when the chain was changed. What it holds may be
 * request->item.
 */
bool chain_apply(struct chain *chain, struct list_request *request, struct buf *text);

/*
 * Compaction: chooses what to move from a base that is too long to segments, and with `absorb` marks the segments that
 * are needed to keep them few; false when there is nothing to do. Then, with those loaded, does it.
 */
bool chain_plan(struct chain *chain, size_t base_size, size_t segment_size, bool absorb);
void chain_compact(struct chain *chain, size_t base_size);

/* Of a chain that was settled: has its log written to segments when it is longer than `base_size`. */
void chain_spill(struct chain *chain, size_t base_size);

/* The log of a part. */
void chain_part_log(const struct chain_part *part, struct buf *out);

/* The base, with the references to what was written; and those to segments that it does not need any more. */
void chain_encode(const struct chain *chain, struct slice written, struct buf *out);
void chain_dropped(const struct chain *chain, struct buf *refs);

#endif
