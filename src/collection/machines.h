/*
 * The machines. Each carries out the operations of one kind that are the lane's batch, and has a drawing at the head of its file.
 * machines.c has the table that says which machine carries out which kind of operation.
 */
#ifndef COLLECTION_MACHINES_H
#define COLLECTION_MACHINES_H

#include "collection/lane/lanes.h"

extern const struct lane_machines machines;

/* Bytes of memory that cached views, tables, segments and bases use. */
size_t machines_cache_memory(const struct lanes *lanes);

/* Sets and lists in oplog. */
typedef void machine(struct lane *lane);
machine append_start, fetch_start, replace_start, pop_start, claim_start, compact_start, base_commit_start, list_start,
	lease_start, load_start, touch_start, delete_start;

/* Event counters. */
machine count_start;

/* All kinds of operations in an adopted encoding, which the rule of the key names. */
void adopted_start(struct lane *lane, enum op_kind kind);

#endif
