/*
 * The machines. Each carries out a lane's batch, whose operations are of one kind. The head of
 * its file has a diagram. The table in machines.c maps kinds of operations to machines.
 */
#ifndef COLLECTION_MACHINES_H
#define COLLECTION_MACHINES_H

#include "collection/lane/lanes.h"

extern const struct lane_machines machines;

/* Returns the bytes of memory that cached views, tables, segments and bases use. */
size_t machines_cache_memory(const struct lanes *lanes);

/* Sets and lists in the oplog encoding. */
typedef void machine(struct lane *lane);
machine append_start, fetch_start, replace_start, pop_start, take_start, claim_start, expire_start,
	compact_start, base_commit_start, list_start, lease_start, load_start, touch_start,
	delete_start;

/* Event counters. */
machine count_start;

/* Carries out any kind of operation in an adopted encoding, which the rule of the key selects. */
void adopted_start(struct lane *lane, enum op_kind kind);

#endif
