/*
 * A cache of units that are known to be on their new servers, indexed by hash, without probing.
 * A lost entry costs one more lookup. Times are env.now.
 */
#ifndef COLLECTION_MOVE_FOUND_H
#define COLLECTION_MOVE_FOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MOVES_LOOK_MS: how long a unit counts as found before its former server is asked once more. */
enum { FOUND = 16384, MOVES_LOOK_MS = 1000 };

struct found {
	uint64_t hash;
	/* After this time, another proxy may have written it to its former server again. */
	uint64_t until;
	uint64_t late; /* until this time, the claim of a mover may still arrive; 0: no longer */
};

/* All zeroes is empty. */
struct founds {
	struct found list[FOUND];
};

static inline struct found *found_find(struct founds *all, uint64_t hash)
{
	struct found *f = &all->list[hash % FOUND];

	return f->hash == hash ? f : NULL;
}

/* Returns whether a claim may still arrive. */
static inline bool found_is_late(struct founds *all, uint64_t hash)
{
	const struct found *f = found_find(all, hash);

	return !f || f->late;
}

/* Adds a unit that was found on its new server, or `moved` there just now. */
static inline void found_note(
	struct founds *all, uint64_t hash, bool moved, uint64_t until, uint64_t late)
{
	struct found *f = &all->list[hash % FOUND];

	*f = (struct found){ hash, until, f->hash != hash || moved ? late : f->late };
}

/* Called when a read that was sent at the time `sent` has found no mark on the new server. */
static inline void found_unmarked(struct founds *all, uint64_t hash, uint64_t sent)
{
	struct found *f = found_find(all, hash);

	if (f && sent >= f->late)
		f->late = 0;
}

static inline void found_forget(struct founds *all, uint64_t hash)
{
	all->list[hash % FOUND].hash = 0;
}

#endif
