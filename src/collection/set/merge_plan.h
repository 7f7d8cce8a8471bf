/*
 * Which runs to merge: size-tiered compaction. Several runs of about one size are merged. All runs are merged once the
 * newer ones are large compared with the oldest. So the bytes written stay within a small multiple of those added
 * (Bentley and Saxe, "Decomposable searching problems", 1980; O'Neil and others, "The log-structured merge-tree",
 * 1996).
 */
#ifndef COLLECTION_SET_MERGE_PLAN_H
#define COLLECTION_SET_MERGE_PLAN_H

#include "collection/text/oplog.h"

enum { MERGE_RUNS_MAX = 512 };

/* Plans a merge of runs[*from] up to but without runs[*to]; the oldest run is first. False if none is due. */
bool merge_plan(const struct oplog_run *runs, size_t count, size_t *from, size_t *to);

/* Parses the runs of a block that parses, and where each reference ends in it, in bytes. Gives their number. */
size_t merge_list(struct slice block, struct oplog_run runs[MERGE_RUNS_MAX], size_t ends[MERGE_RUNS_MAX]);

#endif
