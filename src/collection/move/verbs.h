/*
 * Calls on keys that move. A server takes a mark (mark.h) for an item. This says which calls that would mislead, and which results show
 * that it has.
 */
#ifndef COLLECTION_MOVE_VERBS_H
#define COLLECTION_MOVE_VERBS_H

#include <stdbool.h>

#include "protocol/call.h"

enum guard {
	GUARD_NONE,
	GUARD_LOOK, /* the key is looked at before */
	GUARD_HOLD, /* its result tells; those behind it wait for that */
	GUARD_TELLS /* its result tells */
};

/* How to protect the call from marks. `late`: a mover's claim may still arrive at the new server. */
enum guard verb_guard(const struct call *call, bool late);

/* Whether the call, a META or GAT, has met a mark; `imitated` as in mark_is_met. */
bool verb_met_mark(const struct call *call, const struct result *r, bool imitated);

/* Whether the call may have met a mark, and the key must be read after it. */
bool verb_is_doubtful(const struct call *call, const struct result *r, bool imitated);

/* Whether the key may have no item after the call: a deletion, or a time to live in the past. */
bool verb_removes(const struct call *call, int64_t unix_time);

/* Whether memcached's incr and decr accept the value. */
bool verb_is_number(struct slice value);

/* Whether a call with GUARD_LOOK can be sent as a CAS with the cas id that the look has seen. */
bool verb_compares(const struct call *call);

/* That CAS. It borrows the slices of the call. */
struct call verb_compare(const struct call *call, const struct result *look);

/* The result of a call with GUARD_LOOK if there is no item. */
enum result_status verb_status_of_miss(const struct call *call);

/* Whether a GET, a GAT or a META that reads has found nothing. */
bool verb_missed(const struct result *r);

/* Whether the call changes nothing. */
bool verb_only_reads(const struct call *call);

#endif
