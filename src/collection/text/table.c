#include "collection/text/table.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"

enum { MAGIC_SIZE = TABLE_MAGIC_SIZE, NUMBER = TABLE_NUMBER, ENTRY_HEAD = 4 };

size_t table_restarts(const struct table *t)
{
	return t->count / TABLE_INTERVAL + (t->count % TABLE_INTERVAL != 0);
}

size_t table_size(const struct table *t)
{
	return t->entries_end + (table_restarts(t) + 1 + (t->dates ? t->count : 0)) * NUMBER;
}

static size_t restart_offset(const struct table *t, size_t restart)
{
	return (size_t)little_load(t->data + t->entries_end + restart * NUMBER, NUMBER);
}

static bool take_long_head(const char **p, const char *end, uint32_t *shared, uint32_t *size)
{
	return varint_take(p, end, shared) && varint_take(p, end, size);
}

/*
 * Reads the head of an entry, and moves `p` past it. A number below 128 has one byte. Reading
 * two bytes is safe: restart points follow the entries.
 */
static inline bool take_head(const char **p, const char *end, uint32_t *shared, uint32_t *size)
{
	*shared = (unsigned char)(*p)[0];
	*size = (unsigned char)(*p)[1];
	if ((*shared | *size) >= 0x80)
		return take_long_head(p, end, shared, size);
	*p += 2;
	return *p <= end;
}

/* Reads the head of an entry in a checked table. Returns the start of its bytes. */
static inline const char *read_head(const char *p, uint32_t *shared, uint32_t *size)
{
	bool good = take_head(&p, p + 2 * VARINT_MAX, shared, size);

	assert(good);
	(void)good;
	return p;
}

static void read_entry(struct table_cursor *c)
{
	uint32_t shared, size;
	const char *p = read_head(c->table->data + c->next, &shared, &size);

	c->removed = size & 1;
	size >>= 1;
	word_copy(c->member + shared, p, size);
	c->size = (uint16_t)(shared + size);
	c->shared = (uint16_t)shared;
	c->next = (size_t)(p - c->table->data) + size;
}

/*
 * Returns whether a member that shares `shared` bytes with a word, and has `size` more, is a
 * word, too. Only escapes need a look at the whole member.
 */
static bool is_member(const struct table_cursor *c, size_t shared, size_t size)
{
	const char *rest = c->member + shared;

	if (element_special(rest, rest + size) == rest + size &&
		(!shared || (c->member[0] != ELEMENT_ESCAPE && rest[-1] != ELEMENT_ESCAPE)))
		return true;
	return element_is_word(slice_of(c->member, shared + size));
}

/*
 * Reads the entry at `c->next` of an unchecked table. Returns false if it is
 * malformed or out of order.
 */
static bool check_entry(struct table_cursor *c)
{
	const char *p = c->table->data + c->next, *end = c->table->data + c->table->entries_end;
	bool restart = c->at % TABLE_INTERVAL == 0;
	uint32_t shared, size;
	struct slice bytes;

	if (restart && restart_offset(c->table, c->at / TABLE_INTERVAL) != c->next)
		return false;
	if (!take_head(&p, end, &shared, &size))
		return false;
	c->removed = size & 1;
	size >>= 1;
	bytes = slice_of(p, size);
	if (size == 0 || size > (size_t)(end - p) || shared > c->size ||
		shared + size > MEMBER_WORD_MAX || (restart && shared > 0))
		return false;
	/* This checks the order, and that the entry shares as many bytes as it can. */
	if (restart ? member_compare(bytes, table_member(c)) <= 0
		    : shared < c->size && (unsigned char)*p <= (unsigned char)c->member[shared])
		return false;
	word_copy(c->member + shared, p, size);
	c->size = (uint16_t)(shared + size);
	c->next = (size_t)(p - c->table->data) + size;
	return is_member(c, shared, size);
}

bool table_trust(struct table *t, struct slice data)
{
	bool dated = slice_starts(data, SLICE(TABLE_DATED_MAGIC));
	size_t behind, dates;

	if (data.n < MAGIC_SIZE + NUMBER || (!dated && !slice_starts(data, SLICE(TABLE_MAGIC))))
		return false;
	t->data = data.p;
	t->ranks = NULL;
	t->common = 0;
	t->count = (uint32_t)little_load(data.p + data.n - NUMBER, NUMBER);
	dates = dated ? (size_t)t->count * NUMBER : 0;
	behind = (table_restarts(t) + 1) * NUMBER + dates;
	if (behind > data.n - MAGIC_SIZE)
		return false;
	t->entries_end = data.n - behind;
	t->dates = dated ? data.p + data.n - NUMBER - dates : NULL;
	return true;
}

bool table_open(struct table *t, struct slice data)
{
	struct table_cursor c = { .table = t, .next = MAGIC_SIZE };
	bool dated = false;

	if (!table_trust(t, data))
		return false;
	for (; c.at < t->count; c.at++) {
		uint32_t date = table_date(t, c.at);
		if (!check_entry(&c) || (c.removed && date))
			return false;
		dated |= date != EXPIRY_NONE;
	}
	return c.next == t->entries_end && dated == (t->dates != NULL);
}

uint32_t table_expired(const struct table *t, int64_t now, uint32_t *next)
{
	uint32_t expired = 0;

	*next = UINT32_MAX;
	for (uint32_t i = 0; t->dates && i < t->count; i++) {
		uint32_t date = table_date(t, i);
		if (expiry_is_past(date, now))
			expired++;
		else if (date && date < *next)
			*next = date;
	}
	return expired;
}

static bool go_to_restart(struct table_cursor *c, const struct table *t, uint32_t restart)
{
	c->table = t;
	c->size = 0;
	c->at = restart * TABLE_INTERVAL;
	if (c->at >= t->count) {
		c->at = t->count;
		return false;
	}
	c->next = restart_offset(t, restart);
	read_entry(c);
	return true;
}

bool table_first(struct table_cursor *c, const struct table *t)
{
	return go_to_restart(c, t, 0);
}

bool table_next(struct table_cursor *c)
{
	if (c->at >= c->table->count || ++c->at == c->table->count)
		return false;
	read_entry(c);
	return true;
}

bool table_nth(struct table_cursor *c, const struct table *t, uint32_t n)
{
	if (n >= t->count) {
		c->table = t;
		c->at = t->count;
		return false;
	}
	go_to_restart(c, t, n / TABLE_INTERVAL);
	while (c->at < n)
		table_next(c);
	return true;
}

static struct slice restart_member(const struct table *t, size_t restart)
{
	uint32_t shared, size;
	const char *p = read_head(t->data + restart_offset(t, restart), &shared, &size);

	return slice_of(p, size >> 1);
}

/* All members share the bytes that the first and the last one share. */
void table_rank(struct table *t, uint64_t *ranks)
{
	size_t count = table_restarts(t);
	struct table_cursor last;

	if (!table_nth(&last, t, t->count - 1))
		return;
	t->common = (uint32_t)member_shared(restart_member(t, 0), table_member(&last));
	t->ranks = ranks;
	for (size_t i = 0; i < count; i++) {
		struct slice member = slice_skip(restart_member(t, i), t->common);
		ranks[i] = word_rank(member.p, member.n);
	}
}

size_t ranks_below(const uint64_t *ranks, size_t count, uint64_t rank, bool through)
{
	const uint64_t *at = ranks;

	/* A binary search without branches on the data. */
	for (; count > 1; count -= count / 2)
		at += at[count / 2 - 1] < rank || (through && at[count / 2 - 1] == rank) ? count / 2
											 : 0;
	return (size_t)(at - ranks) + (count && (*at < rank || (through && *at == rank)));
}

/* Returns the last restart point whose member is at most `member`; 0 if there is none. */
static uint32_t find_restart(const struct table *t, struct slice member)
{
	size_t low = 0, high = table_restarts(t);

	if (t->ranks)
		ranks_narrow(
			t->ranks, slice_of(restart_member(t, 0).p, t->common), member, &low, &high);
	while (high > low + 1) {
		size_t middle = low + (high - low) / 2;
		if (member_compare(restart_member(t, middle), member) <= 0)
			low = middle;
		else
			high = middle;
	}
	return (uint32_t)low;
}

bool table_seek(struct table_cursor *c, const struct table *t, struct slice from)
{
	bool there = go_to_restart(c, t, t->count ? find_restart(t, from) : 0);

	while (there && member_compare(table_member(c), from) < 0)
		there = table_next(c);
	return there;
}

/*
 * Searches from a restart point without building members. The loop keeps `matched`, the number
 * of bytes that `member` shares with the last entry, which is below it. An entry that shares
 * more with the last entry is below `member` too; one that shares less is above.
 */
static bool scan(
	const struct table *t, uint32_t restart, struct slice member, int64_t now, bool *gone)
{
	const char *p = t->data + restart_offset(t, restart);
	size_t matched = 0;

	for (uint32_t at = restart * TABLE_INTERVAL, n = 0; n < TABLE_INTERVAL && at + n < t->count;
		n++) {
		uint32_t shared, size;
		struct slice bytes, rest;

		p = read_head(p, &shared, &size);
		bytes = slice_of(p, size >> 1);
		p += bytes.n;
		if (shared > matched)
			continue;
		if (shared < matched)
			return false;
		rest = slice_skip(member, matched);
		shared = (uint32_t)member_shared(bytes, rest);
		if (shared == rest.n && shared == bytes.n) {
			*gone = size & 1 || expiry_is_past(table_date(t, at + n), now);
			return true;
		}
		if (shared == rest.n ||
			(shared < bytes.n &&
				(unsigned char)bytes.p[shared] > (unsigned char)rest.p[shared]))
			return false;
		matched += shared;
	}
	return false;
}

bool table_find(const struct table *t, struct slice member, int64_t now, bool *gone)
{
	return t->count && scan(t, find_restart(t, member), member, now, gone);
}

static void add_date(struct table_writer *w, uint32_t date)
{
	little_write(buf_reserve(&w->dates, NUMBER), date, NUMBER);
	buf_commit(&w->dates, NUMBER);
}

void table_writer_date(struct table_writer *w, uint32_t date)
{
	if (date == EXPIRY_NONE)
		return;
	while (buf_size(&w->dates) < (w->count - 1) * (size_t)NUMBER)
		add_date(w, EXPIRY_NONE);
	add_date(w, date);
	if (w->dated++ == 0 || date < w->first_date)
		w->first_date = date;
	w->date_sum += date;
}

void table_writer_add(struct table_writer *w, struct slice member, bool removed)
{
	bool restart = w->count % TABLE_INTERVAL == 0;
	size_t shared = restart || !w->last
		? 0
		: member_shared(slice_of(w->last, w->last_size), member),
	       size = member.n - shared;
	char *start, *p;

	assert(member.n > 0 && member.n <= MEMBER_WORD_MAX);
	assert(w->count == 0 || member_compare(slice_of(w->last, w->last_size), member) < 0);
	if (restart) {
		little_write(buf_reserve(&w->restarts, NUMBER), MAGIC_SIZE + buf_size(&w->entries),
			NUMBER);
		buf_commit(&w->restarts, NUMBER);
	}
	p = start = buf_reserve(&w->entries, ENTRY_HEAD + size);
	p = varint_write(p, (uint32_t)shared);
	p = varint_write(p, (uint32_t)(size << 1 | removed));
	memcpy(p, member.p + shared, size);
	buf_commit(&w->entries, (size_t)(p - start) + size);
	if (!w->last)
		w->last = xmalloc(MEMBER_WORD_MAX);
	memcpy(w->last + shared, member.p + shared, size);
	w->last_size = (uint16_t)member.n;
	w->count++;
	w->removals += removed;
}

size_t table_writer_size(const struct table_writer *w)
{
	return MAGIC_SIZE + buf_size(&w->entries) + buf_size(&w->restarts) + NUMBER +
		(w->dated ? (size_t)w->count * NUMBER : 0);
}

void table_writer_finish(struct table_writer *w, struct buf *out)
{
	buf_add_slice(out, w->dated ? SLICE(TABLE_DATED_MAGIC) : SLICE(TABLE_MAGIC));
	buf_add_slice(out, buf_slice(&w->entries));
	buf_add_slice(out, buf_slice(&w->restarts));
	while (w->dated && buf_size(&w->dates) < w->count * (size_t)NUMBER)
		add_date(w, EXPIRY_NONE);
	buf_add_slice(out, buf_slice(&w->dates));
	little_write(buf_reserve(out, NUMBER), w->count, NUMBER);
	buf_commit(out, NUMBER);
	buf_consume(&w->entries, buf_size(&w->entries));
	buf_consume(&w->restarts, buf_size(&w->restarts));
	buf_consume(&w->dates, buf_size(&w->dates));
	w->count = w->removals = w->dated = 0;
	w->date_sum = 0;
	w->last_size = 0;
}

void table_writer_free(struct table_writer *w)
{
	buf_free(&w->entries);
	buf_free(&w->restarts);
	buf_free(&w->dates);
	free(w->last);
	*w = (struct table_writer){ 0 };
}
