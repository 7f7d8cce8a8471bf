/*
 * The index of a run: its tables in order, each with the bound where its members begin, its fence. A member can only be in
 * the last table whose fence is not above it.
 *
 *     "I1"  entry ...
 *
 *     entry  id, 12 bytes; check, 64 bits little-endian; varints: bytes of the table, entries, removals among them, bytes of
 *            the fence; the fence
 *
 * The first fence is empty. Varints are those of a table.
 */
#ifndef COLLECTION_TEXT_FENCES_H
#define COLLECTION_TEXT_FENCES_H

#include "collection/text/oplog.h"
#include "collection/text/table.h"

/* What is known of a table without reading it. */
struct fence {
	char id[OPLOG_ID];
	uint64_t check;
	uint32_t bytes, entries, removals;
	uint64_t before;    /* the entries of all tables before it */
	struct slice first; /* the fence: not above its first member, above the last one of the table before */
};

struct fences {
	struct fence *list;
	size_t count;
	uint64_t entries, removals, bytes; /* of all tables */
	uint64_t *ranks;                   /* first bytes of the fences, behind those that all but the first share */
	size_t common;
};

/* Reads an index; the fences borrow its bytes. False when it is none, and then there is nothing to free. */
bool fences_read(struct fences *f, struct slice data) __attribute__((warn_unused_result));
void fences_free(struct fences *f);

/* The number of the table in which a member would be. */
size_t fences_find(const struct fences *f, struct slice member);

/* Whether a table is the one of that number: as many entries, and all members between its fence and the next. */
bool fences_hold(const struct fences *f, size_t i, const struct table *t);

/* Begins an index, and adds an entry. */
void fences_begin(struct buf *out);
void fences_add(struct buf *out, const struct fence *fence);

/* The bytes of the shortest prefix of `first` that is above `last`, which `first` is above. */
size_t fence_size(struct slice last, struct slice first);

#endif
