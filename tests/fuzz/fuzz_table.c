/*
 * Sorted tables and indexes. By the first byte: the input is parsed as one; or its members are
 * written to tables with an index, and these are searched and compared with a sorted array. Then
 * one byte of a table is changed.
 */
#include "collection/text/fences.h"
#include "input.h"
#include "table_model.h"

enum { TABLES_MAX = 8 };

/* --- any bytes --- */

static void any_bytes(struct slice bytes, struct slice name)
{
	char *copy = input_copy(bytes);
	struct slice data = slice_of(copy, bytes.n);
	struct table t;
	struct fences f;

	if (table_open(&t, data)) {
		uint64_t *ranks = calloc(table_restarts(&t) + 1, sizeof(*ranks));
		MUST(table_model_walks(&t, name));
		MUST(ranks);
		table_rank(&t, ranks);
		MUST(table_model_walks(&t, name));
		free(ranks);
	}
	if (fences_read(&f, data)) {
		MUST(table_model_walks_index(&f, name));
		for (size_t i = 0; i < f.count; i++)
			MUST(input_within(f.list[i].first, data));
		fences_free(&f);
	}
	free(copy);
}

/* --- tables of members --- */

static struct table_model model;

/* Begins like the previous member, and ends as in the input. */
static struct slice next_name(struct slice *in, char name[MEMBER_WORD_MAX], size_t before)
{
	uint8_t size = input_byte(in);
	size_t shared = before ? input_byte(in) % (before + 1) : 0;
	struct slice bytes =
		input_bytes(in, size < 224 ? 1 + size % 16 : size % (MEMBER_WORD_MAX + 1));

	if (shared + bytes.n > MEMBER_WORD_MAX)
		shared = MEMBER_WORD_MAX - bytes.n;
	memcpy(name + shared, bytes.p, bytes.n);
	for (size_t i = 0, n = shared + bytes.n; i < n; i++) {
		if (name[i] == ELEMENT_ESCAPE && i + 1 < n)
			i++, name[i] = (char)(0x22 + (unsigned char)name[i] % 0x21);
		else if ((unsigned char)name[i] <= ' ')
			name[i] = '!';
	}
	return slice_of(name, shared + bytes.n);
}

static void make_model(struct slice *in)
{
	char name[MEMBER_WORD_MAX];
	size_t before = 0;

	model.count = 0;
	while (in->n > 2 && model.count < TABLE_MODEL_MAX) {
		uint8_t how = input_byte(in);
		bool removed = how % 4 == 0;
		struct slice member = next_name(in, name, before);
		before = member.n;
		if (member.n == 0)
			continue;
		table_model_add(&model, member, removed);
		if (how >= 128 && !removed)
			model.list[model.count - 1].date = UINT32_C(1) << how / 4 % 32;
	}
	table_model_sort(&model);
}

/*
 * A table of the entries from `start` on, copied so that nothing follows it in memory. The caller
 * frees the data.
 */
static struct slice make_table(
	struct table_writer *w, size_t start, size_t end, struct fence *fence)
{
	struct buf out = BUF_EMPTY;
	struct table t;
	struct table_cursor c;
	size_t size;
	char *copy;

	table_model_write(&model, start, end, w);
	fence->removals = w->removals;
	fence->dated = w->dated;
	if (w->dated) {
		fence->first_date = w->first_date;
		fence->mean_date = (uint32_t)(w->date_sum / w->dated);
	}
	size = table_writer_size(w);
	table_writer_finish(w, &out);
	MUST(buf_size(&out) == size);
	copy = input_copy(buf_slice(&out));
	buf_free(&out);
	MUST(table_open(&t, slice_of(copy, size)) && t.count == end - start);
	for (size_t i = start; i < end; i++) {
		MUST(table_nth(&c, &t, (uint32_t)(i - start)));
		MUST(slice_equal(table_member(&c), table_model_name(&model, i)) &&
			c.removed == model.list[i].removed &&
			table_date(&t, c.at) == model.list[i].date);
	}
	MUST(table_model_walks(&t, slice_of("", 0)));
	return slice_of(copy, size);
}

/* Cuts the model into tables, and writes the index. */
static size_t make_tables(
	struct slice *in, struct slice tables[TABLES_MAX], struct fences_writer *index)
{
	struct table_writer w = { .count = 0 };
	size_t count = 0;

	for (size_t start = 0, end; start < model.count; start = end) {
		struct fence fence = { .id = "t0123456789a",
			.check = count,
			.first = table_model_name(&model, start) };
		end = start + 1 + input_byte(in);
		if (end > model.count || count == TABLES_MAX - 1)
			end = model.count;
		fence.first.n =
			start ? fence_size(table_model_name(&model, start - 1), fence.first) : 0;
		tables[count] = make_table(&w, start, end, &fence);
		fence.entries = (uint32_t)(end - start);
		fence.bytes = (uint32_t)tables[count++].n;
		fences_add(index, &fence);
	}
	table_writer_free(&w);
	return count;
}

/* The tables and the model agree on a member. */
static void search(const struct fences *f, const struct slice *tables, struct slice name)
{
	size_t i = table_model_seek(&model, name), at = fences_find(f, name);
	bool there = i < model.count && slice_equal(table_model_name(&model, i), name),
	     gone = false, found;
	int64_t date = there ? model.list[i].date : 0;
	uint64_t ranks[TABLE_MODEL_MAX / TABLE_INTERVAL + 1];
	struct table_cursor c;
	struct table t;

	MUST(table_open(&t, tables[at]));
	for (int ranked = 0; ranked < 2; ranked++) {
		for (int64_t now = date ? date - 1 : 0; now <= date; now++) {
			found = table_find(&t, name, now, &gone);
			MUST(found == there &&
				(!found || gone == table_model_gone(&model, i, now)));
		}
		(void)table_seek(&c, &t, name);
		MUST(f->list[at].before + c.at == i);
		table_rank(&t, ranks);
	}
}

static void tables_of_members(struct slice *in)
{
	struct slice tables[TABLES_MAX], rest = *in;
	struct fences_writer index = { .count = 0 };
	char name[MEMBER_WORD_MAX];
	struct fences f;
	struct table t;
	size_t count, size = 0;

	make_model(in);
	count = make_tables(&rest, tables, &index);
	if (fences_read(&f, fences_text(&index))) {
		MUST(f.count == count && f.entries == model.count);
		for (size_t i = 0; i < count; i++)
			MUST(table_open(&t, tables[i]) && fences_hold(&f, i, &t));
		for (size_t i = 0; i < model.count; i++)
			search(&f, tables, table_model_name(&model, i));
		while (rest.n) {
			size = next_name(&rest, name, size).n;
			search(&f, tables, slice_of(name, size));
		}
		fences_free(&f);
	} else {
		MUST(count == 0);
	}
	for (size_t i = 0; i < count; i++) {
		char *bytes = (char *)tables[i].p;
		bytes[size * 7 % tables[i].n] ^= (char)(1 << size % 8);
		any_bytes(tables[i], slice_of(name, size));
		free(bytes);
	}
	fences_writer_free(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = slice_of((const char *)data, size), name;

	if (input_byte(&in) % 2 == 0) {
		name = input_bytes(&in, input_byte(&in));
		any_bytes(in, name);
	} else {
		tables_of_members(&in);
	}
	return 0;
}
