/*
 * An index of the tokens of a log, validated once: it finds the n-th token in constant time. It
 * is reference counted.
 */
#ifndef COLLECTION_TEXT_LOG_INDEX_H
#define COLLECTION_TEXT_LOG_INDEX_H

#include <stdint.h>

#include "util/buf.h"

enum { LOG_INDEX_FEW = 32 };

struct log_index {
	unsigned users;
	size_t count;    /* tokens */
	size_t removals; /* number of tokens that remove */
	/* Offset of the sign of each token, and one more for the end of the log. */
	uint32_t *offsets;
	struct slice log;
	struct buf own;              /* the memory of the log, if the index owns it */
	uint32_t few[LOG_INDEX_FEW]; /* offsets of a short log, which needs no other memory */
};

/*
 * Indexes a log of the form that fold_log reads; returns NULL if it is malformed. Takes the
 * content of `own`, which must be the log; if `own` is NULL, the log is borrowed for the life
 * of the index. The result has one user.
 */
struct log_index *log_index_create(struct slice log, struct buf *own);

static inline struct log_index *log_index_share(struct log_index *log_index)
{
	log_index->users++;
	return log_index;
}

/* Drops one user; the last one frees the index. NULL does nothing. */
void log_index_release(struct log_index *log_index);

static inline bool log_index_removes(const struct log_index *log_index, size_t i)
{
	return log_index->log.p[log_index->offsets[i]] == '-';
}

/* Returns the member or element that a token adds or removes. */
static inline struct slice log_index_element(const struct log_index *log_index, size_t i)
{
	return slice_of(log_index->log.p + log_index->offsets[i] + 1,
		log_index->offsets[i + 1] - log_index->offsets[i] - 2);
}

/* Returns the bytes of `count` tokens, starting with token `first`. */
static inline struct slice log_index_tokens(
	const struct log_index *log_index, size_t first, size_t count)
{
	return slice_of(log_index->log.p + log_index->offsets[first],
		log_index->offsets[first + count] - log_index->offsets[first]);
}

/* Returns the bytes of memory that the index uses, including the log if it owns that. */
size_t log_index_memory(const struct log_index *log_index);

#endif
