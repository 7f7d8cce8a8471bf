#include "collection/set/walk.h"

#include <stdlib.h>

#include "util/alloc.h"

/*
 * Writes a fold as a table; with removals only if there are layers below. Returns false if
 * the slice is over.
 */
static bool sort_fold(struct set_view *v, const struct fold *fold, bool removals, struct buf *text)
{
	if (buf_size(text) || fold->member_count == 0)
		return true;
	if (!v->sorting)
		v->sorting = table_sorting_create(fold, removals);
	while (!table_sorting_step(v->sorting)) {
		if (set_view_is_over(v, SORTING_STEPS))
			return false;
	}
	table_sorting_finish(v->sorting, text);
	v->sorting = NULL;
	return true;
}

/* Writes the folds as tables. Returns false if the slice is over. */
static bool sort_folds(struct set_view *v, bool overlay)
{
	return sort_fold(v, &v->head, false, &v->sorted_head) &&
		(!overlay ||
			sort_fold(v, &v->overlay, v->run_count || v->head.member_count,
				&v->sorted_overlay));
}

static void feed_sorted(struct walk *w, size_t stream, struct buf *text, struct table *table)
{
	if (buf_size(text) && table_open(table, buf_slice(text)))
		table_merge_feed(&w->merge, stream, table, w->range->from);
}

/*
 * Notes all tables for about `expect` entries of a run as wanted. Returns false if
 * some must be loaded.
 */
static bool look_ahead(struct walk *w, size_t run, uint64_t expect)
{
	const struct oplog_run *ref = &w->view->runs[run].ref;
	const struct fences *fences;
	bool there = true;

	w->next[run] = set_view_table_of(w->view, run, w->range->from);
	if (w->next[run] == SIZE_MAX)
		return false;
	if (!ref->indexed)
		return set_view_table(w->view, run, 0) != NULL;
	fences = set_view_index(w->view, run);
	for (size_t i = w->next[run]; i < fences->count; i++) {
		const struct fence *fence = &fences->list[i];
		if (fence->before > fences->list[w->next[run]].before + expect ||
			(i > w->next[run] && is_above(w->range, fence->first)))
			break;
		there &= set_view_table(w->view, run, i) != NULL;
	}
	return there;
}

bool walk_begin(struct walk *w, struct set_view *v, const struct set_range *range, uint64_t expect,
	bool overlay)
{
	uint64_t entries = 1;
	bool there = true;

	*w = (struct walk){ .view = v, .range = range, .skips_from = range->after };
	table_merge_init(&w->merge, v->run_count + 2);
	w->next = xcalloc(v->run_count + 1, sizeof(*w->next));
	for (size_t i = 0; i < v->run_count; i++)
		entries += v->runs[i].ref.entries;
	for (size_t i = 0; i < v->run_count; i++) {
		uint64_t share = v->runs[i].ref.entries;
		there &= look_ahead(
			w, i, expect && expect < entries ? expect * share / entries : share);
	}
	if (!there || !sort_folds(v, overlay))
		return false;
	feed_sorted(w, 0, &v->sorted_head, &w->head);
	if (overlay)
		feed_sorted(w, v->run_count + 1, &v->sorted_overlay, &w->overlay);
	return true;
}

void walk_end(struct walk *w)
{
	table_merge_free(&w->merge);
	free(w->next);
}

/* Feeds a dry stream. Returns false if its next table must be loaded. */
static bool feed_stream(struct walk *w, size_t stream)
{
	size_t run = stream - 1;
	const struct table *table;

	if (stream == 0 || stream > w->view->run_count ||
		w->next[run] == w->view->runs[run].ref.tables) {
		table_merge_end(&w->merge, stream);
		return true;
	}
	table = set_view_table(w->view, run, w->next[run]);
	if (!table)
		return false;
	w->next[run]++;
	table_merge_feed(&w->merge, stream, table, w->range->from);
	return true;
}

/* The streams begin at `from`, so at most the first member is outside the range. */
static inline bool is_first_to_skip(struct walk *w, struct slice member)
{
	bool skip = w->skips_from && member_compare(member, w->range->from) == 0;

	w->skips_from = false;
	return skip;
}

enum walk_step walk_next(struct walk *w, struct slice *member)
{
	for (;;) {
		enum merge_state state = table_merge_next(&w->merge);
		const struct table_cursor *entry;

		if (state == MERGE_END)
			return WALK_END;
		if (state == MERGE_DRY) {
			if (!feed_stream(w, w->merge.winner))
				return WALK_WANTED;
			continue;
		}
		entry = table_merge_entry(&w->merge);
		*member = table_member(entry);
		if (is_above(w->range, *member))
			return WALK_END;
		if (!table_gone(entry, w->view->now) && !is_first_to_skip(w, *member))
			return WALK_MEMBER;
	}
}
