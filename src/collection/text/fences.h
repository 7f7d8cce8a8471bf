/*
 * The index of a run: its tables in order, each with its fence, a lower bound of its members. A
 * member can only be in the last table whose fence is not above it.
 *
 *     "I1"  entry ...
 *
 *     entry  id, 12 bytes; check, 64 bits little-endian; varints: bytes of the table, entries,
 *            removals among them, bytes of the fence; the fence
 *
 * The first fence is empty. Varints have the format of table.h.
 */
#ifndef COLLECTION_TEXT_FENCES_H
#define COLLECTION_TEXT_FENCES_H

#include "collection/text/oplog.h"
#include "collection/text/table.h"

/* An entry: the description of a table. */
struct fence {
	char id[OPLOG_ID];
	uint64_t check;
	uint32_t bytes, entries, removals;
	uint64_t before; /* entries of all tables before it */
	/* The fence: at most its first member, and above the last member of the previous table. */
	struct slice first;
};

struct fences {
	struct fence *list;
	size_t count;
	uint64_t entries, removals, bytes; /* of all tables */
	/* Ranks of the fences: word_rank of their first bytes after `common`. */
	uint64_t *ranks;
	size_t common;
};

/*
 * Parses an index. The fences borrow `data`. Returns false if it is malformed; then there
 * is nothing to free.
 */
bool fences_read(struct fences *f, struct slice data) __attribute__((warn_unused_result));
void fences_free(struct fences *f);

/* Returns the number of the only table that can hold a member. */
size_t fences_find(const struct fences *f, struct slice member);

/*
 * Returns whether a table matches entry `i`: its count, and all members between its
 * fence and the next one.
 */
bool fences_hold(const struct fences *f, size_t i, const struct table *t);

/* fences_begin begins an index; fences_add appends an entry. fence->before is ignored. */
void fences_begin(struct buf *out);
void fences_add(struct buf *out, const struct fence *fence);

/*
 * Returns the size of the shortest prefix of `first` that is above `last`. Requires
 * `last` < `first`.
 */
size_t fence_size(struct slice last, struct slice first);

#endif
