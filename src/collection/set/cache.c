#include "collection/set/cache.h"

#include <stdlib.h>

#include "util/alloc.h"
#include "util/hash.h"

enum { BUCKETS = 4096 };

struct cache {
	size_t budget, memory;
	uint64_t seed;
	TAILQ_HEAD(cache_list, cache_entry) used; /* the last used first */
	struct cache_entry *buckets[BUCKETS];
};

void set_view_free(struct set_view *view)
{
	roster_free(&view->roster);
	buf_free(&view->refs);
}

struct cache *cache_create(size_t budget, uint64_t seed)
{
	struct cache *cache = xcalloc(1, sizeof(*cache));

	cache->budget = budget;
	cache->seed = seed;
	TAILQ_INIT(&cache->used);
	return cache;
}

void cache_destroy(struct cache *cache)
{
	struct cache_entry *entry;

	if (!cache)
		return;
	while ((entry = TAILQ_FIRST(&cache->used)))
		cache_drop(cache, entry);
	free(cache);
}

struct cache_entry *cache_find(struct cache *cache, struct slice key)
{
	uint64_t hash = hash_slice(key, cache->seed);
	struct cache_entry *entry = cache->buckets[hash % BUCKETS];

	while (entry && (entry->hash != hash || !slice_equal(slice_of(entry->key, entry->key_size), key)))
		entry = entry->next;
	if (entry && entry != TAILQ_FIRST(&cache->used)) {
		TAILQ_REMOVE(&cache->used, entry, link);
		TAILQ_INSERT_HEAD(&cache->used, entry, link);
	}
	return entry;
}

void cache_drop(struct cache *cache, struct cache_entry *entry)
{
	struct cache_entry **at = &cache->buckets[entry->hash % BUCKETS];

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	TAILQ_REMOVE(&cache->used, entry, link);
	cache->memory -= entry->memory;
	set_view_free(&entry->view);
	free(entry);
}

/* Makes room by what was used longest ago; `keep` stays. */
static void shrink(struct cache *cache, const struct cache_entry *keep)
{
	struct cache_entry *last;

	while (cache->memory > cache->budget && (last = TAILQ_LAST(&cache->used, cache_list)) != keep)
		cache_drop(cache, last);
}

void cache_grown(struct cache *cache, struct cache_entry *entry)
{
	cache->memory -= entry->memory;
	entry->memory = sizeof(*entry) + entry->key_size + roster_memory(&entry->view.roster) + entry->view.refs.cap;
	cache->memory += entry->memory;
	shrink(cache, entry);
}

struct cache_entry *cache_store(struct cache *cache, struct slice key, struct set_view *view)
{
	struct cache_entry *entry = cache_find(cache, key);

	if (roster_memory(&view->roster) > cache->budget / 2)
		return NULL;
	if (!entry) {
		entry = xcalloc(1, sizeof(*entry) + key.n);
		memcpy(entry->key, key.p, key.n);
		entry->key_size = key.n;
		entry->hash = hash_slice(key, cache->seed);
		entry->next = cache->buckets[entry->hash % BUCKETS];
		cache->buckets[entry->hash % BUCKETS] = entry;
		TAILQ_INSERT_HEAD(&cache->used, entry, link);
	}
	set_view_free(&entry->view);
	entry->view = *view;
	*view = (struct set_view){ 0 };
	cache_grown(cache, entry);
	return entry;
}

size_t cache_memory(const struct cache *cache)
{
	return cache->memory;
}
