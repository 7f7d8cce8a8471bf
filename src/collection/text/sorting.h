/*
 * Sorting the members of a fold by name, in portions: a merge sort from the bottom up, whose state lies between two calls. Knuth, The Art
 * of Computer Programming 3, 5.2.4, algorithm S, with short runs sorted first.
 */
#ifndef COLLECTION_TEXT_SORTING_H
#define COLLECTION_TEXT_SORTING_H

#include "collection/text/fold.h"

struct sorting_member;

/* All zeroes sorts nothing. */
struct sorting {
	struct sorting_member *from, *to;
	size_t count;
	size_t width;       /* members of each sorted run in `from`; 0 while these are made */
	size_t at;          /* members that this pass has come to */
	size_t left, right; /* the next members of the two runs that are merged */
};

/* Steps of work of a portion, as env_is_over counts them. */
enum { SORTING_STEPS = 2048 };

/* Begins with the live members, or all of them with `removals`. The fold is borrowed until sorting_free. */
void sorting_begin(struct sorting *s, const struct fold *fold, bool removals);
void sorting_free(struct sorting *s);

/* Does a portion of the work. True if all are sorted. */
bool sorting_step(struct sorting *s) __attribute__((warn_unused_result));

/* The i-th member, once all are sorted. */
const struct fold_member *sorting_get(const struct sorting *s, size_t i);

/*
 * A table of the members of a fold, which is borrowed: sorted and written in portions. table_sorting_finish appends the table, once
 * table_sorting_step has given true, and frees the sorting.
 */
struct table_sorting;
struct table_sorting *table_sorting_create(const struct fold *fold, bool removals);
bool table_sorting_step(struct table_sorting *s) __attribute__((warn_unused_result));
void table_sorting_finish(struct table_sorting *s, struct buf *out);
void table_sorting_free(struct table_sorting *s);

#endif
