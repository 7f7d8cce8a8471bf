#include "measure/notes.h"

#include "util/hash.h"
#include "util/word.h"

/* Seconds between two searches for old large collections. */
enum { SEARCH_AGAIN = 60 };

/*
 * Returns the number of halvings until this millisecond. It is the same in all workers, since
 * they use the same clock.
 */
static uint64_t halvings(uint64_t now)
{
	return now / (NOTES_HALF_LIFE * 1000);
}

/* --- creation, reset and destruction --- */

static void clear_notes(struct notes *s, uint64_t now)
{
	s->since = now;
	for (int by = 0; by < HOT_KINDS; by++) {
		topk_init(&s->hot[by]);
		s->hot[by].halved = halvings(now);
	}
	s->excess = 0;
	s->large_count = 0;
	s->slow_count = 0;
}

void notes_init(struct notes *s, uint64_t random, uint64_t now)
{
	*s = (struct notes){ .sample.random = random };
	(void)topk_sample_next(&s->sample);
	s->seed = random_next(&s->sample.random);
	pthread_mutex_init(&s->lock, NULL);
	clear_notes(s, now);
}

void notes_fini(struct notes *s)
{
	pthread_mutex_destroy(&s->lock);
}

void notes_reset(struct notes *s, uint64_t now)
{
	pthread_mutex_lock(&s->lock);
	clear_notes(s, now);
	pthread_mutex_unlock(&s->lock);
}

void notes_reset_slow(struct notes *s)
{
	pthread_mutex_lock(&s->lock);
	s->slow_count = 0;
	pthread_mutex_unlock(&s->lock);
}

/* --- hot keys --- */

static void decay(struct notes *s, uint64_t now)
{
	uint64_t halved = s->hot[HOT_BY_REQUESTS].halved, times = halvings(now) - halved;

	if (halved >= halvings(now))
		return;
	for (int by = 0; by < HOT_KINDS; by++)
		topk_halve(&s->hot[by], times);
	s->excess >>= times < 63 ? times : 63;
}

static void count_hot_key(struct notes *s, struct slice key, uint64_t bytes)
{
	uint64_t hash = hash_key(key, s->seed);

	topk_add(&s->hot[HOT_BY_REQUESTS], key, hash, 1);
	topk_add(&s->hot[HOT_BY_BYTES], key, hash, bytes);
}

void notes_sample_keys(
	struct notes *s, struct slice keys, uint64_t number, uint64_t bytes, uint64_t now)
{
	uint64_t passed = 0;

	pthread_mutex_lock(&s->lock);
	decay(s, now);
	while (!topk_sample_passes(&s->sample, number - passed)) {
		uint64_t chosen = passed + topk_sample_next(&s->sample);
		struct slice key = keys;
		/* The key of a meta command may contain spaces. */
		for (; number > 1 && passed <= chosen; passed++)
			key = slice_token(&keys);
		passed = chosen + 1;
		if (key.n) {
			count_hot_key(s, key, bytes / number);
			s->excess += REQUEST_UNIT - REQUEST_UNIT / number;
		}
	}
	pthread_mutex_unlock(&s->lock);
}

size_t notes_copy_hot(struct notes *s, enum hot_by by, uint64_t now,
	struct topk_key out[TOPK_ENTRIES], struct hot_total *total)
{
	uint64_t keys;
	size_t n;

	pthread_mutex_lock(&s->lock);
	decay(s, now);
	n = topk_entries(&s->hot[by], out);
	keys = s->hot[HOT_BY_REQUESTS].total * REQUEST_UNIT;
	total->weight += s->hot[by].total;
	total->requests += keys > s->excess ? keys - s->excess : 0;
	pthread_mutex_unlock(&s->lock);
	return n;
}

double notes_seconds(struct notes *s, uint64_t now)
{
	double seconds = 0, part = 1;
	uint64_t since;

	pthread_mutex_lock(&s->lock);
	since = s->since;
	pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < 64 && now > since; i++, part /= 2) {
		uint64_t start = halvings(now) * NOTES_HALF_LIFE * 1000;
		start = start > since ? start : since;
		seconds += part * (double)(now - start) / 1000;
		now = start ? start - 1 : 0;
	}
	return seconds;
}

/* --- large sets and lists --- */

static bool is_old(const struct large_collection *c, int64_t now)
{
	return now - c->seen > LARGE_FORGET;
}

/* Returns the last bytes of a key, where the keys of one application differ most. */
static uint64_t mark_of(struct slice key)
{
	size_t n = key.n < WORD_BYTES ? key.n : WORD_BYTES;

	return word_rank(key.p + key.n - n, n);
}

static struct large_collection *find_large(struct notes *s, struct slice key)
{
	uint64_t mark = mark_of(key);

	for (size_t i = 0; i < s->large_count; i++) {
		if (s->marks[i] == mark &&
			slice_equal(slice_of(s->large[i].top.key, s->large[i].top.n), key))
			return &s->large[i];
	}
	return NULL;
}

/* Returns the smallest entry; old entries count as empty. */
static struct large_collection *smallest(struct notes *s, int64_t now)
{
	struct large_collection *place = &s->large[0];

	for (size_t i = 0; i < s->large_count; i++) {
		struct large_collection *c = &s->large[i];
		if (is_old(c, now))
			c->top.weight = 0;
		if (c->top.weight < place->top.weight)
			place = c;
	}
	s->large_least = place->top.weight;
	s->searched = now;
	return place;
}

/* Returns an entry for a new key; NULL if all entries are larger. */
static struct large_collection *place_for(struct notes *s, uint64_t bytes, int64_t now)
{
	struct large_collection *place;

	if (s->large_count < LARGE_ENTRIES)
		return &s->large[s->large_count++];
	if (bytes <= s->large_least && now - s->searched < SEARCH_AGAIN)
		return NULL;
	place = smallest(s, now);
	return place->top.weight < bytes ? place : NULL;
}

void notes_add_large(
	struct notes *s, struct slice key, uint64_t members, uint64_t bytes, int64_t now)
{
	struct large_collection *c;

	if (key.n > TOPK_KEY)
		return;
	pthread_mutex_lock(&s->lock);
	c = find_large(s, key);
	if (!c && (c = place_for(s, bytes, now))) {
		c->top.n = (uint8_t)key.n;
		memcpy(c->top.key, key.p, key.n);
		s->marks[c - s->large] = mark_of(key);
	}
	if (c) {
		c->top.weight = bytes;
		c->members = members;
		c->seen = now;
		if (bytes < s->large_least)
			s->large_least = bytes;
	}
	pthread_mutex_unlock(&s->lock);
}

size_t notes_copy_large(struct notes *s, int64_t now, struct large_collection out[LARGE_ENTRIES])
{
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->large_count; i++) {
		if (!is_old(&s->large[i], now))
			out[n++] = s->large[i];
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

void notes_join_large(void *into, const void *from)
{
	const struct large_collection *a = into, *b = from;

	if (b->seen > a->seen)
		memcpy(into, from, sizeof(*a));
}

/* --- slow requests --- */

void notes_add_slow(struct notes *s, const struct slow_request *request)
{
	pthread_mutex_lock(&s->lock);
	s->slow[s->slow_count++ % SLOW_REQUESTS] = *request;
	pthread_mutex_unlock(&s->lock);
}

size_t notes_copy_slow(struct notes *s, struct slow_request out[SLOW_REQUESTS], uint64_t *count)
{
	size_t n;

	pthread_mutex_lock(&s->lock);
	n = s->slow_count < SLOW_REQUESTS ? (size_t)s->slow_count : SLOW_REQUESTS;
	memcpy(out, s->slow, n * sizeof(*out));
	*count += s->slow_count;
	pthread_mutex_unlock(&s->lock);
	return n;
}
