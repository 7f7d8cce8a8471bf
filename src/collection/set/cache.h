/*
 * The fold cache: the members of sets that were read lately, within a budget of memory. What is in it is served only after the
 * server has said that the item still has the cas id it had, on the same connection, so a cached read is as fresh as any.
 */
#ifndef COLLECTION_CACHE_H
#define COLLECTION_CACHE_H

#include <sys/queue.h>

#include "collection/roster.h"

/* What was read of a set. */
struct set_view {
	struct roster roster;
	uint64_t cas, connection;
	size_t base_bytes, segment_bytes, tokens, segments;
	double waste;    /* the part of the base that it could do without */
	struct buf refs; /* of the base, to its segments */
};

/* Frees what is in a view. */
void set_view_free(struct set_view *view);

struct cache_entry {
	TAILQ_ENTRY(cache_entry) link; /* in the order of their use */
	struct cache_entry *next;      /* in its bucket */
	uint64_t hash;
	struct set_view view;
	size_t memory;
	bool restless; /* it had changed when it was last asked about: fetch at once next time */
	size_t key_size;
	char key[];
};

struct cache;

/* `budget` in bytes; 0 keeps nothing. */
struct cache *cache_create(size_t budget, uint64_t seed);
void cache_destroy(struct cache *cache);

/* The entry of a key, now the last used, or NULL. Borrowed until the cache is changed. */
struct cache_entry *cache_find(struct cache *cache, struct slice key);

/*
 * Takes over what is in `view` and gives the entry; the view is left empty. NULL, and the view as it was, when it is too
 * large for the budget.
 */
struct cache_entry *cache_store(struct cache *cache, struct slice key, struct set_view *view);

void cache_drop(struct cache *cache, struct cache_entry *entry);

/* Says that an entry's index was made: its memory is counted again. */
void cache_grown(struct cache *cache, struct cache_entry *entry);

size_t cache_memory(const struct cache *cache);

#endif
