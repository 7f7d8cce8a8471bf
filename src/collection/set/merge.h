/* Merging the runs of a set, in the background. */
#ifndef COLLECTION_SET_MERGE_H
#define COLLECTION_SET_MERGE_H

#include "collection/lane/lane.h"
#include "collection/text/oplog.h"

/*
 * Starts a merge of runs among those that `block`, of a base that parses, refers to. Does nothing if none is due, one
 * is in progress for the key, or too many are for other keys. New parts get `exptime`. Slices are copied.
 */
void merge_consider(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime);

/* The same for the references to what was loaded of a set that is not complete: see text/lease.h. */
void merge_consider_loaded(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime);

/*
 * Merges all runs, and owns the COMPACT `op` until its `done`. If a merge is in progress, `op` is submitted again
 * behind it.
 */
void merge_force(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime, struct op *op);

/*
 * Submits a client's COMPACT once more. If it has lost a race to another proxy or thread, there is a random pause before that,
 * in which the other one ends. False if it was submitted often enough.
 */
bool merge_again(struct lanes *lanes, struct op *op, bool lost);

/*
 * Plans a merge of runs[*from] up to but without runs[*to]; the oldest run is first. False if none is due.
 *
 * This is size-tiered compaction. Several runs of about one size are merged. All runs are merged once the newer ones are large
 * compared with the oldest. So the bytes written stay within a small multiple of those added (Bentley and Saxe, "Decomposable
 * searching problems", 1980; O'Neil and others, "The log-structured merge-tree", 1996).
 */
bool merge_plan(const struct oplog_run *runs, size_t count, size_t *from, size_t *to);

enum { MERGE_RUNS_MAX = 512 };

/* Parses the runs of a block that parses, and where each reference ends in it, in bytes. Gives their number. */
size_t merge_list(struct slice block, struct oplog_run runs[MERGE_RUNS_MAX], size_t ends[MERGE_RUNS_MAX]);

#endif
