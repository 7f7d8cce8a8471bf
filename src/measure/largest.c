#include "measure/largest.h"

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
		if (l->marks[i] == mark && slice_equal(slice_of(l->list[i].top.key, l->list[i].top.n), key))
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
			c->top.weight = 0;
		if (c->top.weight < place->top.weight)
			place = c;
	}
	l->least = place->top.weight;
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
	return place->top.weight < bytes ? place : NULL;
}

void largest_note(struct largest *l, struct slice key, uint64_t members, uint64_t bytes, int64_t now)
{
	struct large_collection *c;

	if (key.n > TOPK_KEY)
		return;
	pthread_mutex_lock(&l->lock);
	c = find(l, key);
	if (!c && (c = place_for(l, bytes, now))) {
		c->top.n = (uint8_t)key.n;
		memcpy(c->top.key, key.p, key.n);
		l->marks[c - l->list] = mark_of(key);
	}
	if (c) {
		c->top.weight = bytes;
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

/* The entry that was seen last counts. */
void largest_join(void *into, const void *from)
{
	const struct large_collection *a = into, *b = from;

	if (b->seen > a->seen)
		memcpy(into, from, sizeof(*a));
}
