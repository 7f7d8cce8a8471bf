/*
 * The segments of lists that were read last. A segment never changes, so what is here is right for as long as a base refers to
 * it; it is thrown away after some seconds all the same, so that the server is asked for it, keeps it, and is noticed when it
 * has not.
 */
#ifndef COLLECTION_LIST_SEGMENT_CACHE_H
#define COLLECTION_LIST_SEGMENT_CACHE_H

#include "collection/text/log_index.h"

enum { SEGMENT_CACHE_FRESH = 10 * 1000 /* milliseconds */ };

struct segment_cache;

struct segment_cache *segment_cache_create(void);
/* NULL is fine. */
void segment_cache_destroy(struct segment_cache *cache);

size_t segment_cache_memory(const struct segment_cache *cache);

/* The segment under this item key, borrowed until the cache is used again, or NULL. */
struct log_index *segment_cache_find(struct segment_cache *cache, struct slice key, uint64_t now);

/* Keeps a segment, and throws out what was used longest ago while all are over `budget` bytes. */
void segment_cache_put(
	struct segment_cache *cache, struct slice key, struct log_index *log_index, uint64_t now, size_t budget);

#endif
