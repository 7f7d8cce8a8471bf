#include "collection/list/segment_cache.h"

#include <stdlib.h>

#include "util/alloc.h"
#include "util/hash.h"

enum { PLACES = 64 };

struct segment_cache {
	struct segment_cache_place {
		struct log_index *log_index;
		struct buf key;
		uint64_t hash, put, used;
	} places[PLACES];
	uint64_t uses;
	size_t memory;
};

struct segment_cache *segment_cache_create(void)
{
	return xcalloc(1, sizeof(struct segment_cache));
}

static void clear_place(struct segment_cache *cache, struct segment_cache_place *place)
{
	if (!place->log_index)
		return;
	cache->memory -= log_index_memory(place->log_index);
	log_index_release(place->log_index);
	buf_free(&place->key);
	*place = (struct segment_cache_place){ 0 };
}

void segment_cache_destroy(struct segment_cache *cache)
{
	for (size_t i = 0; cache && i < PLACES; i++)
		clear_place(cache, &cache->places[i]);
	free(cache);
}

size_t segment_cache_memory(const struct segment_cache *cache)
{
	return cache->memory;
}

static struct segment_cache_place *find_place_of(struct segment_cache *cache, struct slice key)
{
	uint64_t hash = hash_key(key, 0);

	for (size_t i = 0; i < PLACES; i++) {
		struct segment_cache_place *place = &cache->places[i];
		if (place->log_index && place->hash == hash &&
			slice_equal(buf_slice(&place->key), key))
			return place;
	}
	return NULL;
}

struct log_index *segment_cache_find(struct segment_cache *cache, struct slice key, uint64_t now)
{
	struct segment_cache_place *place = find_place_of(cache, key);

	if (!place)
		return NULL;
	if (now - place->put >= SEGMENT_CACHE_FRESH) {
		clear_place(cache, place);
		return NULL;
	}
	place->used = ++cache->uses;
	return place->log_index;
}

/*
 * Returns an empty place, otherwise the least recently used one. With `in_use`, empty
 * places are skipped.
 */
static struct segment_cache_place *oldest(struct segment_cache *cache, bool in_use)
{
	struct segment_cache_place *found = NULL;

	for (size_t i = 0; i < PLACES; i++) {
		struct segment_cache_place *place = &cache->places[i];
		if (in_use && !place->log_index)
			continue;
		if (!found || place->used < found->used)
			found = place;
	}
	return found;
}

void segment_cache_put(struct segment_cache *cache, struct slice key, struct log_index *log_index,
	uint64_t now, size_t budget)
{
	struct segment_cache_place *place = find_place_of(cache, key);

	if (log_index_memory(log_index) > budget)
		return;
	if (!place)
		place = oldest(cache, false);
	clear_place(cache, place);
	*place = (struct segment_cache_place){
		.hash = hash_key(key, 0), .put = now, .used = ++cache->uses
	};
	place->log_index = log_index_share(log_index);
	buf_add_slice(&place->key, key);
	cache->memory += log_index_memory(log_index);
	while (cache->memory > budget)
		clear_place(cache, oldest(cache, true));
}
