/*
 * The queued operations of a lane. The operations of one client keep their order, and
 * there is no order between clients. So each client has a queue of its own, and the lane takes its
 * batches from clients in turns: a client with one operation waits for at most one batch of
 * each other client, however many operations they have queued.
 *
 * A rewrite costs much more than a read or an append. So after each rewrite, the next batch is
 * one of reads or appends if any client waits for one: such a client does not wait for the
 * rewrites of all others, and a client that rewrites waits for one such batch more each time.
 */
#ifndef COLLECTION_LANE_QUEUE_H
#define COLLECTION_LANE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collection/list_request.h"
#include "util/pool.h"

enum { QUEUE_GRACE_MS = 1000 };

/* Returns whether an operation changes nothing, and is done only for its outcome. */
static inline bool op_only_reads(const struct op *op)
{
	return op->kind == OP_READ || (op->kind == OP_LIST && !list_verb_writes(op->list->verb));
}

/* Returns whether an append in this encoding, not oplog, first reads all items, or rewrites one. */
bool append_rewrites(const struct op *op, const struct collection_rule *rule) __attribute__((pure));

/*
 * Returns whether an operation on a key with this rule may rewrite items, which costs more than a
 * read or one call.
 */
static inline bool op_rewrites(const struct op *op, const struct collection_rule *rule)
{
	if (op->kind == OP_APPEND)
		return rule->encoding != ENCODING_OPLOG && append_rewrites(op, rule);
	return !op_only_reads(op) && op->kind != OP_COUNT && op->kind != OP_CALL;
}

/* The operations of one client; never empty between calls of these functions. */
struct client_queue {
	TAILQ_ENTRY(client_queue) link;
	struct client_queue *next; /* in the same bucket */
	struct queue *queue;
	struct account *account; /* NULL: operations without a client, such as compaction */
	struct op_queue ops;
	bool drops; /* A write was dropped because the client has disconnected. */
};

/* The queue of one lane. */
struct queue {
	TAILQ_HEAD(client_queues, client_queue) clients; /* in the order of their turns */
	const struct collection_rule *rule;              /* of the lane's key */
	size_t count;                                    /* operations */
	bool rewrote;                                    /* The last batch was a rewrite. */
};

/* A hash table of the queues of all clients, in the lanes of one worker. */
struct queues {
	struct pool *pool;
	struct client_queue **buckets; /* bucket_count is a power of two */
	size_t bucket_count, count;
};

void queues_init(struct queues *queues, struct pool *pool);
/* Requires that all queues are empty. */
void queues_fini(struct queues *queues);

void queue_init(struct queue *queue, const struct collection_rule *rule);

/* Adds an operation after all others of its account. */
void queue_add(struct queues *queues, struct queue *queue, struct op *op);

/* Adds an operation before all others of its account, whose turn is next if `is_next`. */
void queue_add_first(struct queues *queues, struct queue *queue, struct op *op, bool is_next);

/*
 * If an operation of this kind and without a client is queued, makes it the next one of all,
 * and returns true.
 */
bool queue_prefer(struct queues *queues, struct queue *queue, enum op_kind kind);

/* Returns the client whose turn is next, and moves it to the front; NULL if the queue is empty. */
struct client_queue *queue_turn(struct queue *queue);

/* Returns the first operation of the client at the front; NULL if the queue is empty. */
static inline struct op *queue_first(const struct queue *queue)
{
	const struct client_queue *client = TAILQ_FIRST(&queue->clients);

	return client ? STAILQ_FIRST(&client->ops) : NULL;
}

/*
 * Returns whether to end the client's first operation without carrying it out, because the
 * client has disconnected: no reply to it can be sent. Reads and compactions are dropped at
 * once. Writes are carried out for QUEUE_GRACE_MS. After that, the first rewrite or compaction is
 * dropped and all later requests with it, so that none of them takes effect without an earlier
 * one. Counts and appends that are no rewrites cost little before it, and are carried out. A write
 * that is only a part of its request (not op.whole) is always carried out. `now` is env.now.
 */
bool queue_drops(struct client_queue *client, uint64_t now);

/* Removes and returns the first operation of a client. Afterwards, call one of the following. */
static inline struct op *queue_take(struct client_queue *client)
{
	struct op *op = STAILQ_FIRST(&client->ops);

	STAILQ_REMOVE_HEAD(&client->ops, link);
	client->queue->count--;
	return op;
}

/*
 * queue_taken frees the client's queue if no operation is left. queue_end_turn does the same,
 * and otherwise makes its next turn the last one.
 */
void queue_taken(struct queues *queues, struct client_queue *client);
void queue_end_turn(struct queues *queues, struct client_queue *client);

#endif
