#include "table_model.h"

#include <stdlib.h>

#include "util/random.h"

int table_model_order(struct slice a, struct slice b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

static int by_name(const void *a, const void *b)
{
	const struct table_model_entry *x = a, *y = b;

	return table_model_order(slice_of(x->name, x->size), slice_of(y->name, y->size));
}

void table_model_add(struct table_model *m, struct slice name, bool removed)
{
	if (m->count == TABLE_MODEL_MAX)
		return;
	struct table_model_entry *e = &m->list[m->count++];
	memcpy(e->name, name.p, name.n);
	e->size = name.n;
	e->removed = removed;
	e->date = EXPIRY_NONE;
}

void table_model_sort(struct table_model *m)
{
	size_t kept = 0;

	qsort(m->list, m->count, sizeof(m->list[0]), by_name);
	for (size_t i = 0; i < m->count; i++) {
		if (i == 0 || by_name(&m->list[i], &m->list[kept - 1]) != 0)
			memmove(&m->list[kept++], &m->list[i], sizeof(m->list[0]));
	}
	m->count = kept;
}

size_t table_model_seek(const struct table_model *m, struct slice from)
{
	size_t i = 0;

	while (i < m->count && table_model_order(table_model_name(m, i), from) < 0)
		i++;
	return i;
}

size_t table_model_random_name(uint64_t *random, unsigned world, char name[MEMBER_WORD_MAX])
{
	static const char *const letters[TABLE_MODEL_WORLDS] = { "ab", "0123456789",
		"a~\x80\xc3\xff!", "xyz" };
	static const size_t most[TABLE_MODEL_WORLDS] = { 12, 8, 4, 0 };
	bool is_long = most[world] == 0;
	size_t kinds = strlen(letters[world]),
	       size = is_long ? MEMBER_MAX - random_next(random) % 4
			      : 1 + random_next(random) % most[world];

	memset(name, 'x', size);
	for (size_t i = is_long ? size - 6 : 0; i < size; i++)
		name[i] = letters[world][random_next(random) % kinds];
	return size;
}

void table_model_random(struct table_model *m, uint64_t *random)
{
	unsigned world = (unsigned)(random_next(random) % TABLE_MODEL_WORLDS);
	bool few = world == TABLE_MODEL_WORLDS - 1 || random_next(random) % 3;
	size_t wanted = random_next(random) % (few ? 70 : TABLE_MODEL_MAX + 1);
	char name[MEMBER_WORD_MAX];

	m->count = 0;
	while (m->count < wanted) {
		size_t size = table_model_random_name(random, world, name);
		table_model_add(m, slice_of(name, size), random_next(random) % 4 == 0);
	}
	table_model_sort(m);
}

void table_model_random_dates(struct table_model *m, uint64_t *random)
{
	static const uint32_t spans[] = { 1, 2, 100, 3600, UINT32_MAX };
	uint32_t span = spans[random_next(random) % (sizeof(spans) / sizeof(spans[0]))],
		 first = (uint32_t)(1 + random_next(random) % (UINT32_MAX - span + 1ull));
	unsigned kind = (unsigned)(random_next(random) % 4);

	/* Of 16 members, none, 1, 8 or all. */
	for (size_t i = 0; i < m->count; i++) {
		bool dated = random_next(random) % 16 < (unsigned[]){ 0, 1, 8, 16 }[kind];
		m->list[i].date = dated && !m->list[i].removed
			? first + (uint32_t)(random_next(random) % span)
			: EXPIRY_NONE;
	}
}

void table_model_write(
	const struct table_model *m, size_t start, size_t end, struct table_writer *w)
{
	for (size_t i = start; i < end; i++) {
		table_writer_add(w, table_model_name(m, i), m->list[i].removed);
		table_writer_date(w, m->list[i].date);
	}
}

bool table_model_tries(const struct table_model *m,
	bool (*finds)(const void *where, struct slice name), const void *where, uint64_t *random)
{
	char name[MEMBER_WORD_MAX + 1];
	bool good = finds(where, SLICE("")) && finds(where, SLICE("\xff\xff\xff\xff\xff\xff"));

	for (size_t i = 0; i < m->count && good; i++) {
		size_t n = m->list[i].size;
		memcpy(name, m->list[i].name, n);
		name[n] = (char)random_next(random);
		good = finds(where, slice_of(name, n)) && finds(where, slice_of(name, n + 1)) &&
			finds(where, slice_of(name, n - !!n)) &&
			finds(where, slice_of(name, random_next(random) % (n + 1)));
		name[n ? random_next(random) % n : 0] ^= (char)(1 << random_next(random) % 8);
		good = good && finds(where, slice_of(name, n));
	}
	for (unsigned i = 0; i < 5 * TABLE_MODEL_WORLDS && good; i++)
		good = finds(where,
			slice_of(name,
				table_model_random_name(random, i % TABLE_MODEL_WORLDS, name)));
	return good;
}

/* A member is there until its date, and gone from then on; one without a date does not change. */
static bool changes_at_date(const struct table_cursor *c)
{
	uint32_t date = table_date(c->table, c->at);
	int64_t moments[] = { INT64_MAX, date - 1ll, date };
	size_t count = date ? sizeof(moments) / sizeof(moments[0]) : 1;
	bool gone, good = !c->removed || date == EXPIRY_NONE;

	for (size_t i = 0; i < count && good; i++) {
		bool expected = c->removed || (date && moments[i] >= date);
		good = table_find(c->table, table_member(c), moments[i], &gone) &&
			gone == expected && table_gone(c, moments[i]) == expected;
	}
	return good;
}

/* The members that have expired, and the next one that does so, as dates say. */
static bool counts_expired(const struct table *t, int64_t now)
{
	uint32_t expired = 0, next = UINT32_MAX, got_next;

	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t date = table_date(t, i);
		if (date && date <= now)
			expired++;
		else if (date && date < next)
			next = date;
	}
	return table_expired(t, now, &got_next) == expired && got_next == next;
}

bool table_model_walks(const struct table *t, struct slice from)
{
	struct table_cursor c, other;
	char last[MEMBER_WORD_MAX];
	uint32_t count = 0, at, middle = t->count ? table_date(t, t->count / 2) : 0;
	size_t size = 0;
	bool good = counts_expired(t, 0) && counts_expired(t, middle) &&
		counts_expired(t, middle - 1ll) && counts_expired(t, UINT32_MAX);

	for (bool there = table_first(&c, t); there && good; there = table_next(&c)) {
		struct slice member = table_member(&c);
		good = table_model_order(member, slice_of(last, size)) > 0 && c.at == count++ &&
			table_nth(&other, t, c.at) && slice_equal(table_member(&other), member) &&
			table_seek(&other, t, member) && other.at == c.at &&
			other.removed == c.removed && changes_at_date(&c);
		size = member.n;
		memcpy(last, member.p, size);
		(void)table_seek(&other, t, slice_of(last, size - !!size));
	}
	good = good && count == t->count && !table_next(&c);
	at = table_seek(&c, t, from) ? c.at : t->count;
	good = good && (at == t->count || table_model_order(table_member(&c), from) >= 0);
	good = good &&
		(at == 0 ||
			(table_nth(&c, t, at - 1) &&
				table_model_order(table_member(&c), from) < 0));
	return good && !table_nth(&c, t, count) && !table_nth(&c, t, UINT32_MAX);
}

/* Ids are parts of keys. */
static bool is_id(const char id[OPLOG_ID])
{
	size_t i = 1;

	while (i < OPLOG_ID && ((id[i] >= 'a' && id[i] <= 'z') || (id[i] >= '0' && id[i] <= '9')))
		i++;
	return id[0] == 't' && i == OPLOG_ID;
}

bool table_model_walks_index(const struct fences *f, struct slice from)
{
	uint64_t entries = 0, removals = 0, bytes = 0, dated = 0;
	size_t at = fences_find(f, from);
	bool good = at < f->count && f->list[0].first.n == 0 &&
		table_model_order(f->list[at].first, from) <= 0 &&
		(at + 1 == f->count || table_model_order(f->list[at + 1].first, from) > 0);

	for (size_t i = 0; i < f->count && good; i++) {
		const struct fence *fence = &f->list[i];
		good = is_id(fence->id) &&
			(uint64_t)fence->removals + fence->dated <= fence->entries &&
			(fence->dated > 0) == (fence->mean_date > 0) &&
			fence->first_date <= fence->mean_date && fence->before == entries &&
			(i == 0 || table_model_order(fence[-1].first, fence->first) < 0) &&
			fences_find(f, fence->first) == i;
		entries += fence->entries;
		removals += fence->removals;
		bytes += fence->bytes;
		dated += fence->dated;
	}
	return good && f->entries == entries && f->removals == removals && f->bytes == bytes &&
		f->dated == dated;
}
