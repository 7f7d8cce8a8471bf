#include "collection/lane/queue.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/account.h"
#include "util/alloc.h"
#include "util/hash.h"

enum { BUCKETS_MIN = 64 };

void queues_init(struct queues *queues, struct pool *pool)
{
	*queues = (struct queues){
		.pool = pool,
		.buckets = xcalloc(BUCKETS_MIN, sizeof(struct client_queue *)),
		.bucket_count = BUCKETS_MIN,
	};
}

void queues_fini(struct queues *queues)
{
	assert(queues->count == 0);
	free(queues->buckets);
}

/* The first word of a log shows whether a log adds or removes; few do both. */
bool append_rewrites(const struct op *op, const struct collection_rule *rule)
{
	switch (rule->encoding) {
	case ENCODING_CSV:
		return !op_is_list(op) && op->log.n && *op->log.p == '-';
	case ENCODING_TOMBSTONE:
	case ENCODING_PAIRED:
		return true;
	case ENCODING_FLIP:
		return !rule->pointer;
	default:
		return false;
	}
}

void queue_init(struct queue *queue, const struct collection_rule *rule)
{
	*queue = (struct queue){ .rule = rule };
	TAILQ_INIT(&queue->clients);
}

static struct client_queue **bucket_of(
	const struct queues *queues, const struct queue *queue, const struct account *account)
{
	uint64_t hash = hash_mix((uintptr_t)account ^ 0x9e3779b97f4a7c15u, (uintptr_t)queue);

	return &queues->buckets[hash & (queues->bucket_count - 1)];
}

static void grow(struct queues *queues)
{
	size_t old_count = queues->bucket_count;
	struct client_queue **old = queues->buckets;

	queues->bucket_count *= 2;
	queues->buckets = xcalloc(queues->bucket_count, sizeof(struct client_queue *));
	for (size_t i = 0; i < old_count; i++) {
		for (struct client_queue *client = old[i], *next; client; client = next) {
			struct client_queue **bucket =
				bucket_of(queues, client->queue, client->account);
			next = client->next;
			client->next = *bucket;
			*bucket = client;
		}
	}
	free(old);
}

static struct client_queue *find(
	const struct queues *queues, struct queue *queue, const struct account *account)
{
	struct client_queue *client = TAILQ_LAST(&queue->clients, client_queues);

	/* Most operations that are queued at all follow one of the same client. */
	if (!client || client->account == account)
		return client;
	client = *bucket_of(queues, queue, account);
	while (client && (client->account != account || client->queue != queue))
		client = client->next;
	return client;
}

/* Returns the queue of the operation's client, which may be new, for an operation to be added. */
static struct client_queue *enter(struct queues *queues, struct queue *queue, const struct op *op)
{
	struct client_queue *client = find(queues, queue, op->account), **bucket;

	queue->count++;
	if (client)
		return client;
	if (queues->count++ >= queues->bucket_count)
		grow(queues);
	client = pool_get(queues->pool, sizeof(*client));
	bucket = bucket_of(queues, queue, op->account);
	*client = (struct client_queue){ .next = *bucket, .queue = queue, .account = op->account };
	STAILQ_INIT(&client->ops);
	*bucket = client;
	TAILQ_INSERT_TAIL(&queue->clients, client, link);
	return client;
}

void queue_add(struct queues *queues, struct queue *queue, struct op *op)
{
	struct client_queue *client = enter(queues, queue, op);

	STAILQ_INSERT_TAIL(&client->ops, op, link);
}

static void move_to_front(struct client_queue *client)
{
	TAILQ_REMOVE(&client->queue->clients, client, link);
	TAILQ_INSERT_HEAD(&client->queue->clients, client, link);
}

void queue_add_first(struct queues *queues, struct queue *queue, struct op *op, bool is_next)
{
	struct client_queue *client = enter(queues, queue, op);

	STAILQ_INSERT_HEAD(&client->ops, op, link);
	if (is_next)
		move_to_front(client);
}

bool queue_prefer(struct queues *queues, struct queue *queue, enum op_kind kind)
{
	struct client_queue *client = queue->count ? find(queues, queue, NULL) : NULL;
	struct op *op;

	if (!client)
		return false;
	STAILQ_FOREACH(op, &client->ops, link) {
		if (op->kind != kind)
			continue;
		STAILQ_REMOVE(&client->ops, op, op, link);
		STAILQ_INSERT_HEAD(&client->ops, op, link);
		move_to_front(client);
		return true;
	}
	return false;
}

struct client_queue *queue_turn(struct queue *queue)
{
	struct client_queue *client = TAILQ_FIRST(&queue->clients);

	if (!queue->rewrote)
		return client;
	/* Its length is limited by the number of clients. */
	while (client && op_rewrites(STAILQ_FIRST(&client->ops), queue->rule))
		client = TAILQ_NEXT(client, link);
	if (!client)
		return TAILQ_FIRST(&queue->clients);
	move_to_front(client);
	return client;
}

bool queue_drops(struct client_queue *client, uint64_t now)
{
	const struct op *op = STAILQ_FIRST(&client->ops);
	const struct account *account = client->account;

	if (!account || !account->gone)
		return false;
	if (op->whole && op_rewrites(op, client->queue->rule))
		client->drops |= now - account->gone_at >= QUEUE_GRACE_MS;
	return op_only_reads(op) || op->kind == OP_COMPACT || (op->whole && client->drops);
}

void queue_taken(struct queues *queues, struct client_queue *client)
{
	struct client_queue **at;

	if (!STAILQ_EMPTY(&client->ops))
		return;
	at = bucket_of(queues, client->queue, client->account);
	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	queues->count--;
	TAILQ_REMOVE(&client->queue->clients, client, link);
	pool_put(queues->pool, client, sizeof(*client));
}

void queue_end_turn(struct queues *queues, struct client_queue *client)
{
	struct queue *queue = client->queue;

	if (STAILQ_EMPTY(&client->ops)) {
		queue_taken(queues, client);
	} else if (TAILQ_NEXT(client, link)) {
		TAILQ_REMOVE(&queue->clients, client, link);
		TAILQ_INSERT_TAIL(&queue->clients, client, link);
	}
}
