/*
 * A store for the items of runs: tables and indexes by their ids, and runs written from a sorted
 * array. Except for the text layer, it shares no code with the writer of runs in the daemon.
 */
#ifndef UNIT_CUPBOARD_H
#define UNIT_CUPBOARD_H

#include "collection/text/oplog.h"
#include "table_model.h"

enum { CUPBOARD_MAX = 8192 };

struct cupboard {
	struct cupboard_item {
		char id[OPLOG_ID];
		struct buf data;
	} items[CUPBOARD_MAX];
	size_t count;
	uint64_t random; /* of the ids */
};

void cupboard_free(struct cupboard *c);

/* Stores an item. Returns its id. */
struct slice cupboard_put(struct cupboard *c, enum oplog_kind kind, struct slice data);

/* Returns the item with that id; NULL if there is none. */
struct cupboard_item *cupboard_find(struct cupboard *c, struct slice id);

/*
 * Writes a run of these entries, at least one, in tables of 1 to `most` entries; with `random` 0
 * all tables but the last have `most`. The id of the reference is in the cupboard.
 */
struct oplog_run cupboard_run(
	struct cupboard *c, const struct table_model *entries, size_t most, uint64_t *random);

/*
 * Writes a run of one or more tables from a log in byte order, like `cupboard_run`: a compact
 * notation for runs.
 */
struct oplog_run cupboard_log_run(struct cupboard *c, const char *log, size_t most);

/* Appends the base of a set with a block: the head, these runs, the log. */
void cupboard_base(struct buf *out, const char *head, const struct oplog_run *runs, size_t count,
	const char *log);

#endif
