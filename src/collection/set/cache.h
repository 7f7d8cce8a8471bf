/*
 * The views of sets that were used lately, within a budget of memory, which their items share. What is thrown out first is what
 * was used longest ago, be it a view with all its items or a single item.
 */
#ifndef COLLECTION_SET_CACHE_H
#define COLLECTION_SET_CACHE_H

#include <sys/queue.h>

#include "collection/set/view.h"

struct cache_entry {
	TAILQ_ENTRY(cache_entry) link; /* in the order of their use */
	struct cache_entry *next;      /* in its bucket */
	uint64_t hash, when;
	struct set_view view;
	size_t memory;
	bool churning;    /* it had changed when it was last asked about: fetch it at once next time */
	uint64_t present; /* when all its items were last seen to be there, in milliseconds; 0 for not yet */
	bool asking;      /* whether they are there */
	bool suspect;     /* one of them was not */
	size_t key_size;
	char key[];
};

struct cache;

/* `budget` in bytes; 0 keeps nothing. */
struct cache *cache_create(size_t budget, uint64_t seed);
void cache_destroy(struct cache *cache);

/* The entry of a key, or NULL. Borrowed until anything else is done with the cache. */
struct cache_entry *cache_find(struct cache *cache, struct slice key);

/* The entry of a key, made when there is none. It stays until it is closed, as often as it was opened. */
struct cache_entry *cache_open(struct cache *cache, struct slice key);
void cache_close(struct cache *cache, struct cache_entry *entry);

/* Throws an entry out that nobody has open. */
void cache_drop(struct cache *cache, struct cache_entry *entry);

size_t cache_memory(const struct cache *cache);

#endif
