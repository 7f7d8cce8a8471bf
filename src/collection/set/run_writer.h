/* Writing a run: tables one after the other, as its entries come, and its index behind them. */
#ifndef COLLECTION_SET_RUN_WRITER_H
#define COLLECTION_SET_RUN_WRITER_H

#include "collection/rewrite/segments.h"
#include "collection/text/fences.h"
#include "collection/text/table.h"

struct run_writer {
	struct lanes *lanes;
	struct slice key; /* borrowed */
	int64_t exptime;
	uint64_t started; /* when that was right, in milliseconds */
	struct table_writer table;
	char first[MEMBER_MAX], last[MEMBER_MAX]; /* the fence of the table, the last member of the one before */
	size_t first_size, last_size;
	bool adopted; /* the table before was taken over */
	struct buf index;
	struct fence only; /* the last table that was written or taken over */
	struct oplog_run run;
	char id[OPLOG_ID]; /* of the run */
	struct buf ids;    /* of all items that were written, each followed by a space */
	size_t pending;
	bool finished;
	struct failure failure;
	void (*answered)(void *arg); /* after each answer */
	void *arg;
};

void run_writer_init(struct run_writer *w, struct lanes *lanes, struct slice key, int64_t exptime,
	void (*answered)(void *arg), void *arg);
/* Nothing may be pending. */
void run_writer_fini(struct run_writer *w);

/* Adds an entry, which must be behind the last. */
void run_writer_add(struct run_writer *w, struct slice member, bool removed);

/* Adds all of a fold, its removals only with `removals`. */
struct fold;
void run_writer_add_fold(struct run_writer *w, const struct fold *fold, bool removals);

/*
 * Takes over a table that another run has, in place of writing its entries; its fence is above all that was added. False when
 * it would leave too small a table before it, or is one.
 */
bool run_writer_adopt(struct run_writer *w, const struct fence *fence);

/* Writes what is left. The run may be referred to when that is answered: pending is 0 then. */
void run_writer_finish(struct run_writer *w);

/* Appends the reference to the run, if there is anything in it. */
void run_writer_ref(const struct run_writer *w, struct buf *out);

/*
 * After the commit: gives what was written the time to live `ttl` of the base, in the background, where that was touched while
 * it was written. Otherwise it is left alone: a touch that comes right behind the commit sees to it itself.
 */
void run_writer_follow(const struct run_writer *w, int64_t ttl);

/* Nothing refers to it: deletes what was written, in the background. */
void run_writer_forget(const struct run_writer *w);

#endif
