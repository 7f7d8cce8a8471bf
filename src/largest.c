#include "largest.h"

#include <stdlib.h>

void largest_init(struct largest *l)
{
	pthread_mutex_init(&l->lock, NULL);
	l->count = 0;
}

void largest_fini(struct largest *l)
{
	pthread_mutex_destroy(&l->lock);
}

static bool is_old(const struct large_collection *c, int64_t now)
{
	return now - c->seen > LARGEST_FORGET;
}

/* The entry of the key; else a free one, an old one, or the smallest. */
static struct large_collection *place_of(struct largest *l, struct slice key, int64_t now)
{
	struct large_collection *place = &l->list[0];

	for (size_t i = 0; i < l->count; i++) {
		struct large_collection *c = &l->list[i];
		if (slice_equal(slice_of(c->key, c->n), key))
			return c;
		if (is_old(c, now))
			c->bytes = 0;
		if (c->bytes < place->bytes)
			place = c;
	}
	if (l->count == LARGEST_ENTRIES)
		return place;
	place = &l->list[l->count++];
	*place = (struct large_collection){ 0 };
	return place;
}

void largest_note(struct largest *l, struct slice key, uint64_t members, uint64_t bytes, int64_t now)
{
	struct large_collection *c;

	if (key.n > LARGEST_KEY)
		return;
	pthread_mutex_lock(&l->lock);
	c = place_of(l, key, now);
	if (c->bytes < bytes || slice_equal(slice_of(c->key, c->n), key)) {
		*c = (struct large_collection){ bytes, members, now, (uint8_t)key.n, { 0 } };
		memcpy(c->key, key.p, key.n);
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
