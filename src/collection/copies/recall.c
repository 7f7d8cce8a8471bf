#include "collection/copies/recall.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"
#include "util/hash.h"

enum { KEPT = 1 << 13 };

struct kept {
	uint64_t hash, cas, connection; /* of the first copy */
	uint64_t token;                 /* the second one of the pair */
	uint64_t changes;               /* absences_changes when it was kept */
};

struct recalls {
	size_t flying;
	struct kept at[KEPT];
};

/* A call in flight. */
struct recall {
	struct waiter waiter;
	struct waiter *asker;
	struct copies *copies;
	struct call call;
	uint64_t hash;
};

struct recalls *recalls_create(void)
{
	return xcalloc(1, sizeof(struct recalls));
}

void recalls_destroy(struct recalls *recalls)
{
	assert(recalls_idle(recalls));
	free(recalls);
}

bool recalls_idle(const struct recalls *recalls)
{
	return recalls->flying == 0;
}

static uint64_t hash_of(const struct copies *copies, struct slice key)
{
	return hash_key(key, copies->options.env->seed);
}

void recall_keep(struct pair *pair)
{
	const struct pair_side *first = &pair->sides[0];
	uint64_t hash = hash_of(pair->copies, pair->call.key);

	pair->copies->recalls->at[hash % KEPT] = (struct kept){
		.hash = hash,
		.cas = first->cas,
		.connection = first->connection,
		.token = pair_second_token(pair),
		.changes = absences_changes(pair->copies->absences),
	};
}

static bool is_kept(const struct copies *copies, const struct kept *kept, uint64_t hash)
{
	return kept->cas && kept->hash == hash &&
		kept->changes == absences_changes(copies->absences);
}

static void recall_on_answer(struct waiter *waiter, const struct result *r)
{
	struct recall *recall = (struct recall *)waiter, copy = *recall;
	struct copies *copies = copy.copies;
	const struct kept *kept = &copies->recalls->at[copy.hash % KEPT];
	struct result known = *r;

	copies->recalls->flying--;
	pool_put(copies->options.env->pool, recall, sizeof(*recall));
	if (r->status != RESULT_HIT || !is_kept(copies, kept, copy.hash) || r->cas != kept->cas ||
		r->connection != kept->connection) {
		read_start(pair_create(copies, &copy.call, copy.asker));
		return;
	}
	known.connection = kept->token;
	copy.asker->done(copy.asker, &known);
}

bool recall_start(struct copies *copies, const struct call *call, struct waiter *asker)
{
	struct recall *recall;
	uint64_t hash;

	if (!call->only_reads || call->want & (WANT_VALUE | WANT_ENCODED) || call->role.settled ||
		!absences_known(copies->absences))
		return false;
	hash = hash_of(copies, call->key);
	if (!is_kept(copies, &copies->recalls->at[hash % KEPT], hash))
		return false;
	recall = pool_get(copies->options.env->pool, sizeof(*recall));
	*recall = (struct recall){ { recall_on_answer, call->key }, asker, copies, *call, hash };
	copies->recalls->flying++;
	copies->options.call(copies->options.env, call, &recall->waiter);
	return true;
}
