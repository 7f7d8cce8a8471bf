#include "collection/lane/gather.h"

#include "collection/set_request.h"
#include "collection/text/expiry.h"

enum {
	LOOK_MAX = 4096, /* operations and clients that are examined */
	/* Comparisons of members of logs and of reads; this many take a millisecond. */
	COMPARED_MAX = 64 * 1024
};

struct gathering {
	const struct op *first; /* of a batch of one kind; else the first append */
	size_t bytes, most;
	size_t compared;
	bool makes;        /* a gathered append creates a missing set */
	struct op *before; /* the previous gathered read of the same client */
	struct op_queue *batch, *reads;
};

/*
 * Returns whether a log names a member that the read tests, or may do so if not everything was
 * compared. A read that does not test members by name depends on all of them.
 */
static bool concerns(struct gathering *g, const struct op *read, struct slice log)
{
	struct slice token;

	if (read->set->verb != SET_TEST && read->set->verb != SET_HAS)
		return true;
	while ((token = slice_token(&log)).n) {
		struct slice members = read->set->members, member;
		while ((member = slice_token(&members)).n) {
			if (++g->compared > COMPARED_MAX ||
				slice_equal(member, expiry_member(slice_skip(token, 1))))
				return true;
		}
	}
	return false;
}

static bool is_alike(const struct op *append, const struct op *first)
{
	return append->front == first->front && append->type == first->type;
}

/* --- appends, followed by reads --- */

static bool may_append(struct gathering *g, const struct op *op)
{
	if (g->first && (!is_alike(op, g->first) || g->bytes + op->log.n > g->most))
		return false;
	for (const struct op *read = g->before; read; read = read->before) {
		if (concerns(g, read, op->log))
			return false;
	}
	return true;
}

static void add_append(struct gathering *g, struct op *op)
{
	for (struct op *read = g->before; read; read = read->before)
		read->early = !read->made;
	if (!g->first)
		g->first = op;
	g->bytes += op->log.n;
	g->makes |= op->create;
	STAILQ_INSERT_TAIL(g->batch, op, link);
}

static void add_read(struct gathering *g, struct op *op)
{
	op->before = g->before;
	op->early = false;
	op->made = g->makes;
	g->before = op;
	STAILQ_INSERT_TAIL(g->reads, op, link);
}

/* Takes the first operation of the client if possible. */
static bool take_either(struct gathering *g, struct client_queue *client)
{
	struct op *op = STAILQ_FIRST(&client->ops);

	if (op->kind == OP_READ)
		add_read(g, queue_take(client));
	else if (op->kind == OP_APPEND && may_append(g, op))
		add_append(g, queue_take(client));
	else
		return false;
	return true;
}

/* --- operations of one kind --- */

/* LIST operations that share a batch: reads are answered from one read, pops become one rewrite. */
static enum { LIST_ALONE, LIST_READS, LIST_POPS } list_kind(const struct op *op)
{
	switch (op->list->verb) {
	case LIST_RANGE:
	case LIST_LENGTH:
	case LIST_POSITION:
		return LIST_READS;
	case LIST_POP_FRONT:
	case LIST_POP_BACK:
	case LIST_HOLD:
	case LIST_ACK:
	case LIST_FAIL:
		return LIST_POPS;
	default:
		return LIST_ALONE;
	}
}

static bool shares(const struct op *op)
{
	if (op->kind == OP_LIST)
		return list_kind(op) != LIST_ALONE;
	/*
	 * Of several lease requests the first gets the lease, and the others get OUTCOME_LOADING.
	 */
	return op->kind == OP_APPEND || op->kind == OP_LEASE || op->kind == OP_READ ||
		op->kind == OP_COUNT;
}

static bool mergeable(const struct gathering *g, const struct op *op)
{
	if (op->kind != g->first->kind)
		return false;
	if (op->kind == OP_APPEND)
		return is_alike(op, g->first) && g->bytes + op->log.n <= g->most;
	if (op->kind == OP_LIST)
		return list_kind(op) == list_kind(g->first);
	return op->kind != OP_LEASE || op->type == g->first->type;
}

static bool take_same(struct gathering *g, struct client_queue *client)
{
	struct op *op = STAILQ_FIRST(&client->ops);

	if (!g->first)
		g->first = op;
	else if (!mergeable(g, op))
		return false;
	g->bytes += op->log.n;
	op = queue_take(client);
	STAILQ_INSERT_TAIL(g->batch, op, link);
	return true;
}

void gather(struct queues *queues, struct queue *queue, bool appends_first, size_t bytes,
	uint64_t now, struct op_queue *batch, struct op_queue *reads)
{
	struct gathering g = { .most = bytes, .batch = batch, .reads = reads };
	struct client_queue *front = TAILQ_FIRST(&queue->clients), *client, *next;
	const struct op *first = STAILQ_FIRST(&front->ops);
	bool either = appends_first && (first->kind == OP_APPEND || first->kind == OP_READ);
	int looked = 0, most = shares(first) ? LOOK_MAX : 1;

	queue->rewrote = op_rewrites(first, queue->rule);
	for (client = front; client && looked < most; client = next) {
		next = TAILQ_NEXT(client, link);
		g.before = NULL;
		while (looked++ < most && !STAILQ_EMPTY(&client->ops) &&
			(looked == 1 || !queue_drops(client, now)) &&
			(either ? take_either(&g, client) : take_same(&g, client)))
			;
		if (client != front)
			queue_taken(queues, client);
	}
	queue_end_turn(queues, front);
}
