/* A log whose tokens were found and checked once: what it takes to have its n-th at once. Shared by counted users. */
#ifndef COLLECTION_PACK_H
#define COLLECTION_PACK_H

#include <stdint.h>

#include "util/buf.h"

struct pack {
	unsigned users;
	size_t count;      /* tokens */
	size_t removals;   /* those of them that remove */
	uint32_t *offsets; /* of each token's sign; behind the last, the size of all */
	struct slice log;
	struct buf own; /* what the log lies in, where that is the pack's */
};

/*
 * Finds the tokens of a log, as fold_log reads them; NULL when it is none. Takes what is in `own`, of which the log must be
 * all; with NULL the log is borrowed for as long as the pack is there. One user has it then.
 */
struct pack *pack_create(struct slice log, struct buf *own);

static inline struct pack *pack_share(struct pack *pack)
{
	pack->users++;
	return pack;
}

/* One user less; the last one frees it. NULL is fine. */
void pack_release(struct pack *pack);

static inline bool pack_removes(const struct pack *pack, size_t i)
{
	return pack->log.p[pack->offsets[i]] == '-';
}

/* What the token names. */
static inline struct slice pack_item(const struct pack *pack, size_t i)
{
	return slice_of(pack->log.p + pack->offsets[i] + 1, pack->offsets[i + 1] - pack->offsets[i] - 2);
}

/* The tokens themselves, `count` from the one at `first` on. */
static inline struct slice pack_tokens(const struct pack *pack, size_t first, size_t count)
{
	return slice_of(pack->log.p + pack->offsets[first], pack->offsets[first + count] - pack->offsets[first]);
}

size_t pack_memory(const struct pack *pack);

#endif
