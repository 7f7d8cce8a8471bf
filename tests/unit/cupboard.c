#include "cupboard.h"

#include <stdlib.h>

#include "collection/text/fences.h"
#include "must.h"
#include "util/check.h"
#include "util/random.h"

void cupboard_free(struct cupboard *c)
{
	for (size_t i = 0; i < c->count; i++)
		buf_free(&c->items[i].data);
	c->count = 0;
}

struct slice cupboard_put(struct cupboard *c, enum oplog_kind kind, struct slice data)
{
	struct cupboard_item *item = &c->items[c->count++];

	MUST(c->count <= CUPBOARD_MAX);
	*item = (struct cupboard_item){ .data = BUF_EMPTY };
	oplog_new_id(kind, 0, &c->random, item->id);
	buf_add_slice(&item->data, data);
	return slice_of(item->id, OPLOG_ID);
}

struct cupboard_item *cupboard_find(struct cupboard *c, struct slice id)
{
	/* The items that were stored last are looked up most often. */
	for (size_t i = c->count; i-- > 0;) {
		if (slice_equal(slice_of(c->items[i].id, OPLOG_ID), id))
			return &c->items[i];
	}
	return NULL;
}

/* The entries from `start` to `end` as a table, and an entry of the index for it. */
static void put_table(struct cupboard *c, const struct table_model *entries, size_t start,
	size_t end, struct oplog_run *run, struct fences_writer *index, uint64_t *date_sum)
{
	struct table_writer w = { .count = 0 };
	struct fence fence = { .first = table_model_name(entries, start) };
	struct buf data = BUF_EMPTY;

	table_model_write(entries, start, end, &w);
	fence.entries = w.count;
	fence.removals = w.removals;
	fence.dated = w.dated;
	if (w.dated) {
		fence.first_date = w.first_date;
		fence.mean_date = (uint32_t)(w.date_sum / w.dated);
	}
	*date_sum += w.date_sum;
	table_writer_finish(&w, &data);
	fence.bytes = (uint32_t)buf_size(&data);
	fence.check = check_of(buf_slice(&data));
	run->id = cupboard_put(c, OPLOG_TABLE, buf_slice(&data));
	memcpy(fence.id, run->id.p, OPLOG_ID);
	fence.first.n = start ? fence_size(table_model_name(entries, start - 1), fence.first) : 0;
	fences_add(index, &fence);
	run->tables++;
	run->entries += fence.entries;
	run->removals += fence.removals;
	run->bytes += fence.bytes;
	run->dated += fence.dated;
	run->check = fence.check;
	buf_free(&data);
	table_writer_free(&w);
}

struct oplog_run cupboard_run(
	struct cupboard *c, const struct table_model *entries, size_t most, uint64_t *random)
{
	struct oplog_run run = { .indexed = false };
	struct fences_writer index = { .count = 0 };
	uint64_t date_sum = 0;

	MUST(entries->count && most);
	for (size_t start = 0, end; start < entries->count; start = end) {
		end = start + (random ? 1 + random_next(random) % most : most);
		if (end > entries->count)
			end = entries->count;
		put_table(c, entries, start, end, &run, &index, &date_sum);
	}
	if (run.dated)
		run.mean = date_sum / run.dated;
	run.indexed = run.tables > 1;
	if (run.indexed) {
		struct slice text = fences_text(&index);
		run.check = check_of(text);
		run.id = cupboard_put(c, OPLOG_INDEX, text);
	}
	fences_writer_free(&index);
	return run;
}

struct oplog_run cupboard_log_run(struct cupboard *c, const char *log, size_t most)
{
	struct table_model *entries = calloc(1, sizeof(*entries));
	struct slice rest = slice_of(log, strlen(log)), token;
	struct oplog_run run;

	MUST(entries);
	while ((token = slice_token(&rest)).n)
		table_model_add(entries, slice_skip(token, 1), token.p[0] == '-');
	run = cupboard_run(c, entries, most, NULL);
	free(entries);
	return run;
}

void cupboard_base(struct buf *out, const char *head, const struct oplog_run *runs, size_t count,
	const char *log)
{
	bool wide = false;

	for (size_t i = 0; i < count; i++)
		wide |= runs[i].dated > 0;
	buf_add(out, head, strlen(head));
	oplog_add_mark(out, false, wide);
	for (size_t i = 0; i < count; i++)
		oplog_add_run(out, &runs[i]);
	buf_add(out, log, strlen(log));
}
