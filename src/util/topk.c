#include "util/topk.h"

#include <stdlib.h>
#include <string.h>

void topk_init(struct topk *t)
{
	memset(t, 0, offsetof(struct topk, entries));
}

static uint8_t *chain_of(struct topk *t, uint64_t hash)
{
	return &t->first[hash % TOPK_ENTRIES];
}

static struct slice entry_key(const struct topk_key *e)
{
	return slice_of(e->key, e->n);
}

/* Returns the number of the entry plus 1; 0 if there is none. */
static unsigned find_key(struct topk *t, struct slice key, uint64_t hash)
{
	unsigned at = *chain_of(t, hash);

	while (at &&
		(t->hashes[at - 1] != hash || !slice_equal(entry_key(&t->entries[at - 1]), key)))
		at = t->next[at - 1];
	return at;
}

static void leave_chain(struct topk *t, size_t i)
{
	uint8_t *at = chain_of(t, t->hashes[i]);

	while (*at != i + 1)
		at = &t->next[*at - 1];
	*at = t->next[i];
}

/*
 * Returns a place for a new key: a free one, or that of the entry with the least weight, which
 * the key inherits.
 */
static size_t make_place(struct topk *t)
{
	size_t i = 0;

	if (t->size < TOPK_ENTRIES) {
		t->weights[t->size] = 0;
		return t->size++;
	}
	for (size_t other = 1; other < TOPK_ENTRIES; other++)
		i = t->weights[other] < t->weights[i] ? other : i;
	leave_chain(t, i);
	return i;
}

void topk_add(struct topk *t, struct slice key, uint64_t hash, uint64_t weight)
{
	unsigned at;
	size_t i;

	key.n = key.n < TOPK_KEY ? key.n : TOPK_KEY;
	at = find_key(t, key, hash);
	i = at ? at - 1 : make_place(t);
	if (!at) {
		t->entries[i].n = (uint8_t)key.n;
		memcpy(t->entries[i].key, key.p, key.n);
		t->hashes[i] = hash;
		t->next[i] = *chain_of(t, hash);
		*chain_of(t, hash) = (uint8_t)(i + 1);
	}
	t->weights[i] += weight;
	t->total += weight;
}

void topk_halve(struct topk *t, uint64_t times)
{
	unsigned bits = times < 63 ? (unsigned)times : 63;

	for (size_t i = 0; i < t->size; i++)
		t->weights[i] >>= bits;
	t->total >>= bits;
	t->halved += times;
}

size_t topk_entries(const struct topk *t, struct topk_key out[TOPK_ENTRIES])
{
	size_t n = 0;

	for (size_t i = 0; i < t->size; i++) {
		if (t->weights[i] == 0)
			continue;
		out[n] = t->entries[i];
		out[n++].weight = t->weights[i];
	}
	return n;
}

/* --- merging --- */

static int topk_by_key(const void *left, const void *right)
{
	const struct topk_key *a = left, *b = right;
	int order = memcmp(a->key, b->key, a->n < b->n ? a->n : b->n);

	return order ? order : (a->n > b->n) - (a->n < b->n);
}

static int topk_by_weight(const void *left, const void *right)
{
	const struct topk_key *a = left, *b = right;

	return a->weight == b->weight ? topk_by_key(a, b) : a->weight < b->weight ? 1 : -1;
}

void topk_join(void *into, const void *from)
{
	((struct topk_key *)into)->weight += ((const struct topk_key *)from)->weight;
}

size_t topk_merge(void *list, size_t count, size_t size, void (*join)(void *into, const void *from))
{
	char *last = list, *entry = list;

	if (count == 0)
		return 0;
	qsort(list, count, size, topk_by_key);
	for (size_t i = 1; i < count; i++) {
		entry += size;
		if (topk_by_key(last, entry) == 0)
			join(last, entry);
		else
			memmove(last += size, entry, size);
	}
	count = (size_t)(last - (char *)list) / size + 1;
	qsort(list, count, size, topk_by_weight);
	return count;
}
