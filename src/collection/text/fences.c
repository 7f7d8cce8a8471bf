#include "collection/text/fences.h"

#include <stdlib.h>

#include "collection/text/varint.h"
#include "util/alloc.h"

#define MAGIC "I1"
#define DATED_MAGIC "I2"

enum {
	MAGIC_SIZE = sizeof(MAGIC) - 1,
	CHECK = 8,
	LEAST = OPLOG_ID + CHECK + 4,
	NUMBER = 4,
	DATES = 3 * NUMBER
};

static bool read_one(const char **p, const char *end, struct fence *out)
{
	uint32_t size;

	if (end - *p < LEAST)
		return false;
	memcpy(out->id, *p, OPLOG_ID);
	out->check = little_load(*p + OPLOG_ID, CHECK);
	*p += OPLOG_ID + CHECK;
	if (!varint_take(p, end, &out->bytes) || !varint_take(p, end, &out->entries) ||
		!varint_take(p, end, &out->removals) || !varint_take(p, end, &size))
		return false;
	if (size > (size_t)(end - *p) || out->entries == 0 || out->removals > out->entries)
		return false;
	out->first = slice_of(*p, size);
	*p += size;
	return oplog_is_id(slice_of(out->id, OPLOG_ID), OPLOG_TABLE);
}

/* The first fence is empty: it has no common bytes and is below all others. */
static void rank_fences(struct fences *f)
{
	f->common = member_shared(f->list[f->count > 1].first, f->list[f->count - 1].first);
	f->ranks = xcalloc(f->count, sizeof(*f->ranks));
	for (size_t i = 1; i < f->count; i++) {
		struct slice rest = slice_skip(f->list[i].first, f->common);
		f->ranks[i] = word_rank(rest.p, rest.n);
	}
}

/* Returns the start of the dates in an index that has them; NULL if there is no room for any. */
static const char *dates_of(struct slice data)
{
	size_t room = data.n < MAGIC_SIZE + NUMBER ? 0 : data.n - MAGIC_SIZE - NUMBER;
	uint64_t count = room ? little_load(data.p + data.n - NUMBER, NUMBER) : 0;

	return count && count <= room / DATES ? data.p + data.n - NUMBER - count * DATES : NULL;
}

/* Reads the dates of all tables. Returns false if their numbers are not possible. */
static bool read_dates(struct fences *f, struct slice dates)
{
	const char *p = dates.p;

	if (dates.n != f->count * DATES + NUMBER)
		return false;
	for (size_t i = 0; i < f->count; i++, p += DATES) {
		struct fence *fence = &f->list[i];
		fence->dated = (uint32_t)little_load(p, NUMBER);
		fence->first_date = (uint32_t)little_load(p + NUMBER, NUMBER);
		fence->mean_date = (uint32_t)little_load(p + 2 * NUMBER, NUMBER);
		f->dated += fence->dated;
		if (fence->dated > fence->entries - fence->removals ||
			(fence->dated > 0) != (fence->mean_date > 0) ||
			fence->first_date > fence->mean_date)
			return false;
	}
	return f->dated > 0;
}

bool fences_read(struct fences *f, struct slice data)
{
	const char *p, *end;
	bool dated = slice_starts(data, SLICE(DATED_MAGIC)),
	     good = dated || slice_starts(data, SLICE(MAGIC));

	*f = (struct fences){ 0 };
	if (!good)
		return false;
	p = data.p + MAGIC_SIZE;
	end = dated ? dates_of(data) : data.p + data.n;
	if (!end)
		return false;
	f->list = xcalloc(data.n / LEAST + 1, sizeof(*f->list));
	for (; good && p < end; f->count++) {
		struct fence *fence = &f->list[f->count];
		good = read_one(&p, end, fence) &&
			(f->count ? member_compare(fence[-1].first, fence->first) < 0
				  : fence->first.n == 0);
		fence->before = f->entries;
		f->entries += fence->entries;
		f->removals += fence->removals;
		f->bytes += fence->bytes;
	}
	if (!good || f->count == 0 ||
		(dated && !read_dates(f, slice_skip(data, (size_t)(end - data.p))))) {
		fences_free(f);
		return false;
	}
	rank_fences(f);
	return true;
}

void fences_free(struct fences *f)
{
	free(f->list);
	free(f->ranks);
	*f = (struct fences){ 0 };
}

size_t fences_find(const struct fences *f, struct slice member)
{
	size_t low = 0, high = f->count;

	ranks_narrow(
		f->ranks, slice_of(f->list[f->count > 1].first.p, f->common), member, &low, &high);
	while (high > low + 1) {
		size_t middle = low + (high - low) / 2;
		if (member_compare(f->list[middle].first, member) <= 0)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool fences_hold(const struct fences *f, size_t i, const struct table *t)
{
	struct table_cursor c;

	return t->count == f->list[i].entries && (t->dates != NULL) == (f->list[i].dated > 0) &&
		table_first(&c, t) && member_compare(table_member(&c), f->list[i].first) >= 0 &&
		table_nth(&c, t, t->count - 1) &&
		(i + 1 == f->count || member_compare(table_member(&c), f->list[i + 1].first) < 0);
}

void fences_add(struct fences_writer *w, const struct fence *fence)
{
	char *start, *p;

	if (w->count++ == 0)
		BUF_ADD(&w->text, MAGIC);
	start = p = buf_reserve(&w->text, OPLOG_ID + CHECK + 4 * VARINT_MAX + fence->first.n);
	p = slice_write(p, slice_of(fence->id, OPLOG_ID));
	p = little_write(p, fence->check, CHECK);
	p = varint_write(p, fence->bytes);
	p = varint_write(p, fence->entries);
	p = varint_write(p, fence->removals);
	p = varint_write(p, (uint32_t)fence->first.n);
	p = slice_write(p, fence->first);
	buf_commit(&w->text, (size_t)(p - start));
	p = buf_reserve(&w->dates, DATES);
	p = little_write(p, fence->dated, NUMBER);
	p = little_write(p, fence->first_date, NUMBER);
	little_write(p, fence->mean_date, NUMBER);
	buf_commit(&w->dates, DATES);
	w->dated |= fence->dated > 0;
}

struct slice fences_text(struct fences_writer *w)
{
	if (w->dated) {
		memcpy(w->text.data + w->text.start, DATED_MAGIC, MAGIC_SIZE);
		little_write(buf_reserve(&w->dates, NUMBER), w->count, NUMBER);
		buf_commit(&w->dates, NUMBER);
		buf_add_slice(&w->text, buf_slice(&w->dates));
		w->dated = false;
	}
	return buf_slice(&w->text);
}

void fences_writer_free(struct fences_writer *w)
{
	buf_free(&w->text);
	buf_free(&w->dates);
}

size_t fence_size(struct slice last, struct slice first)
{
	size_t n = member_shared(last, first);

	return n < first.n ? n + 1 : first.n;
}
