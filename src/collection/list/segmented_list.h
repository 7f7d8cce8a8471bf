/*
 * A list as its base says it: a list of parts, the log at the head, segments, the log at the tail. Which items are where is
 * known from the base alone, so that only those segments need be read of which something is wanted. Where that cannot be said,
 * since the log holds removals, the list is `tangled`: all of it must be loaded, and is then one log at the tail.
 *
 *     segmented_list_read -> segmented_list_need -> load what is wanted -> segmented_list_apply ... -> write what is to be written -> segmented_list_encode
 *
 * Nothing here does I/O: what loads and writes is in chain_store.c.
 */
#ifndef COLLECTION_CHAIN_H
#define COLLECTION_CHAIN_H

#include "collection/list/items.h"
#include "collection/op.h"
#include "collection/text/log_index.h"
#include "collection/text/oplog.h"

struct list_part {
	struct slice id; /* of its segment; empty for a log of the base */
	uint32_t kilobytes;
	size_t count;                /* of the items in the segment, or the log */
	size_t skip, keep;           /* which of them count */
	bool wanted;                 /* to be loaded */
	bool absorbs;                /* of a log: its neighbour goes with it to a new segment */
	bool rewritten;              /* to be written to a new segment */
	struct log_index *log_index; /* what was loaded */
	struct items items;          /* in place of that, once it is changed */
	size_t refs_from, refs_to;   /* where among the references to what was written are those to it */
};

struct segmented_list {
	struct buf base;
	struct list_part *parts; /* the log at the head, segments, the log at the tail */
	size_t part_count;
	enum oplog_form form;
	bool is_set;  /* of sorted tables, which have no order of their own: it is no list */
	bool is_list; /* so that nothing is dropped that it says twice */
	bool tangled, settled;
	bool removes; /* the base has removals */
	size_t log_bytes;
};

/* Reads a base, a copy of which the list keeps; false when it is none, and `form` or `is_set` says why. The list must be all zeroes, or freed. */
bool segmented_list_read(struct segmented_list *list, struct slice base) __attribute__((warn_unused_result));

/* Makes a list of one part that is stored elsewhere. Takes the items. */
void segmented_list_of(struct segmented_list *list, struct items *items);
void segmented_list_free(struct segmented_list *list);

/* How many items it has; not known while it is tangled. */
size_t segmented_list_count(const struct segmented_list *list);

/* Marks the segments that a request needs loaded, or, of neighbouring pops, what `front` and `back` of them take. */
void segmented_list_need(struct segmented_list *list, const struct list_request *request);
void segmented_list_need_ends(struct segmented_list *list, uint64_t front, uint64_t back);
void segmented_list_need_all(struct segmented_list *list);

/* Gives a part what was read of its segment; shares the log_index. False when it is not what the base says. */
bool segmented_list_load(struct list_part *part, struct log_index *log_index) __attribute__((warn_unused_result));

/* Makes one log of a tangled list that is loaded. */
void segmented_list_settle(struct segmented_list *list, uint64_t seed);

/*
 * Carries out a request, as items_apply does, on what it needs loaded. True when the list was changed. What it holds may be
 * request->item.
 */
bool segmented_list_apply(struct segmented_list *list, struct list_request *request, struct buf *text);

/*
 * Compaction: chooses what to move from a base that is too long to segments, and with `absorb` marks the segments that
 * are needed to keep them few; false when there is nothing to do. Then, with those loaded, does it.
 */
bool segmented_list_plan(struct segmented_list *list, size_t base_size, size_t segment_size, bool absorb);
void segmented_list_compact(struct segmented_list *list, size_t base_size);

/* Of a list that was settled: has its log written to segments when it is longer than `base_size`. */
void segmented_list_spill(struct segmented_list *list, size_t base_size);

/* The log of a part. */
void list_part_log(const struct list_part *part, struct buf *out);

/* The base, with the references to what was written; and those to segments that it does not need any more. */
void segmented_list_encode(const struct segmented_list *list, struct slice written, struct buf *out);
void segmented_list_dropped(const struct segmented_list *list, struct buf *refs);

#endif
