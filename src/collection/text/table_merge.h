/*
 * A k-way merge of sorted streams into one. A stream is a sequence of tables. If several
 * streams have an entry of a member, the newest stream decides. Tables are fed one by one, so
 * only the tables being read must be in memory.
 */
#ifndef COLLECTION_TEXT_TABLE_MERGE_H
#define COLLECTION_TEXT_TABLE_MERGE_H

#include "collection/text/table.h"

struct merge_stream {
	struct table_cursor cursor;
	/* DRY: the stream needs its next table, or its end. */
	enum { STREAM_DRY, STREAM_ON, STREAM_ENDED } state;
};

struct table_merge {
	struct merge_stream *streams; /* oldest stream first */
	size_t count, dry;            /* number of streams; number of dry streams */
	/* The streams that are ON, ordered by their entries; for equal members the newest first. */
	size_t *order;
	size_t on;     /* the number of streams in `order` */
	size_t equals; /* streams in `order` whose member equals that of the stream before */
	size_t winner; /* the stream of the last result; `count` before the first */
	bool given;    /* the last result was the entry of `winner` */
};

enum merge_state {
	MERGE_ENTRY, /* the next entry is table_merge_entry() */
	MERGE_DRY,   /* the stream `winner` is dry: feed or end it */
	MERGE_END
};

void table_merge_init(struct table_merge *m, size_t count);
void table_merge_free(struct table_merge *m);

/*
 * Feeds a dry stream with its next table, from the first entry that is not below `from`. The
 * table is borrowed.
 */
void table_merge_feed(
	struct table_merge *m, size_t stream, const struct table *t, struct slice from);
void table_merge_end(struct table_merge *m, size_t stream);

/* Moves to the next entry, which is valid until the next call of any function here. */
enum merge_state table_merge_next(struct table_merge *m);

static inline const struct table_cursor *table_merge_entry(const struct table_merge *m)
{
	return &m->streams[m->winner].cursor;
}

/* Returns whether only `stream` can have entries below `to`; any entries, if to.p is NULL. */
bool table_merge_alone(const struct table_merge *m, size_t stream, struct slice to);

#endif
