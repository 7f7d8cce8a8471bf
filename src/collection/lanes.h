/*
 * Lanes: per key, the operations that wait for one another. A lane is there only while its key has something in flight, and
 * takes what waits in batches: neighbouring appends become one APPEND, neighbouring reads share one fetch, neighbouring counts
 * one INCR, anything that rewrites runs alone. So the commands of one client on one key take effect in the order sent, and a
 * key that many write at once costs its server one call a round trip.
 *
 * Compaction runs here too: started by what reads and a sample of writes find, behind the reply, one at a time for a key.
 */
#ifndef COLLECTION_LANES_H
#define COLLECTION_LANES_H

#include "collection/host.h"
#include "collection/op.h"

/* What was done, ever. */
struct lanes_stats {
	uint64_t appends, appended_operations, reads, cache_hits;
	uint64_t compactions, spills, merges, conflicts;
	uint64_t segments_written, segments_deleted, incomplete_sets, corrupt_values;
};

/* The lanes of one host, which must outlive them. */
struct lanes *lanes_create(struct host *host);
/* All operations must be done. NULL is fine. */
void lanes_destroy(struct lanes *lanes);

/* Queues an operation; it starts within this call when its key has no lane. */
void lanes_submit(struct lanes *lanes, struct op *op);

/*
 * A plain call: sent at once where its key has no lane, else when its turn comes. `call` is borrowed for this function; the
 * waiter, and the key inside it, as host.call says.
 */
void lanes_call(struct lanes *lanes, const struct call *call, struct waiter *waiter);

/* Says that a plain command gave an item with this value another time to live: if it is a large collection, its segments follow. */
void lanes_touched(struct lanes *lanes, struct slice key, struct slice value, int64_t exptime);

/* True when nothing is under way, in front or behind. */
bool lanes_idle(const struct lanes *lanes);

const struct lanes_stats *lanes_statistics(const struct lanes *lanes);

/* Bytes that the fold cache holds. */
size_t lanes_cache_memory(const struct lanes *lanes);

#endif
