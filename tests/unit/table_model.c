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

size_t table_model_random_name(uint64_t *random, unsigned world, char name[MEMBER_MAX])
{
	static const char *const letters[TABLE_MODEL_WORLDS] = { "ab", "0123456789", "a~\x80\xc3\xff!", "xyz" };
	static const size_t most[TABLE_MODEL_WORLDS] = { 12, 8, 4, 0 };
	bool is_long = most[world] == 0;
	size_t kinds = strlen(letters[world]),
	       size = is_long ? MEMBER_MAX - random_next(random) % 4 : 1 + random_next(random) % most[world];

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
	char name[MEMBER_MAX];

	m->count = 0;
	while (m->count < wanted) {
		size_t size = table_model_random_name(random, world, name);
		table_model_add(m, slice_of(name, size), random_next(random) % 4 == 0);
	}
	table_model_sort(m);
}
