#include "collection/lane/gather.h"

#include "collection/set_request.h"
#include "util/hash.h"

enum {
	CLIENTS = 256,   /* clients that are tracked; the operations of all others stay queued */
	LOOK_MAX = 4096, /* operations that are examined */
	/* Comparisons of members of logs and of reads; this many take a millisecond. */
	COMPARED_MAX = 64 * 1024
};

struct seen {
	const struct account *account;
	struct op *reads; /* gathered reads, the last one first */
	bool waits;       /* an operation of the client stays queued, so all later ones must too */
};

struct gathering {
	bool used[CLIENTS];     /* the entries of `clients` that are in use */
	struct seen *clients;   /* CLIENTS entries, not cleared: most calls see only one client */
	const struct op *first; /* the first append */
	size_t bytes, most;
	size_t compared;
	bool makes; /* a gathered append creates a missing set */
	struct op_queue *appends, *reads;
};

static struct seen *find(struct gathering *g, const struct account *account)
{
	size_t at = (size_t)hash_mix((uintptr_t)account, 0x9e3779b97f4a7c15u) % CLIENTS, n;

	for (n = 0; n < CLIENTS && g->used[at] && g->clients[at].account != account; n++)
		at = (at + 1) % CLIENTS;
	if (n == CLIENTS)
		return NULL;
	if (!g->used[at])
		g->clients[at] = (struct seen){ .account = account };
	g->used[at] = true;
	return &g->clients[at];
}

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
			if (++g->compared > COMPARED_MAX || slice_equal(member, slice_skip(token, 1)))
				return true;
		}
	}
	return false;
}

static bool take_append(struct gathering *g, struct seen *seen, struct op *op)
{
	if (g->first && (op->front != g->first->front || op->type != g->first->type || g->bytes + op->log.n > g->most))
		return false;
	for (const struct op *read = seen->reads; read; read = read->before) {
		if (concerns(g, read, op->log))
			return false;
	}
	for (struct op *read = seen->reads; read; read = read->before)
		read->early = !read->made;
	if (!g->first)
		g->first = op;
	g->bytes += op->log.n;
	g->makes |= op->create;
	STAILQ_INSERT_TAIL(g->appends, op, link);
	return true;
}

static bool take(struct gathering *g, struct op *op)
{
	struct seen *seen = find(g, op->account);

	if (!seen || seen->waits)
		return false;
	if (op->kind == OP_APPEND) {
		seen->waits = !take_append(g, seen, op);
		return !seen->waits;
	}
	op->before = seen->reads;
	op->early = false;
	op->made = g->makes;
	seen->reads = op;
	STAILQ_INSERT_TAIL(g->reads, op, link);
	return true;
}

void gather(struct op_queue *waiting, size_t bytes, struct op_queue *appends, struct op_queue *reads)
{
	struct op_queue left = STAILQ_HEAD_INITIALIZER(left);
	struct seen clients[CLIENTS];
	struct gathering g = { .clients = clients, .most = bytes, .appends = appends, .reads = reads };
	struct op *op;

	for (int n = 0; n < LOOK_MAX && (op = STAILQ_FIRST(waiting)); n++) {
		if (op->kind != OP_APPEND && op->kind != OP_READ)
			break;
		STAILQ_REMOVE_HEAD(waiting, link);
		if (!take(&g, op))
			STAILQ_INSERT_TAIL(&left, op, link);
	}
	STAILQ_CONCAT(&left, waiting);
	STAILQ_CONCAT(waiting, &left);
}
