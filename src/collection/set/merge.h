/* Merges the runs of a set, in the background. */
#ifndef COLLECTION_SET_MERGE_H
#define COLLECTION_SET_MERGE_H

#include "collection/lane/lane.h"
#include "collection/text/oplog.h"

/*
 * Starts a merge of some of the runs that `block`, which must be well-formed, refers to. Does
 * nothing if no merge is due, if one is in progress for the key, or if too many are in progress
 * for other keys. New parts get `exptime`. Slices are copied.
 */
void merge_consider(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime);

/*
 * The same for the references to the loaded part of a set whose load is not complete:
 * see text/lease.h. The new run can have packed tables if `wide`, as the base then has form 3.
 */
void merge_consider_loaded(
	struct lanes *lanes, struct slice key, struct slice refs, bool wide, int64_t exptime);

/*
 * Merges all runs, and owns the COMPACT `op` until its `done`. If a merge is in progress, `op`
 * is submitted again after it.
 */
void merge_force(
	struct lanes *lanes, struct slice key, struct slice block, int64_t exptime, struct op *op);

/*
 * Submits a client's COMPACT once more. If it has `lost` a race to another proxy or thread,
 * first pauses for a random time, in which the other one can finish. Returns false if it was
 * submitted too often.
 */
bool merge_again(struct lanes *lanes, struct op *op, bool lost);

/*
 * Plans a merge of runs[*from] up to but excluding runs[*to]; the oldest run is first. Returns
 * false if none is due at `now`, by the clock of the set's server.
 *
 * This is size-tiered compaction. Several runs of about the same size are merged. All runs are
 * merged once the newer ones are large compared with the oldest, or members of a run have expired:
 * see oplog_is_spent. So the bytes written stay
 * within a small multiple of those added (Bentley and Saxe, "Decomposable searching problems",
 * 1980; O'Neil and others, "The log-structured merge-tree", 1996).
 */
bool merge_plan(const struct oplog_run *runs, size_t count, int64_t now, size_t *from, size_t *to);

enum { MERGE_RUNS_MAX = 512 };

/*
 * Parses the runs of a well-formed block, and stores the offset at which each reference ends in
 * it in `ends`. Returns the number of runs.
 */
size_t merge_list(
	struct slice block, struct oplog_run runs[MERGE_RUNS_MAX], size_t ends[MERGE_RUNS_MAX]);

#endif
