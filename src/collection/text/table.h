/*
 * A sorted table: an immutable list of members in byte order, each added or removed, without
 * duplicates. The format is that of LevelDB's blocks: an entry omits the bytes that it shares
 * with the entry before it. Every TABLE_INTERVAL-th entry, a restart point, shares nothing, so
 * that a search can begin there.
 *
 *     "T1"  entry ...  restart ...  count
 *     "T3"  entry ...  restart ...  date ...  count
 *
 *     entry    varint shared, varint (bytes << 1 | removed), bytes
 *     restart  offset of the entry from the start of the table, 32 bits, one for every
 *              TABLE_INTERVAL entries
 *     date     of each entry, 32 bits: when its member expires (expiry.h), or 0
 *     count    of entries, 32 bits
 *
 * The second form is that of a table with dates, at least one. A removal has none.
 *
 * A varint has 7 bits a byte, the lowest first, and the top bit set in all bytes but the last.
 * Other numbers are little-endian.
 */
#ifndef COLLECTION_TEXT_TABLE_H
#define COLLECTION_TEXT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "collection/text/expiry.h"
#include "collection/text/varint.h"
#include "protocol/element.h"
#include "util/buf.h"
#include "util/slice.h"

#define TABLE_MAGIC "T1"
#define TABLE_DATED_MAGIC "T3"

enum { TABLE_INTERVAL = 16, TABLE_MAGIC_SIZE = sizeof(TABLE_MAGIC) - 1, TABLE_NUMBER = 4 };

/* A parsed table. It borrows its bytes and ranks. */
struct table {
	const char *data;
	size_t entries_end; /* offset */
	uint32_t count;
	const char *dates;     /* of all entries; NULL for none */
	const uint64_t *ranks; /* NULL for none */
	uint32_t common;       /* with ranks: number of leading bytes that all members share */
};

/* Parses and fully checks a table. `t` borrows `data`. Returns false if it is malformed. */
bool table_open(struct table *t, struct slice data) __attribute__((warn_unused_result));

/*
 * The same for a table that was checked before, or written by table_writer: it checks no entries.
 */
bool table_trust(struct table *t, struct slice data) __attribute__((warn_unused_result));

/*
 * table_rank speeds up searches. It fills in `ranks`, which has room for table_restarts()
 * numbers, and borrows it for the life of `t`. A rank is word_rank of the first bytes of a
 * restart point's member after the common ones.
 */
size_t table_restarts(const struct table *t);
size_t table_size(const struct table *t);
void table_rank(struct table *t, uint64_t *ranks);

/* Returns how many of sorted ranks are below `rank` or, if `through`, at most equal to it. */
size_t ranks_below(const uint64_t *ranks, size_t count, uint64_t rank, bool through);

/* A cursor on an entry of a table. The member is the cursor's own copy. */
struct table_cursor {
	const struct table *table;
	uint32_t at; /* number of the entry; table->count at the end */
	size_t next; /* offset of the next entry */
	bool removed;
	uint16_t size;
	/* After table_next: how many bytes of the last member this one begins with. */
	uint16_t shared;
	char member[MEMBER_WORD_MAX];
};

/*
 * Each of these moves the cursor to an entry; false if there is none, and the cursor is at the
 * end.
 */
bool table_first(struct table_cursor *c, const struct table *t);
bool table_nth(struct table_cursor *c, const struct table *t, uint32_t n);
/* Moves to the first entry whose member is not below `from`. */
bool table_seek(struct table_cursor *c, const struct table *t, struct slice from);
bool table_next(struct table_cursor *c);

static inline struct slice table_member(const struct table_cursor *c)
{
	return slice_of(c->member, c->size);
}

/* Returns the date of an entry; EXPIRY_NONE if it has none. */
static inline uint32_t table_date(const struct table *t, uint32_t entry)
{
	return t->dates
		? (uint32_t)little_load(t->dates + (size_t)entry * TABLE_NUMBER, TABLE_NUMBER)
		: EXPIRY_NONE;
}

/* Returns whether an entry is a removal, or a member that has expired at `now`. */
static inline bool table_gone(const struct table_cursor *c, int64_t now)
{
	return c->removed || expiry_is_past(table_date(c->table, c->at), now);
}

/*
 * Returns the number of members that have expired at `now`. Stores the first date of the others in
 * `next`; UINT32_MAX if they have none.
 */
uint32_t table_expired(const struct table *t, int64_t now, uint32_t *next);

/*
 * Returns whether the table has an entry of the member. Stores in `gone` if it is a removal, or has
 * expired at `now`.
 */
bool table_find(const struct table *t, struct slice member, int64_t now, bool *gone);

/* Compares like memcmp: byte order; a prefix of a member is below it. */
static inline int member_compare(struct slice a, struct slice b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = word_compare(a.p, b.p, n);

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* Returns the number of leading bytes that two members share. */
static inline size_t member_shared(struct slice a, struct slice b)
{
	size_t n = 0, most = a.n < b.n ? a.n : b.n;

	while (n < most && a.p[n] == b.p[n])
		n++;
	return n;
}

/*
 * Narrows the search for a member from the first `*high` ranks to those equal to its own
 * rank, and the one before. `common` is the prefix that all ranked members share, perhaps
 * except for the first one.
 */
static inline void ranks_narrow(
	const uint64_t *ranks, struct slice common, struct slice member, size_t *low, size_t *high)
{
	int order = member_compare(
		slice_of(member.p, member.n < common.n ? member.n : common.n), common);
	struct slice rest;
	uint64_t rank;
	size_t below;

	if (order < 0) {
		*high = 1;
	} else if (order > 0) {
		*low = *high - 1;
	} else {
		rest = slice_skip(member, common.n);
		rank = word_rank(rest.p, rest.n);
		below = ranks_below(ranks, *high, rank, false);
		*high = ranks_below(ranks, *high, rank, true);
		*low = below ? below - 1 : 0;
	}
}

/* Writes a table. All zeroes is an empty table. */
struct table_writer {
	struct buf entries, restarts, dates;
	uint32_t count, removals;
	uint32_t dated, first_date; /* the number of dates, and the first one */
	uint64_t date_sum;
	uint16_t last_size;
	char *last; /* the last member, with room for any; NULL before the first entry */
};

/*
 * Adds an entry, whose member must be greater than the last one. A removal has no date. No other
 * entry may have been added after table_writer_date.
 */
void table_writer_add(struct table_writer *w, struct slice member, bool removed);

/* Gives the last entry that was added a date. */
void table_writer_date(struct table_writer *w, uint32_t date);

/* Returns the size of the table that table_writer_finish would write now. */
size_t table_writer_size(const struct table_writer *w);

/* Appends the table to `out`, and empties the writer, which keeps its memory. */
void table_writer_finish(struct table_writer *w, struct buf *out);

void table_writer_free(struct table_writer *w);

#endif
