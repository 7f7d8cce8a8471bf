/*
 * Merging sorted streams, each made of tables that follow one another, into one: of what several streams say of a member the
 * newest has the last word. Tables are handed in one by one, so that only those that are being read need be there.
 */
#ifndef COLLECTION_TEXT_TABLE_MERGE_H
#define COLLECTION_TEXT_TABLE_MERGE_H

#include "collection/text/table.h"

struct merge_stream {
	struct table_cursor cursor;
	enum { STREAM_DRY, STREAM_ON, STREAM_ENDED } state; /* DRY: its next table is wanted, or that it ends */
};

struct table_merge {
	struct merge_stream *streams; /* oldest first */
	size_t count, dry;            /* streams; those that are dry */
	size_t *order;                /* the streams that are on, by their entries, of equal members the newest first */
	size_t on;                    /* how many those are */
	size_t equals;                /* of them, those whose member the one before has too */
	size_t winner;                /* the stream of the entry given last; `count` for none */
	bool given;                   /* its entry was */
};

enum merge_state {
	MERGE_ENTRY, /* the next entry is that of the winner's cursor */
	MERGE_DRY,   /* `winner` is a stream that wants its next table: feed it, or end it */
	MERGE_END
};

void table_merge_init(struct table_merge *m, size_t count);
void table_merge_free(struct table_merge *m);

/* Goes on in the stream with a table, from its first entry that is not below `from`. Only for a stream that is dry. */
void table_merge_feed(struct table_merge *m, size_t stream, const struct table *t, struct slice from);
void table_merge_end(struct table_merge *m, size_t stream);

/* The next entry. It is valid until the next call of any function here. */
enum merge_state table_merge_next(struct table_merge *m);

static inline const struct table_cursor *table_merge_entry(const struct table_merge *m)
{
	return &m->streams[m->winner].cursor;
}

/* True when no stream but `stream` has an entry below `to`, and none is dry that might. */
bool table_merge_alone(const struct table_merge *m, size_t stream, struct slice to);

#endif
