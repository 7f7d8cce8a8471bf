/*
 * Which runs are merged: size-tiered compaction. Runs of about one size are merged when there are several, and all of them with
 * the oldest once they make up a part of it. So what is written over and over stays within a small multiple of what was added
 * (Bentley and Saxe, "Decomposable searching problems", 1980, and O'Neil and others, "The log-structured merge-tree", 1996).
 */
#ifndef COLLECTION_SET_MERGE_PLAN_H
#define COLLECTION_SET_MERGE_PLAN_H

#include "collection/text/oplog.h"

enum { MERGE_RUNS_MAX = 512 };

/* Which runs to merge, oldest first: from number `from` on, up to before `to`. False when none are. */
bool merge_plan(const struct oplog_run *runs, size_t count, size_t *from, size_t *to);

/* The runs of a block, and for each where its reference ends in the block. Gives how many there are, of a block that parses. */
size_t merge_list(struct slice block, struct oplog_run runs[MERGE_RUNS_MAX], size_t ends[MERGE_RUNS_MAX]);

#endif
