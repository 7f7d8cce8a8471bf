/*
 * Lanes: for each key with something in flight, the operations that wait for one another. A lane takes what waits in batches:
 * neighbouring appends become one APPEND, neighbouring reads share one fetch, neighbouring counts one INCR; an operation that
 * rewrites runs alone. So the commands of one client on one key take effect in the order sent, and a key that many write at
 * once costs its server one call a round trip.
 *
 * Compaction runs in the lane too, behind the replies, and one at a time for a key.
 */
#ifndef COLLECTION_LANE_LANES_H
#define COLLECTION_LANE_LANES_H

#include "collection/env.h"
#include "collection/op.h"

struct lane;
struct lanes;

/* What carries out the operations. machines.h has the one that the daemon uses. */
struct lane_machines {
	void (*open)(struct lanes *lanes);                   /* makes what the machines keep for all lanes */
	void (*close)(struct lanes *lanes);                  /* frees it */
	void (*start)(struct lane *lane, enum op_kind kind); /* starts the machine for the lane's batch */
	size_t (*log_size)(const struct lane *lane);         /* bytes of log above which the base is compacted */
};

/* Totals since the start. */
struct lanes_stats {
	uint64_t appends, appended_operations, reads, cache_hits;
	uint64_t compactions, spills, merges, conflicts;
	uint64_t segments_written, segments_deleted, incomplete_sets, corrupt_values;
};

/* Both arguments must outlive the lanes. */
struct lanes *lanes_create(struct env *env, const struct lane_machines *machines);
/* All operations must be done. NULL is fine. */
void lanes_destroy(struct lanes *lanes);

/* Queues an operation; it starts within this call when its key has no lane. */
void lanes_submit(struct lanes *lanes, struct op *op);

/*
 * A plain call: sent at once when its key has no lane, else in its turn. `call` is borrowed for this function; the waiter, and
 * the key inside it, as env.call says.
 */
void lanes_call(struct lanes *lanes, const struct call *call, struct waiter *waiter);

/* True when nothing is under way, in lanes or in the background. */
bool lanes_idle(const struct lanes *lanes);

const struct lanes_stats *lanes_statistics(const struct lanes *lanes);

#endif
