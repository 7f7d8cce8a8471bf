#include "collection/text/sorting.h"

#include <stdlib.h>

#include "collection/text/table.h"
#include "util/alloc.h"
#include "util/num.h"
#include "util/word.h"

enum { RUN = 256 /* members sorted at once */, MERGED = 1024 /* members merged in a portion */ };

/* A member, and the first bytes of its name as a number. */
struct sorting_member {
	uint64_t rank;
	const struct fold_member *member;
};

static int sorting_by_name(const void *a, const void *b)
{
	const struct sorting_member *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return member_compare(
		slice_of(x->member->p, x->member->n), slice_of(y->member->p, y->member->n));
}

void sorting_begin(struct sorting *s, const struct fold *fold, bool removals)
{
	*s = (struct sorting){ .count = removals ? fold->member_count : fold->live,
		.fold = fold,
		.removals = removals };
	/* Not cleared: that would take long if there are many. */
	s->from = xmalloc((s->count + 1) * sizeof(*s->from));
	if (s->count > RUN)
		s->to = xmalloc(s->count * sizeof(*s->to));
}

void sorting_free(struct sorting *s)
{
	free(s->from);
	free(s->to);
	*s = (struct sorting){ 0 };
}

/*
 * Takes members for the next run, but looks at a limited number of them. Returns whether it is
 * complete.
 */
static bool take_run(struct sorting *s)
{
	enum { LOOKS = 2048 };
	size_t end = s->at / RUN * RUN + RUN, looks = 0;

	for (; s->at < end && s->at < s->count && looks < LOOKS; looks++) {
		const struct fold_member *m = &s->fold->members[s->next++];
		if (m->live || s->removals)
			s->from[s->at++] = (struct sorting_member){ word_rank(m->p, m->n), m };
	}
	return s->at == end || s->at == s->count;
}

static void sort_run(struct sorting *s)
{
	size_t start;

	if (!take_run(s))
		return;
	start = s->at ? (s->at - 1) / RUN * RUN : 0;
	if (s->at > start)
		qsort(s->from + start, s->at - start, sizeof(*s->from), sorting_by_name);
	if (s->at < s->count)
		return;
	s->at = 0;
	s->width = RUN;
}

static void merge_some(struct sorting *s)
{
	for (size_t end = num_least_size(s->at + MERGED, s->count); s->at < end; s->at++) {
		size_t pair = s->at - s->at % (2 * s->width);
		size_t middle = num_least_size(pair + s->width, s->count),
		       last = num_least_size(middle + s->width, s->count);
		bool left;
		if (s->at == pair) {
			s->left = pair;
			s->right = middle;
		}
		left = s->left < middle &&
			(s->right == last ||
				sorting_by_name(&s->from[s->left], &s->from[s->right]) <= 0);
		s->to[s->at] = s->from[left ? s->left++ : s->right++];
	}
}

static void end_pass(struct sorting *s)
{
	struct sorting_member *sorted = s->to;

	s->to = s->from;
	s->from = sorted;
	s->width *= 2;
	s->at = 0;
}

bool sorting_step(struct sorting *s)
{
	if (s->width == 0) {
		sort_run(s);
	} else if (s->width < s->count) {
		merge_some(s);
		if (s->at == s->count)
			end_pass(s);
	}
	return s->width && s->width >= s->count;
}

const struct fold_member *sorting_get(const struct sorting *s, size_t i)
{
	return s->from[i].member;
}

/* --- a table --- */

struct table_sorting {
	struct sorting sorting;
	struct table_writer writer;
	size_t written;
	bool sorted;
};

struct table_sorting *table_sorting_create(const struct fold *fold, bool removals)
{
	struct table_sorting *s = xcalloc(1, sizeof(*s));

	sorting_begin(&s->sorting, fold, removals);
	return s;
}

void table_sorting_free(struct table_sorting *s)
{
	if (!s)
		return;
	sorting_free(&s->sorting);
	table_writer_free(&s->writer);
	free(s);
}

bool table_sorting_step(struct table_sorting *s)
{
	if (!s->sorted) {
		s->sorted = sorting_step(&s->sorting);
		return false;
	}
	for (size_t n = 0; n < MERGED && s->written < s->sorting.count; n++) {
		const struct fold_member *m = sorting_get(&s->sorting, s->written++);
		table_writer_add(&s->writer, slice_of(m->p, m->n), !m->live);
	}
	return s->written == s->sorting.count;
}

void table_sorting_finish(struct table_sorting *s, struct buf *out)
{
	table_writer_finish(&s->writer, out);
	table_sorting_free(s);
}
