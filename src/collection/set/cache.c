#include "collection/set/cache.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"
#include "util/hash.h"

enum { BUCKETS = 4096 };

struct cache {
	size_t budget, memory; /* memory: bytes of views without their parts */
	uint64_t seed;
	struct set_store store;
	TAILQ_HEAD(cache_list, cache_entry) used; /* most recently used first */
	struct cache_entry *buckets[BUCKETS];
};

struct cache *cache_create(size_t budget, uint64_t seed)
{
	struct cache *cache = xcalloc(1, sizeof(*cache));

	cache->budget = budget;
	cache->seed = seed;
	TAILQ_INIT(&cache->used);
	TAILQ_INIT(&cache->store.used);
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

uint64_t cache_hash(const struct cache *cache, struct slice key)
{
	return hash_key(key, cache->seed);
}

struct cache_entry *cache_find(struct cache *cache, struct slice key, uint64_t hash)
{
	struct cache_entry *entry = cache->buckets[hash % BUCKETS];

	while (entry &&
		(entry->hash != hash || entry->key_size != key.n ||
			word_compare(entry->key, key.p, key.n) != 0))
		entry = entry->next;
	return entry;
}

void cache_drop(struct cache *cache, struct cache_entry *entry)
{
	struct cache_entry **at = &cache->buckets[entry->hash % BUCKETS];

	assert(entry->view.pins == 0);
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	TAILQ_REMOVE(&cache->used, entry, link);
	cache->memory -= entry->memory;
	set_view_free(&entry->view);
	free(entry);
}

static struct cache_entry *create_entry(struct cache *cache, struct slice key, uint64_t hash)
{
	struct cache_entry *entry = xcalloc(1, sizeof(*entry) + key.n);

	memcpy(entry->key, key.p, key.n);
	entry->key_size = key.n;
	entry->hash = hash;
	entry->next = cache->buckets[hash % BUCKETS];
	cache->buckets[hash % BUCKETS] = entry;
	set_view_init(&entry->view, cache->seed, &cache->store);
	set_view_take_long(&entry->view);
	entry->moved = ++cache->store.clock;
	TAILQ_INSERT_HEAD(&cache->used, entry, link);
	return entry;
}

static void use_entry(struct cache *cache, struct cache_entry *entry)
{
	entry->when = ++cache->store.clock;
	/* Moving an entry accesses its neighbours in the list. */
	if (entry->when - entry->moved < SET_CLOSELY)
		return;
	entry->moved = entry->when;
	TAILQ_REMOVE(&cache->used, entry, link);
	TAILQ_INSERT_HEAD(&cache->used, entry, link);
}

struct cache_entry *cache_open(struct cache *cache, struct slice key, uint64_t hash)
{
	struct cache_entry *entry = cache_find(cache, key, hash);

	if (!entry)
		entry = create_entry(cache, key, hash);
	use_entry(cache, entry);
	entry->view.pins++;
	return entry;
}

/* Returns the least recently used entry that is not pinned. */
static struct cache_entry *oldest_entry(const struct cache *cache)
{
	struct cache_entry *entry = TAILQ_LAST(&cache->used, cache_list);

	while (entry && entry->view.pins)
		entry = TAILQ_PREV(entry, cache_list, link);
	return entry;
}

static struct set_part *oldest_part(const struct cache *cache)
{
	struct set_part *part = TAILQ_LAST(&cache->store.used, set_parts);

	while (part && part->view->pins)
		part = TAILQ_PREV(part, set_parts, link);
	return part;
}

static void shrink(struct cache *cache)
{
	while (cache_memory(cache) > cache->budget) {
		struct cache_entry *entry = oldest_entry(cache);
		struct set_part *part = oldest_part(cache);

		if (part && (!entry || part->when < entry->when))
			set_part_drop(part);
		else if (entry)
			cache_drop(cache, entry);
		else
			return;
	}
}

void cache_close(struct cache *cache, struct cache_entry *entry)
{
	if (entry->view.resized) {
		cache->memory -= entry->memory;
		entry->memory = sizeof(*entry) + entry->key_size + set_view_memory(&entry->view);
		cache->memory += entry->memory;
		entry->view.resized = false;
	}
	/* The parts were used before the view, so they are evicted first, one by one. */
	if (entry->view.run_count)
		use_entry(cache, entry);
	entry->view.pins--;
	if (cache_memory(cache) > cache->budget)
		shrink(cache);
}

void cache_keep(
	struct cache *cache, struct slice key, struct slice id, bool table, struct slice data)
{
	struct cache_entry *entry = cache_find(cache, key, cache_hash(cache, key));

	if (!entry)
		return;
	set_view_keep(&entry->view, id, table, data);
	shrink(cache);
}

size_t cache_memory(const struct cache *cache)
{
	return cache->memory + cache->store.memory;
}
