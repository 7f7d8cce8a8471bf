/*
 * A cache of recently read list segments. A segment never changes, so a cached one stays valid
 * while a base refers to it. It still expires after some seconds: reading it again protects it
 * from eviction on the server, and detects an eviction.
 */
#ifndef COLLECTION_LIST_SEGMENT_CACHE_H
#define COLLECTION_LIST_SEGMENT_CACHE_H

#include "collection/text/log_index.h"

enum { SEGMENT_CACHE_FRESH = 10 * 1000 /* milliseconds */ };

struct segment_cache;

struct segment_cache *segment_cache_create(void);
/* NULL does nothing. */
void segment_cache_destroy(struct segment_cache *cache);

size_t segment_cache_memory(const struct segment_cache *cache);

/*
 * Returns the cached segment of this part key, or NULL. Borrowed until the next call
 * on the cache.
 */
struct log_index *segment_cache_find(struct segment_cache *cache, struct slice key, uint64_t now);

/*
 * Caches a segment, and drops the least recently used ones while the cache exceeds
 * `budget` bytes.
 */
void segment_cache_put(struct segment_cache *cache, struct slice key, struct log_index *log_index,
	uint64_t now, size_t budget);

#endif
