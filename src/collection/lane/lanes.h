/*
 * Lanes: the queue of each key that has operations in flight. A lane carries out its operations
 * in batches: appends become one APPEND, reads share one fetch, counts become one INCR. An
 * operation that rewrites is a batch of its own. The clients of a lane take turns (queue.h), and
 * the operations of one client on one key take effect in the order in which they were sent. A
 * busy key costs its server one call per round trip.
 *
 * Queued operations of a client that disconnects are dropped, if it can lose nothing that was
 * acknowledged; see queue_drops.
 *
 * Compaction is an operation of the lane too. It runs after the replies were sent, one at a
 * time for each key.
 */
#ifndef COLLECTION_LANE_LANES_H
#define COLLECTION_LANE_LANES_H

#include "collection/env.h"
#include "collection/op.h"

struct lane;
struct lanes;

/* The machines that carry out operations; machines.h declares the ones in use. */
struct lane_machines {
	/* Allocates the state that machines share between lanes. */
	void (*open)(struct lanes *lanes);
	void (*close)(struct lanes *lanes);                  /* frees that state */
	void (*start)(struct lane *lane, enum op_kind kind); /* carries out the lane's batch */
	/* Bytes of log that trigger compaction. */
	size_t (*log_size)(const struct lane *lane);
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

/*
 * Queues an operation, which is borrowed until its `done`. If the key has no lane yet, the
 * operation starts within this call.
 */
void lanes_submit(struct lanes *lanes, struct op *op);

/*
 * Sends a plain call of a client at once if its key has no operations in flight, else after
 * the queued operations of the same client. `call` is borrowed until the return. The waiter and
 * its key must stay valid until the result arrives; see env.call.
 */
void lanes_call(struct lanes *lanes, struct account *account, const struct call *call,
	struct waiter *waiter);

/* Returns true if no operation and no background call is in flight. */
bool lanes_idle(const struct lanes *lanes);

const struct lanes_stats *lanes_statistics(const struct lanes *lanes);

#endif
