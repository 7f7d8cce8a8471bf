/*
 * Lanes: the queue of each key that has operations in flight. A lane carries out its operations in batches:
 * neighbouring appends become one APPEND, neighbouring reads share one fetch, neighbouring counts become one INCR. An
 * operation that rewrites is a batch of its own. So the operations of one client on one key take effect in the order
 * sent, and a busy key costs its server one call a round trip.
 *
 * Compaction is an operation of the lane too. It runs behind the replies, one at a time for a key.
 */
#ifndef COLLECTION_LANE_LANES_H
#define COLLECTION_LANE_LANES_H

#include "collection/env.h"
#include "collection/op.h"

struct lane;
struct lanes;

/* The machines that carry out operations; machines.h has those of the daemon. */
struct lane_machines {
	void (*open)(struct lanes *lanes);                   /* allocates state that machines share between lanes */
	void (*close)(struct lanes *lanes);                  /* frees it */
	void (*start)(struct lane *lane, enum op_kind kind); /* carries out the lane's batch */
	size_t (*log_size)(const struct lane *lane);         /* bytes of log that trigger compaction */
};

/* Totals since lanes_create. */
struct lanes_stats {
#define LANES(name, ...) uint64_t name;
#include "measure/facts.def"
};

/* Borrows both arguments until lanes_destroy. */
struct lanes *lanes_create(struct env *env, const struct lane_machines *machines);
/* Requires lanes_idle(). NULL is allowed. */
void lanes_destroy(struct lanes *lanes);

/* Queues an operation, which is borrowed until its `done`. If no lane has its key, it starts within this call. */
void lanes_submit(struct lanes *lanes, struct op *op);

/*
 * Sends a plain call at once if its key has no operations in flight, else behind those. `call` is borrowed until the
 * return. The waiter and its key must stay until the result, as env.call says.
 */
void lanes_call(struct lanes *lanes, const struct call *call, struct waiter *waiter);

/* True if no operation is in flight, and no call in the background. */
bool lanes_idle(const struct lanes *lanes);

const struct lanes_stats *lanes_statistics(const struct lanes *lanes);

#endif
