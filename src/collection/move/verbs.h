/*
 * Calls on keys that move. To a server, a mark (mark.h) is an item like any other. These
 * functions determine which calls a mark would affect, and which results show that one did.
 */
#ifndef COLLECTION_MOVE_VERBS_H
#define COLLECTION_MOVE_VERBS_H

#include <stdbool.h>

#include "protocol/call.h"

enum guard {
	GUARD_NONE,
	GUARD_LOOK, /* the key must be read before */
	GUARD_HOLD, /* its result shows a mark; later calls are held until it arrives */
	GUARD_TELLS /* its result shows a mark */
};

/*
 * Returns how to protect the call from marks. `late`: a mover's claim may still arrive
 * at the new server.
 */
enum guard verb_guard(const struct call *call, bool late);

/* Returns whether the call, a META or GAT, has met a mark; `imitated` as in mark_is_met. */
bool verb_met_mark(const struct call *call, const struct result *r, bool imitated);

/* Returns whether the call may have met a mark, so that the key must be read after it. */
bool verb_is_doubtful(const struct call *call, const struct result *r, bool imitated);

/*
 * Returns whether the key may have no item after the call: a deletion, or a time to
 * live in the past.
 */
bool verb_removes(const struct call *call, int64_t unix_time);

/* Returns whether memcached's incr and decr accept the value. */
bool verb_is_number(struct slice value);

/*
 * Returns whether a call with GUARD_LOOK can be sent as a CAS with the cas id that the
 * preceding read returned.
 */
bool verb_compares(const struct call *call);

/* Returns that CAS. It borrows the slices of the call. */
struct call verb_compare(const struct call *call, const struct result *look);

/* Returns the status of a call with GUARD_LOOK if there is no item. */
enum result_status verb_status_of_miss(const struct call *call);

/* Returns whether a GET, a GAT or a META that reads has missed. */
bool verb_missed(const struct result *r);

/* Returns whether the call changes nothing. */
bool verb_only_reads(const struct call *call);

#endif
