/* A log whose tokens were found and checked once: what it takes to have its n-th at once. Shared by counted users. */
#ifndef COLLECTION_PACK_H
#define COLLECTION_PACK_H

#include <stdint.h>

#include "util/buf.h"

struct log_index {
	unsigned users;
	size_t count;      /* tokens */
	size_t removals;   /* those of them that remove */
	uint32_t *offsets; /* of each token's sign; behind the last, the size of all */
	struct slice log;
	struct buf own; /* what the log lies in, where that is the log_index's */
};

/*
 * Finds the tokens of a log, as fold_log reads them; NULL when it is none. Takes what is in `own`, of which the log must be
 * all; with NULL the log is borrowed for as long as the log_index is there. One user has it then.
 */
struct log_index *log_index_create(struct slice log, struct buf *own);

static inline struct log_index *log_index_share(struct log_index *log_index)
{
	log_index->users++;
	return log_index;
}

/* One user less; the last one frees it. NULL is fine. */
void log_index_release(struct log_index *log_index);

static inline bool log_index_removes(const struct log_index *log_index, size_t i)
{
	return log_index->log.p[log_index->offsets[i]] == '-';
}

/* What the token names. */
static inline struct slice log_index_item(const struct log_index *log_index, size_t i)
{
	return slice_of(
		log_index->log.p + log_index->offsets[i] + 1, log_index->offsets[i + 1] - log_index->offsets[i] - 2);
}

/* The tokens themselves, `count` from the one at `first` on. */
static inline struct slice log_index_tokens(const struct log_index *log_index, size_t first, size_t count)
{
	return slice_of(log_index->log.p + log_index->offsets[first],
		log_index->offsets[first + count] - log_index->offsets[first]);
}

size_t log_index_memory(const struct log_index *log_index);

#endif
