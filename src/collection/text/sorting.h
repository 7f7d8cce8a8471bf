/*
 * Sorts the members of a fold by name, in portions: a bottom-up merge sort that keeps its
 * state between calls. Knuth, The Art of Computer Programming 3, 5.2.4, algorithm S, with
 * short runs sorted first.
 */
#ifndef COLLECTION_TEXT_SORTING_H
#define COLLECTION_TEXT_SORTING_H

#include "collection/text/fold.h"

struct sorting_member;

/* All zeroes is an empty sorting. */
struct sorting {
	struct sorting_member *from, *to;
	size_t count;
	const struct fold *fold; /* its members from number `next` on are not in `from` yet */
	size_t next;
	bool removals;
	size_t width;       /* members of each sorted run in `from`; 0 while these runs are made */
	size_t at;          /* members that this pass has processed */
	size_t left, right; /* the next members of the two runs that are being merged */
};

/* Steps of work of a portion, in the unit of env_is_over. */
enum { SORTING_STEPS = 2048 };

/*
 * Begins with the live members, or all members if `removals`. The fold is borrowed
 * until sorting_free.
 */
void sorting_begin(struct sorting *s, const struct fold *fold, bool removals);
void sorting_free(struct sorting *s);

/* Does a portion of the work. Returns true when all are sorted. */
bool sorting_step(struct sorting *s) __attribute__((warn_unused_result));

/* Returns the i-th member; requires that all are sorted. */
const struct fold_member *sorting_get(const struct sorting *s, size_t i);

/*
 * Sorts the members of a fold, which is borrowed, and writes them as a table, in portions.
 * table_sorting_finish appends the table once table_sorting_step has returned true, and
 * frees the sorting.
 */
struct table_sorting;
struct table_sorting *table_sorting_create(const struct fold *fold, bool removals);
bool table_sorting_step(struct table_sorting *s) __attribute__((warn_unused_result));
void table_sorting_finish(struct table_sorting *s, struct buf *out);
void table_sorting_free(struct table_sorting *s);

#endif
