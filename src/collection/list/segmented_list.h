/*
 * A list as an array of pieces: the log at the head of the base, segments, the log at the tail.
 * The base contains the number of elements of each piece, so a request loads only the segments
 * that hold its elements. If a log has removals, the positions are unknown, and the list is
 * `tangled`: the whole list must be loaded, and settling makes it one log at the tail.
 *
 *     segmented_list_read -> _need -> load the segments -> _apply, for each request
 *                         -> write the new segments -> _encode
 *
 * Nothing here does I/O: list.c loads and writes segments.
 */
#ifndef COLLECTION_LIST_SEGMENTED_LIST_H
#define COLLECTION_LIST_SEGMENTED_LIST_H

#include "collection/list/elements.h"
#include "collection/list_request.h"
#include "collection/text/held.h"
#include "collection/text/log_index.h"
#include "collection/text/oplog.h"

struct list_piece {
	/* The reference to the segment, with its window; a log of the base has no id. */
	struct oplog_ref ref;
	bool needed; /* must be loaded */
	/* A log: the segment next to it is merged with it into a new segment. */
	bool absorbs;
	bool rewritten;              /* must be written to a new segment */
	struct log_index *log_index; /* the loaded elements */
	/* The elements after a change of the piece; they override log_index. */
	struct elements elements;
	/* Byte range of the references to its new segments in the writer's refs. */
	size_t refs_from, refs_to;
};

struct segmented_list {
	struct buf base;    /* as it was read */
	struct buf lasting; /* the base without dates of words, if it has any: elements stay */
	struct buf unheld;  /* the same without held elements, if it has any */
	struct buf undated; /* the same without its dates, if it has any */
	struct held held;
	struct list_piece *pieces;
	size_t piece_count;
	enum oplog_form form;
	bool is_set;  /* a set in sorted tables, which does not preserve the order of its members */
	bool is_list; /* marked as a list: duplicates count */
	bool wide;    /* the base has form 3 */
	bool tangled, settled;
	bool removes; /* at least one log has removals */
	bool limited; /* elements beyond a limit were left out */
	bool given;   /* held elements were given back */
	size_t log_bytes;
};

/*
 * Reads a base, and copies it. Returns false if it is not a readable list; `form` or `is_set`
 * has the reason. The list need not be initialised, and must be freed in any case. All segments
 * of a tangled list are marked as needed.
 */
bool segmented_list_read(struct segmented_list *list, struct slice base)
	__attribute__((warn_unused_result));

/* Makes a list of one piece, for an encoding that stores its elements itself. Owns the elements. */
void segmented_list_of(struct segmented_list *list, struct elements *elements);

void segmented_list_free(struct segmented_list *list);

/* Returns the number of elements. Requires that the list is not tangled. */
size_t segmented_list_count(const struct segmented_list *list);

/* Returns the size of the base and of all segments; segment sizes are rounded to KB. */
uint64_t segmented_list_bytes(const struct segmented_list *list);

/* Leaves out all but the `max` newest elements; 0 for all. The list must not be tangled. */
void segmented_list_limit(struct segmented_list *list, uint64_t max, bool newest_first);

/*
 * Appends the remaining elements of a log, as a log without removals. Returns false if `log` is
 * malformed or has references.
 */
bool segmented_list_limit_log(struct slice log, uint64_t max, bool newest_first, uint64_t seed,
	struct buf *out) __attribute__((warn_unused_result));

/* Returns the first or the last element, which must be loaded. The list must not be empty. */
struct slice segmented_list_end(const struct segmented_list *list, bool front);

/*
 * Removes `count` elements from one end; adds elements, in their order, before the first element or
 * after the last one. The list must not be tangled.
 */
void segmented_list_drop(struct segmented_list *list, size_t count, bool front);
void segmented_list_put(struct segmented_list *list, const struct elements *more, bool front);

/* Marks the segments to load: for a request, for pops of `front` and `back` elements, or all. */
void segmented_list_need(struct segmented_list *list, const struct list_request *request);
void segmented_list_need_ends(struct segmented_list *list, uint64_t front, uint64_t back);
void segmented_list_need_all(struct segmented_list *list);

/* Appends the references to the needed segments. */
void segmented_list_needed(const struct segmented_list *list, struct buf *refs);

/*
 * Sets the content of a piece to its loaded segment; shares the log_index. Returns false if the
 * segment contradicts the base.
 */
bool segmented_list_load(struct list_piece *piece, struct log_index *log_index)
	__attribute__((warn_unused_result));

/* Returns whether the list refers to a segment twice, and is corrupt. */
bool segmented_list_repeats(const struct segmented_list *list);

/* Converts a tangled list, of which all pieces are loaded, to one log at the tail. */
void segmented_list_settle(struct segmented_list *list, uint64_t seed);

/*
 * Carries out a request whose segments are loaded: fills in its `status` and `number`, and `at`
 * and `size` of the answer that it appends to `text`. Returns true if the list was changed;
 * from then on the list may borrow request->item.
 */
bool segmented_list_apply(
	struct segmented_list *list, struct list_request *request, struct buf *text);

/*
 * The same for a slice of a RANGE, LENGTH or POSITION. Returns false if it must be called again;
 * the content of `text` must be kept until then. At the first call `text` may have any content.
 */
bool segmented_list_read_slice(struct segmented_list *list, struct list_request *request,
	struct buf *text) __attribute__((warn_unused_result));
enum { LIST_SLICE = 1024 /* elements */ };

/*
 * Compaction in two steps. segmented_list_plan chooses the logs to move to segments and, with
 * `absorb`, the segments to merge with them, which must then be loaded. It returns false if
 * there is nothing to do. segmented_list_compact changes the list accordingly.
 */
bool segmented_list_plan(
	struct segmented_list *list, size_t base_size, size_t segment_size, bool absorb);
void segmented_list_compact(struct segmented_list *list, size_t base_size);

/* Moves the log of a settled list to segments if it is longer than `base_size`. */
void segmented_list_spill(struct segmented_list *list, size_t base_size);

/* Appends the elements of a piece as a log. */
void list_piece_log(const struct list_piece *piece, struct buf *out);

/*
 * segmented_list_encode appends the base, without a date; `written` are the references to the new
 * segments, of form 3 if `wide`.
 * segmented_list_dropped appends the references that the new base no longer has.
 */
void segmented_list_encode(
	const struct segmented_list *list, struct slice written, bool wide, struct buf *out);
void segmented_list_dropped(const struct segmented_list *list, struct buf *refs);

#endif
