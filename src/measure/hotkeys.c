#include "measure/hotkeys.h"

#include "util/hash.h"

/* The number of halvings until this millisecond. All workers have the same, as they have one clock. */
static uint64_t halvings(uint64_t now)
{
	return now / (HOTKEYS_HALF_LIFE * 1000);
}

static void clear(struct hotkeys *h, uint64_t now)
{
	h->since = now;
	for (int by = 0; by < HOTKEYS_KINDS; by++) {
		topk_init(&h->top[by]);
		h->top[by].halved = halvings(now);
	}
}

static void decay(struct hotkeys *h, uint64_t now)
{
	for (int by = 0; by < HOTKEYS_KINDS; by++) {
		if (h->top[by].halved < halvings(now))
			topk_halve(&h->top[by], halvings(now) - h->top[by].halved);
	}
}

void hotkeys_init(struct hotkeys *h, uint64_t random, uint64_t now)
{
	h->sample = (struct topk_sample){ .random = random };
	(void)topk_sample_next(&h->sample);
	h->seed = random_next(&h->sample.random);
	pthread_mutex_init(&h->lock, NULL);
	clear(h, now);
}

void hotkeys_fini(struct hotkeys *h)
{
	pthread_mutex_destroy(&h->lock);
}

void hotkeys_reset(struct hotkeys *h, uint64_t now)
{
	pthread_mutex_lock(&h->lock);
	clear(h, now);
	pthread_mutex_unlock(&h->lock);
}

static void count(struct hotkeys *h, struct slice key, uint64_t bytes)
{
	uint64_t hash = hash_key(key, h->seed);

	topk_add(&h->top[HOTKEYS_REQUESTS], key, hash, 1);
	topk_add(&h->top[HOTKEYS_BYTES], key, hash, bytes);
}

void hotkeys_sample(struct hotkeys *h, struct slice keys, uint64_t number, uint64_t bytes, uint64_t now)
{
	uint64_t passed = 0;

	pthread_mutex_lock(&h->lock);
	decay(h, now);
	while (!hotkeys_pass(h, number - passed)) {
		uint64_t chosen = passed + topk_sample_next(&h->sample);
		struct slice key = keys;
		/* The key of a meta command may have spaces. */
		for (; number > 1 && passed <= chosen; passed++)
			key = slice_token(&keys);
		passed = chosen + 1;
		if (key.n)
			count(h, key, bytes / number);
	}
	pthread_mutex_unlock(&h->lock);
}

size_t hotkeys_copy(
	struct hotkeys *h, enum hotkeys_by by, uint64_t now, struct topk_entry out[TOPK_ENTRIES], uint64_t *total)
{
	size_t n;

	pthread_mutex_lock(&h->lock);
	decay(h, now);
	n = topk_entries(&h->top[by], out);
	*total += h->top[by].total;
	pthread_mutex_unlock(&h->lock);
	return n;
}

double hotkeys_seconds(struct hotkeys *h, uint64_t now)
{
	double seconds = 0, part = 1;
	uint64_t since;

	pthread_mutex_lock(&h->lock);
	since = h->since;
	pthread_mutex_unlock(&h->lock);
	for (int i = 0; i < 64 && now > since; i++, part /= 2) {
		uint64_t start = halvings(now) * HOTKEYS_HALF_LIFE * 1000;
		start = start > since ? start : since;
		seconds += part * (double)(now - start) / 1000;
		now = start ? start - 1 : 0;
	}
	return seconds;
}
