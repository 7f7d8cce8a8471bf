#include "collection/set/walk.h"

#include <stdlib.h>

#include "util/alloc.h"

static inline bool is_above(const struct set_range *range, struct slice member)
{
	return range->has_to && member_compare(member, range->to) > 0;
}

int set_range_side(const struct set_range *range, struct slice member)
{
	int order = member_compare(member, range->from);

	if (order < 0 || (order == 0 && range->after))
		return -1;
	return is_above(range, member);
}

/* Writes a fold as a table, removals only if there are layers below. */
static void sort(const struct fold *fold, bool removals, struct buf *out)
{
	uint32_t *order = fold_sort(fold);
	struct table_writer writer = { 0 };

	for (size_t i = 0; i < fold->member_count; i++) {
		const struct fold_member *m = &fold->members[order[i]];
		if (m->live || removals)
			table_writer_add(&writer, slice_of(m->p, m->n), !m->live);
	}
	table_writer_finish(&writer, out);
	table_writer_free(&writer);
	free(order);
}

static const struct table *sorted(const struct fold *fold, bool removals, struct buf *text, struct table *table)
{
	if (buf_size(text) == 0)
		sort(fold, removals, text);
	return table_open(table, buf_slice(text)) ? table : NULL;
}

/* Wants all tables for about `expect` entries of a run. */
static bool look_ahead(struct set_walk *w, size_t run, uint64_t expect)
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

bool set_walk_begin(struct set_walk *w, struct set_view *v, const struct set_range *range, uint64_t expect)
{
	uint64_t entries = 1;
	bool there = true;

	*w = (struct set_walk){ .view = v, .range = range, .skips_from = range->after };
	table_merge_init(&w->merge, v->run_count + 2);
	w->next = xcalloc(v->run_count + 1, sizeof(*w->next));
	for (size_t i = 0; i < v->run_count; i++)
		entries += v->runs[i].ref.entries;
	for (size_t i = 0; i < v->run_count; i++) {
		uint64_t share = v->runs[i].ref.entries;
		there &= look_ahead(w, i, expect && expect < entries ? expect * share / entries : share);
	}
	if (v->head.member_count && sorted(&v->head, false, &v->sorted_head, &w->head))
		table_merge_feed(&w->merge, 0, &w->head, range->from);
	if (v->overlay.member_count &&
		sorted(&v->overlay, v->run_count || v->head.member_count, &v->sorted_overlay, &w->overlay))
		table_merge_feed(&w->merge, v->run_count + 1, &w->overlay, range->from);
	return there;
}

void set_walk_end(struct set_walk *w)
{
	table_merge_free(&w->merge);
	free(w->next);
}

/* Feeds a dry stream; false if its next table must be loaded. */
static bool feed(struct set_walk *w, size_t stream)
{
	size_t run = stream - 1;
	const struct table *table;

	if (stream == 0 || stream > w->view->run_count || w->next[run] == w->view->runs[run].ref.tables) {
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

/* The streams begin at `from`, so that at most the first member is outside the range. */
static inline bool is_first_to_skip(struct set_walk *w, struct slice member)
{
	bool skip = w->skips_from && member_compare(member, w->range->from) == 0;

	w->skips_from = false;
	return skip;
}

enum set_step set_walk_next(struct set_walk *w, struct slice *member)
{
	for (;;) {
		enum merge_state state = table_merge_next(&w->merge);
		const struct table_cursor *entry;

		if (state == MERGE_END)
			return SET_STEP_END;
		if (state == MERGE_DRY) {
			if (!feed(w, w->merge.winner))
				return SET_STEP_WANTED;
			continue;
		}
		entry = table_merge_entry(&w->merge);
		*member = table_member(entry);
		if (is_above(w->range, *member))
			return SET_STEP_END;
		if (!entry->removed && !is_first_to_skip(w, *member))
			return SET_STEP_MEMBER;
	}
}
