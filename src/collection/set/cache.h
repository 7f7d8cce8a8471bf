/*
 * An LRU cache of set views. Views and their parts share one memory budget. The least recently
 * used of both is evicted first: a view with all its parts, or a single part.
 */
#ifndef COLLECTION_SET_CACHE_H
#define COLLECTION_SET_CACHE_H

#include <sys/queue.h>

#include "collection/set/view.h"

struct cache_entry {
	TAILQ_ENTRY(cache_entry) link; /* in order of use */
	struct cache_entry *next;      /* in the same bucket */
	uint64_t hash;
	/* The store's clock at the last use, and at the last move to the front. */
	uint64_t when, moved;
	size_t memory;
	/*
	 * Reads that must still find the base unchanged before a read first compares
	 * only its CAS token.
	 */
	unsigned churning;
	/* env.now when all parts were last found on the server; 0 before the first check. */
	uint64_t present;
	uint64_t connects; /* env.connects at the last read */
	bool asking;       /* such a check is in flight */
	/* A part may be missing on the server; the next read checks all parts. */
	bool suspect;
	size_t key_size;
	struct set_view view;
	char key[];
};

struct cache;

/* `budget` is in bytes; 0 caches nothing. `seed` is that of the hash tables. */
struct cache *cache_create(size_t budget, uint64_t seed);
void cache_destroy(struct cache *cache);

/*
 * Returns the entry of a key, or NULL. Borrowed until the next call of a function of this
 * header. `hash` is hash_key of the key with the seed of the cache; a lane has it.
 */
struct cache_entry *cache_find(struct cache *cache, struct slice key, uint64_t hash);

/*
 * Returns the entry of a key, creates it if necessary, and pins it until a cache_close
 * for each cache_open.
 */
struct cache_entry *cache_open(struct cache *cache, struct slice key, uint64_t hash);

uint64_t cache_hash(const struct cache *cache, struct slice key);
void cache_close(struct cache *cache, struct cache_entry *entry);

/*
 * Keeps a copy of a part of a set that was just written, if the set has an entry: see
 * set_view_keep. Evicts the least recently used views and parts to make room. So a set that is
 * only written loses its entry eventually.
 */
void cache_keep(
	struct cache *cache, struct slice key, struct slice id, bool table, struct slice data);

/* Drops an entry that is not pinned. */
void cache_drop(struct cache *cache, struct cache_entry *entry);

size_t cache_memory(const struct cache *cache);

#endif
