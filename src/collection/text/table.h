/*
 * A sorted table: members in byte order, each added or removed, no member twice. It is written once and never changed. The
 * form is that of LevelDB's blocks: an entry does not repeat the bytes that it shares with the entry before, and every
 * TABLE_INTERVAL-th entry, a restart point, shares nothing, so that a search can begin there.
 *
 *     "T1"  entry ...  restart ...  count
 *
 *     entry    varint shared, varint (bytes << 1 | removed), bytes
 *     restart  offset of the entry from the start of the table, 32 bits, one for every TABLE_INTERVAL entries
 *     count    of entries, 32 bits
 *
 * A varint has 7 bits a byte, the lowest first, and the top bit set but in the last. Other numbers are little-endian.
 */
#ifndef COLLECTION_TEXT_TABLE_H
#define COLLECTION_TEXT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/request.h"
#include "util/buf.h"
#include "util/slice.h"

enum { TABLE_INTERVAL = 16 };

/* A table that was read. It borrows the bytes, and the ranks. */
struct table {
	const char *data;
	size_t entries_end; /* the offset behind the last entry */
	uint32_t count;
	const uint64_t *ranks; /* NULL for none */
	uint32_t common;       /* with ranks: bytes with which all members begin */
};

/* Checks every byte and the order of the members. False when it is no table; then nothing may be done with `t`. */
bool table_open(struct table *t, struct slice data) __attribute__((warn_unused_result));

/*
 * Makes searches faster: fills in `ranks`, of which table_restarts() tells how many there are, and keeps them. They are the
 * first bytes of the restart points, behind those that all members share.
 */
size_t table_restarts(const struct table *t);
void table_rank(struct table *t, uint64_t *ranks);

/* Of sorted ranks, how many are below a rank, or with `through` not above it. */
size_t ranks_below(const uint64_t *ranks, size_t count, uint64_t rank, bool through);

/* A place in a table. The member is the cursor's own copy. */
struct table_cursor {
	const struct table *table;
	uint32_t at; /* the number of the entry; table->count is behind the last */
	size_t next; /* the offset of the entry behind it */
	bool removed;
	uint16_t size;
	char member[MEMBER_MAX];
};

/* Each of these puts the cursor on an entry; false when there is none, and then it is behind the last. */
bool table_first(struct table_cursor *c, const struct table *t);
bool table_nth(struct table_cursor *c, const struct table *t, uint32_t n);
/* The first entry whose member is not below `from`. */
bool table_seek(struct table_cursor *c, const struct table *t, struct slice from);
bool table_next(struct table_cursor *c);

static inline struct slice table_member(const struct table_cursor *c)
{
	return slice_of(c->member, c->size);
}

/* True when the table says anything of the member, and then in `removed` what. */
bool table_find(const struct table *t, struct slice member, bool *removed);

/* Below 0, 0 or above, as memcmp: byte order, a prefix first. */
static inline int member_compare(struct slice a, struct slice b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = word_compare(a.p, b.p, n);

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* Writes a table. All zeroes is the writer of an empty one. */
struct table_writer {
	struct buf entries, restarts;
	uint32_t count, removals;
	uint16_t last_size;
	char last[MEMBER_MAX]; /* the last member */
	size_t member_bytes;   /* of all members */
};

/* Adds an entry, which must be behind the last. */
void table_writer_add(struct table_writer *w, struct slice member, bool removed);

/* Bytes of the table that table_writer_finish would write now. */
size_t table_writer_size(const struct table_writer *w);

/* Appends the table to `out`. The writer is that of an empty table then, and keeps its memory. */
void table_writer_finish(struct table_writer *w, struct buf *out);

void table_writer_free(struct table_writer *w);

#endif
