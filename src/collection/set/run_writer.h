/* Writes a run: its tables as the entries arrive, then its index. */
#ifndef COLLECTION_SET_RUN_WRITER_H
#define COLLECTION_SET_RUN_WRITER_H

#include "collection/rewrite/parts.h"
#include "collection/text/fences.h"
#include "collection/text/sorting.h"
#include "collection/text/table.h"

struct run_writer {
	struct part_writer parts; /* for part_writer_follow and part_writer_forget */
	struct table_writer table;
	size_t pack_size; /* bytes from which a table is packed; 0 for never */
	/* The fence of this table; the last member of the previous table. */
	struct buf first, last;
	bool reused; /* the previous table was reused */
	struct fences_writer index;
	uint64_t date_sum;       /* of all dates; approximately, of tables that were reused */
	struct fence last_table; /* the last table, written or reused */
	struct oplog_run run;
	char id[OPLOG_ID]; /* of the run */
	struct slice rest; /* the unread rest of the log to fill it from */
	struct fold fold;  /* of the part of that log that was read */
	struct sorting sorting;
	bool sorted;
	size_t filled; /* number of sorted members that were added */
	bool finished;
};

void run_writer_init(struct run_writer *w, struct lanes *lanes, struct slice key, int64_t exptime,
	void (*answered)(void *arg), void *arg);
/* Requires parts.pending to be 0. */
void run_writer_fini(struct run_writer *w);

/*
 * Adds an entry, whose member must be greater than the last one. The member is copied. `date` is
 * when it expires, or EXPIRY_NONE.
 */
void run_writer_add(struct run_writer *w, struct slice member, bool removed, uint32_t date);

/*
 * run_writer_fill adds all members of a fold, and its removals if `removals`.
 * run_writer_fill_from_log adds the members of a log, which must be well-formed. Both borrow
 * their source until run_writer_fill_step returns true. Each call of that does a portion of
 * SORTING_STEPS steps of work.
 */
void run_writer_fill(struct run_writer *w, const struct fold *fold, bool removals);
void run_writer_fill_from_log(struct run_writer *w, struct slice log);
bool run_writer_fill_step(struct run_writer *w) __attribute__((warn_unused_result));

/*
 * Does portions until the slice of the lane is over. Returns true if everything is added;
 * otherwise the lane pauses, and later calls `step`, which must call this again.
 */
bool run_writer_fill_slice(struct run_writer *w, struct lane *lane, lane_step *step)
	__attribute__((warn_unused_result));

/*
 * Reuses a table of another run instead of writing its entries. Its fence must be above
 * all members so far. Returns false if the table, or the unfinished one before it, is
 * too small for that.
 */
bool run_writer_reuse(struct run_writer *w, const struct fence *fence);

/*
 * Continues with a table of another run, whose fence must be above all members so far. Requires
 * that no entries were added.
 */
void run_writer_take(struct run_writer *w, const struct fence *fence);

/* Writes the last table and the index. Once parts.pending is 0, the run may be referred to. */
void run_writer_finish(struct run_writer *w);

/* Appends the reference to the run unless it is empty. */
void run_writer_ref(const struct run_writer *w, struct buf *out);

#endif
