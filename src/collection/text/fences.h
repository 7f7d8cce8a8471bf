/*
 * The index of a run: its tables in order, each with its fence, a lower bound of its members. A
 * member can only be in the last table whose fence is not above it.
 *
 *     "I1"  entry ...
 *     "I2"  entry ...  dates ...  count
 *
 *     entry  id, 12 bytes; check, 64 bits little-endian; varints: bytes of the table, entries,
 *            removals among them, bytes of the fence; the fence
 *     dates  of each table, three numbers of 32 bits: how many members expire, the first of
 *            their dates, and the mean
 *     count  of tables, 32 bits
 *
 * The second form is that of a run with members that expire. The first fence is empty. Numbers have
 * the format of table.h.
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
	/* Members that expire, the first of their dates, or less, and the mean; 0 for none. */
	uint32_t dated, first_date, mean_date;
	uint64_t before; /* entries of all tables before it */
	/* The fence: at most its first member, and above the last member of the previous table. */
	struct slice first;
};

struct fences {
	struct fence *list;
	size_t count;
	uint64_t entries, removals, bytes, dated; /* of all tables */
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
 * Returns whether a table matches entry `i`: its count, whether it has dates, and all members
 * between its fence and the next one.
 */
bool fences_hold(const struct fences *f, size_t i, const struct table *t);

/* Writes an index. All zeroes is an empty one; fences_text ends it. fence->before is ignored. */
struct fences_writer {
	struct buf text, dates;
	uint32_t count;
	bool dated;
};
void fences_add(struct fences_writer *w, const struct fence *fence);
struct slice fences_text(struct fences_writer *w);
void fences_writer_free(struct fences_writer *w);

/*
 * Returns the size of the shortest prefix of `first` that is above `last`. Requires
 * `last` < `first`.
 */
size_t fence_size(struct slice last, struct slice first);

#endif
