/*
 * Where units were found: on their new servers. They are remembered by their hashes, without probing: what is forgotten is looked for
 * again. Times are env.now.
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
	uint64_t until; /* then somebody may have put it on its former server again */
	uint64_t late;  /* the claim of a mover may come before that; 0: none comes any more */
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

/* Whether a claim may still come. */
static inline bool found_is_late(struct founds *all, uint64_t hash)
{
	const struct found *f = found_find(all, hash);

	return !f || f->late;
}

/* The unit was found, or was `moved` right now. */
static inline void found_note(struct founds *all, uint64_t hash, bool moved, uint64_t until, uint64_t late)
{
	struct found *f = &all->list[hash % FOUND];

	*f = (struct found){ hash, until, f->hash != hash || moved ? late : f->late };
}

/* The new server has shown that it has no mark, by a read that was sent at that time. */
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
