#include "collection/set/run_writer.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/set/cache.h"
#include "collection/text/packed.h"
#include "util/check.h"

/*
 * ENTRY_MORE: bytes of an entry in addition to its member and date. A table below 1 / SMALL_PART of
 * table_size is small.
 */
enum { ENTRY_MORE = 8, SMALL_PART = 2 };

void run_writer_init(struct run_writer *w, struct lanes *lanes, struct slice key, int64_t exptime,
	void (*answered)(void *arg), void *arg)
{
	*w = (struct run_writer){ 0 };
	w->pack_size = lanes->env->options->pack_size;
	part_writer_init(&w->parts, lanes, key, exptime, answered, arg);
}

void run_writer_fini(struct run_writer *w)
{
	part_writer_fini(&w->parts);
	table_writer_free(&w->table);
	sorting_free(&w->sorting);
	fold_free(&w->fold);
	fences_writer_free(&w->index);
	buf_free(&w->first);
	buf_free(&w->last);
}

/*
 * Writes an index, or a table in its stored form. Also keeps the part, not packed, in the view:
 * a proxy that reads the set will need it.
 */
static void write_part(struct run_writer *w, enum oplog_kind kind, char id[OPLOG_ID],
	struct slice data, struct slice stored)
{
	struct lanes *lanes = w->parts.lanes;

	oplog_new_id(kind, w->parts.behind, &lanes->env->random, id);
	cache_keep(lanes->cache, w->parts.key, slice_of(id, OPLOG_ID), kind == OPLOG_TABLE, data);
	part_writer_add(&w->parts, slice_of(id, OPLOG_ID), stored);
}

static void set_name(struct buf *name, struct slice member)
{
	buf_consume(name, buf_size(name));
	buf_add_slice(name, member);
}

static void note_table(struct run_writer *w, const struct fence *fence)
{
	fences_add(&w->index, fence);
	w->last_table = *fence;
	w->run.tables++;
	w->run.entries += fence->entries;
	w->run.removals += fence->removals;
	w->run.bytes += fence->bytes;
	w->run.dated += fence->dated;
	w->date_sum += (uint64_t)fence->dated * fence->mean_date;
}

/* Returns the stored form of a table, which may be in `packed`. */
static struct slice stored_form(struct run_writer *w, struct slice data, struct buf *packed)
{
	struct table table;
	bool good;

	if (!w->pack_size || data.n < w->pack_size)
		return data;
	good = table_trust(&table, data);
	assert(good);
	(void)good;
	if (!packed_write(packed, &table))
		return data;
	w->parts.wide = true;
	return buf_slice(packed);
}

static void write_table(struct run_writer *w)
{
	struct fence fence = {
		.entries = w->table.count, .removals = w->table.removals, .dated = w->table.dated
	};
	struct buf data = BUF_EMPTY, packed = BUF_EMPTY;
	struct slice stored;

	if (w->table.count == 0)
		return;
	set_name(&w->last, slice_of(w->table.last, w->table.last_size));
	fence.first = buf_slice(&w->first);
	if (fence.dated) {
		fence.first_date = w->table.first_date;
		fence.mean_date = (uint32_t)(w->table.date_sum / fence.dated);
	}
	table_writer_finish(&w->table, &data);
	fence.bytes = (uint32_t)buf_size(&data);
	stored = stored_form(w, buf_slice(&data), &packed);
	fence.check = check_of(stored);
	write_part(w, OPLOG_TABLE, fence.id, buf_slice(&data), stored);
	note_table(w, &fence);
	buf_free(&data);
	buf_free(&packed);
}

/* Returns the largest size that the table may have with one more entry. */
static size_t size_with(const struct run_writer *w, struct slice member, uint32_t date)
{
	/* The first date adds one to each entry before it, too. */
	size_t dates = w->table.dated ? 1 : date ? (size_t)w->table.count + 1 : 0;

	return table_writer_size(&w->table) + member.n + ENTRY_MORE + dates * TABLE_NUMBER;
}

void run_writer_add(struct run_writer *w, struct slice member, bool removed, uint32_t date)
{
	size_t most = w->parts.lanes->env->options->table_size;

	if (w->table.count && size_with(w, member, date) > most)
		write_table(w);
	if (w->table.count == 0) {
		size_t fence = w->run.tables == 0 ? 0
			: w->reused               ? member.n
						  : fence_size(buf_slice(&w->last), member);
		w->reused = false;
		set_name(&w->first, slice_of(member.p, fence));
	}
	w->parts.wide = w->parts.wide || date || !oplog_is_narrow_word(member);
	table_writer_add(&w->table, member, removed);
	table_writer_date(&w->table, date);
}

void run_writer_fill(struct run_writer *w, const struct fold *fold, bool removals)
{
	sorting_begin(&w->sorting, fold, removals);
	w->sorted = false;
	w->filled = 0;
}

void run_writer_fill_from_log(struct run_writer *w, struct slice log)
{
	w->fold.seed = w->parts.lanes->env->seed;
	w->rest = log;
}

/* Reads a portion of the log. Returns true if there is no log, or all of it was already read. */
static bool read_some(struct run_writer *w)
{
	bool good;

	if (w->rest.n == 0)
		return true;
	good = fold_portion(&w->fold, &w->rest);
	assert(good);
	(void)good;
	if (w->rest.n == 0)
		run_writer_fill(w, &w->fold, false);
	return false;
}

bool run_writer_fill_step(struct run_writer *w)
{
	enum { ADDED = 1024 };

	if (!read_some(w))
		return false;
	if (!w->sorted) {
		w->sorted = sorting_step(&w->sorting);
		return false;
	}
	for (size_t n = 0; n < ADDED && w->filled < w->sorting.count; n++) {
		const struct fold_member *m = sorting_get(&w->sorting, w->filled++);
		run_writer_add(w, slice_of(m->p, m->n), !m->live, fold_date(m));
	}
	if (w->filled < w->sorting.count)
		return false;
	sorting_free(&w->sorting);
	fold_free(&w->fold);
	return true;
}

bool run_writer_fill_slice(struct run_writer *w, struct lane *lane, lane_step *step)
{
	while (!run_writer_fill_step(w)) {
		if (lane_pauses(lane, SORTING_STEPS, step))
			return false;
	}
	return true;
}

void run_writer_take(struct run_writer *w, const struct fence *fence)
{
	struct fence taken = *fence;

	if (w->run.tables == 0)
		taken.first.n = 0;
	w->parts.wide = w->parts.wide || taken.dated;
	note_table(w, &taken);
}

bool run_writer_reuse(struct run_writer *w, const struct fence *fence)
{
	size_t small = w->parts.lanes->env->options->table_size / SMALL_PART;
	bool is_first = w->run.tables == 0 && w->table.count == 0;

	if (fence->bytes < small || (w->table.count && table_writer_size(&w->table) < small) ||
		(fence->first.n == 0 && !is_first))
		return false;
	write_table(w);
	run_writer_take(w, fence);
	/* The last member of a reused table is unknown, so the next fence is a whole member. */
	w->reused = true;
	return true;
}

void run_writer_finish(struct run_writer *w)
{
	write_table(w);
	w->finished = true;
	if (w->run.dated)
		w->run.mean = w->date_sum / w->run.dated;
	if (w->run.tables > 1) {
		struct slice index = fences_text(&w->index);
		w->run.indexed = true;
		w->run.check = check_of(index);
		write_part(w, OPLOG_INDEX, w->id, index, index);
	} else if (w->run.tables) {
		memcpy(w->id, w->last_table.id, OPLOG_ID);
		w->run.check = w->last_table.check;
	}
}

void run_writer_ref(const struct run_writer *w, struct buf *out)
{
	struct oplog_run run = w->run;

	assert(w->finished);
	run.id = slice_of(w->id, OPLOG_ID);
	if (run.tables)
		oplog_add_run(out, &run);
}
