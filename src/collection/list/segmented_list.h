/*
 * A list as an array of pieces: the log at the head of the base, segments, the log at the tail. The base alone says how many
 * elements each piece has, so a request loads only the segments that hold its elements. If a log has removals the positions are not
 * known, and the list is `tangled`: the whole list must be loaded, and settling makes it one log at the tail.
 *
 *     segmented_list_read -> _need -> load the segments -> _apply, for each request -> write the new segments -> _encode
 *
 * Nothing here does I/O: list.c loads and writes segments.
 */
#ifndef COLLECTION_LIST_SEGMENTED_LIST_H
#define COLLECTION_LIST_SEGMENTED_LIST_H

#include "collection/op.h"
#include "collection/text/log_index.h"
#include "collection/text/oplog.h"

/* A sequence of elements, which are borrowed slices: the bytes must outlive their use. All zeroes is the empty sequence. */
struct elements {
	struct slice *list;
	size_t count, capacity;
};

void elements_free(struct elements *elements);
void elements_add(struct elements *elements, struct slice element);

struct list_piece {
	struct oplog_ref ref;        /* to the segment, with its window; a log of the base has no id */
	bool needed;                 /* to be loaded */
	bool absorbs;                /* a log: the segment beside it is merged with it into a new segment */
	bool rewritten;              /* to be written to a new segment */
	struct log_index *log_index; /* the loaded elements */
	struct elements elements;    /* the elements since the piece was changed; they override log_index */
	size_t refs_from, refs_to;   /* the references to its new segments are these bytes of the writer's refs */
};

struct segmented_list {
	struct buf base;
	struct list_piece *pieces;
	size_t piece_count;
	enum oplog_form form;
	bool is_set;  /* a set in sorted tables, which does not keep the order of its members */
	bool is_list; /* marked as a list: duplicates count */
	bool tangled, settled;
	bool removes; /* a log has removals */
	bool limited; /* elements beyond a limit are left out */
	size_t log_bytes;
};

/*
 * Reads a base, which the list copies. When it is no list that can be read, returns false, and `form` or `is_set` says why.
 * The list need not be initialised; it must be freed in any case. Of a tangled list all segments are marked as needed.
 */
bool segmented_list_read(struct segmented_list *list, struct slice base) __attribute__((warn_unused_result));

/* Makes a list of one piece, for an encoding that stores its elements itself. Takes the elements. */
void segmented_list_of(struct segmented_list *list, struct elements *elements);

void segmented_list_free(struct segmented_list *list);

/* The number of elements. It is not known while the list is tangled. */
size_t segmented_list_count(const struct segmented_list *list);

/* The size of the base and of all segments, these to the KB. */
uint64_t segmented_list_bytes(const struct segmented_list *list);

/* Leaves out all but the `max` newest elements; 0 leaves out none. Requires that the list is not tangled. */
void segmented_list_limit(struct segmented_list *list, uint64_t max, bool newest_first);

/*
 * Appends the elements that are left of a log, as a log without removals. Returns false if the log is none, or has references.
 */
bool segmented_list_limit_log(struct slice log, uint64_t max, bool newest_first, uint64_t seed, struct buf *out)
	__attribute__((warn_unused_result));

/* Marks the segments that a request needs; or that neighbouring pops need, which take `front` and `back` elements; or all. */
void segmented_list_need(struct segmented_list *list, const struct list_request *request);
void segmented_list_need_ends(struct segmented_list *list, uint64_t front, uint64_t back);
void segmented_list_need_all(struct segmented_list *list);

/* Appends the references to the needed segments. */
void segmented_list_needed(const struct segmented_list *list, struct buf *refs);

/* Gives a piece the content of its segment; shares the log_index. False if the base says something else. */
bool segmented_list_load(struct list_piece *piece, struct log_index *log_index) __attribute__((warn_unused_result));

/* Whether the list refers to a segment twice, so that it is corrupt. */
bool segmented_list_repeats(const struct segmented_list *list);

/* Makes a tangled list, of which all pieces are loaded, one log at the tail. */
void segmented_list_settle(struct segmented_list *list, uint64_t seed);

/*
 * Carries out a request whose segments are loaded: fills in its `status` and `number`, and `at` and `size` of the answer that
 * it appends to `text`. True when the list was changed; from then on it may borrow request->item.
 */
bool segmented_list_apply(struct segmented_list *list, struct list_request *request, struct buf *text);

/*
 * The same for a slice of a RANGE, LENGTH or POSITION. Gives false if it must be called again; what `text` has stays there until then.
 * Its first call may find anything in `text`.
 */
bool segmented_list_read_slice(struct segmented_list *list, struct list_request *request, struct buf *text)
	__attribute__((warn_unused_result));
enum { LIST_SLICE = 1024 /* elements */ };

/*
 * Compaction in two steps. The first chooses the logs to move to segments, and with `absorb` the segments to merge them with,
 * which must then be loaded. It returns false when there is nothing to do. The second changes the list accordingly.
 */
bool segmented_list_plan(struct segmented_list *list, size_t base_size, size_t segment_size, bool absorb);
void segmented_list_compact(struct segmented_list *list, size_t base_size);

/* Moves the log of a settled list to segments if it is longer than `base_size`. */
void segmented_list_spill(struct segmented_list *list, size_t base_size);

/* Appends the elements of a piece as a log. */
void list_piece_log(const struct list_piece *piece, struct buf *out);

/* Appends the base, where `written` is the references to the new segments; and the references that it drops. */
void segmented_list_encode(const struct segmented_list *list, struct slice written, struct buf *out);
void segmented_list_dropped(const struct segmented_list *list, struct buf *refs);

#endif
