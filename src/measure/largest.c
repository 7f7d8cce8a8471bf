#include "measure/largest.h"

#include <stdlib.h>

#include "util/word.h"

/* Seconds after which entries that have become old are looked for. */
enum { SEARCH_AGAIN = 60 };

void largest_init(struct largest *l)
{
	pthread_mutex_init(&l->lock, NULL);
	l->count = 0;
	l->least = 0;
	l->searched = 0;
}

void largest_fini(struct largest *l)
{
	pthread_mutex_destroy(&l->lock);
}

static bool is_old(const struct large_collection *c, int64_t now)
{
	return now - c->seen > LARGEST_FORGET;
}

/* The end of a key, where the keys of one application differ most. */
static uint64_t mark_of(struct slice key)
{
	size_t n = key.n < WORD_BYTES ? key.n : WORD_BYTES;

	return word_rank(key.p + key.n - n, n);
}

static struct large_collection *find(struct largest *l, struct slice key)
{
	uint64_t mark = mark_of(key);

	for (size_t i = 0; i < l->count; i++) {
		if (l->marks[i] == mark && slice_equal(slice_of(l->list[i].key, l->list[i].n), key))
			return &l->list[i];
	}
	return NULL;
}

/* The smallest entry; old ones count as empty. */
static struct large_collection *smallest(struct largest *l, int64_t now)
{
	struct large_collection *place = &l->list[0];

	for (size_t i = 0; i < l->count; i++) {
		struct large_collection *c = &l->list[i];
		if (is_old(c, now))
			c->bytes = 0;
		if (c->bytes < place->bytes)
			place = c;
	}
	l->least = place->bytes;
	l->searched = now;
	return place;
}

/* An entry for a new key; NULL if all entries are larger. */
static struct large_collection *place_for(struct largest *l, uint64_t bytes, int64_t now)
{
	struct large_collection *place;

	if (l->count < LARGEST_ENTRIES)
		return &l->list[l->count++];
	if (bytes <= l->least && now - l->searched < SEARCH_AGAIN)
		return NULL;
	place = smallest(l, now);
	return place->bytes < bytes ? place : NULL;
}

void largest_note(struct largest *l, struct slice key, uint64_t members, uint64_t bytes, int64_t now)
{
	struct large_collection *c;

	if (key.n > LARGEST_KEY)
		return;
	pthread_mutex_lock(&l->lock);
	c = find(l, key);
	if (!c && (c = place_for(l, bytes, now))) {
		c->n = (uint8_t)key.n;
		memcpy(c->key, key.p, key.n);
		l->marks[c - l->list] = mark_of(key);
	}
	if (c) {
		c->bytes = bytes;
		c->members = members;
		c->seen = now;
		if (bytes < l->least)
			l->least = bytes;
	}
	pthread_mutex_unlock(&l->lock);
}

void largest_reset(struct largest *l)
{
	pthread_mutex_lock(&l->lock);
	l->count = 0;
	pthread_mutex_unlock(&l->lock);
}

size_t largest_copy(struct largest *l, int64_t now, struct large_collection out[LARGEST_ENTRIES])
{
	size_t n = 0;

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->count; i++) {
		if (!is_old(&l->list[i], now))
			out[n++] = l->list[i];
	}
	pthread_mutex_unlock(&l->lock);
	return n;
}

static int compare_keys(const struct large_collection *a, const struct large_collection *b)
{
	int order = memcmp(a->key, b->key, a->n < b->n ? a->n : b->n);

	return order ? order : a->n - b->n;
}

static int by_key_and_time(const void *left, const void *right)
{
	const struct large_collection *a = left, *b = right;
	int order = compare_keys(a, b);

	return order ? order : (a->seen < b->seen) - (a->seen > b->seen);
}

static int by_size(const void *left, const void *right)
{
	const struct large_collection *a = left, *b = right;

	return a->bytes == b->bytes ? compare_keys(a, b) : a->bytes < b->bytes ? 1 : -1;
}

size_t largest_merge(struct large_collection *list, size_t count)
{
	size_t n = 0;

	qsort(list, count, sizeof(*list), by_key_and_time);
	for (size_t i = 0; i < count; i++) {
		if (n == 0 || compare_keys(&list[n - 1], &list[i]) != 0)
			list[n++] = list[i];
	}
	qsort(list, n, sizeof(*list), by_size);
	return n;
}
