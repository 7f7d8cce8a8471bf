/* The hooks of moving.h for the network: rings, late calls, and mutations. */
#include "collection/text/part_key.h"
#include "moving.h"
#include "util/hash.h"

/* Microseconds. No call is later than the margin leaves it. */
enum { MS = 1000, LATE = (MOVING_MARGIN * 1000 - 2 * MOVING_APART - 100) * MS };

/* --- placement of items --- */

int moving_place(const struct moving_ring *ring, struct slice key)
{
	unsigned behind, found = 0;
	struct slice base = part_key_place(key, &behind);
	size_t first = hash_slice(base, ring->hash) % (size_t)ring->count;
	int list[MOVING_RING];

	for (int i = 0; i < ring->count; i++) {
		int server = ring->servers[(first + (size_t)i) % (size_t)ring->count];
		unsigned seen = 0;
		while (seen < found && list[seen] != server)
			seen++;
		if (seen == found)
			list[found++] = server;
	}
	return list[behind % found];
}

struct slice moving_base(struct slice key, bool *is_part)
{
	struct slice base = part_key_base(key);

	*is_part = base.n > 0;
	return base.n ? base : key;
}

struct memcached_item *moving_item(struct moving *w, int server, struct slice key)
{
	return memcached_find(&w->lan.servers[server], key, moving_now(w));
}

/* --- hooks --- */

static bool is_claim(const struct message *m)
{
	return m->call.verb == CALL_ADD && slice_starts(m->call.value, SLICE("@claim."));
}

static uint64_t delay(struct lan *lan)
{
	if (lan_random(lan, 100) < 2)
		return lan_random(lan, LATE);
	return lan_random(lan, 100) < 6 ? lan_random(lan, 40 * MS) : lan_random(lan, 3 * MS);
}

/*
 * Calls that are sent together arrive separately. Late claims are rare; more of them show sooner
 * whether one is handled correctly.
 */
static uint64_t arrival(struct lan *lan, const struct message *m, uint64_t last)
{
	const struct moving *w = lan->arg;
	uint64_t at;

	if (m->executed)
		return lan->now + delay(lan) / 4;
	at = (last > lan->now ? last : lan->now) + delay(lan);
	if (w->mutation == MOVING_UNSEEN_CLAIM && is_claim(m))
		at += 300 * MS + lan_random(lan, 500 * MS);
	return at < lan->now + LATE ? at : lan->now + LATE;
}

/*
 * A read of a time to live and the following write of the same key are in one packet: nothing is
 * executed between them.
 */
static bool is_in_packet(struct lan *lan, const struct message *last, const struct message *m)
{
	if (last->answered || moving_generation(last) != moving_generation(m) ||
		!slice_equal(last->call.key, m->call.key))
		return false;
	return last->call.verb == CALL_STATS ||
		(last->call.verb == CALL_GET && last->call.want == WANT_TTL) || lan_random(lan, 2);
}

/* The server that has its key by the former ring, or -1. */
static int *former(const struct message *m)
{
	return m->note;
}

static void sent(struct lan *lan, struct message *m)
{
	const struct moving_config *c = &moving_generation(m)->config;

	*former(m) = c->moves ? moving_place(&c->former, m->call.key) : -1;
	moving_mutate_sent(lan->arg, m);
}

static bool execute(struct lan *lan, struct message *m)
{
	struct moving *w = lan->arg;

	w->tick++;
	moving_lose_to_claim(w, m);
	return moving_mutate_execute(w, m);
}

/*
 * Counts claims that arrive so late that another proxy has moved the item, and a client has
 * deleted it.
 */
static void executed(struct lan *lan, struct message *m)
{
	struct moving *w = lan->arg;
	int key = moving_find_key(w, m->call.key);

	if (key >= 0 && *former(m) >= 0 && is_claim(m) && m->result.status == RESULT_DONE &&
		!moving_item(w, *former(m), m->call.key))
		w->keys[key].claimed = true;
	moving_mutate_executed(w, m);
}

const struct lan_hooks moving_hooks = {
	.note_size = sizeof(int),
	.arrival = arrival,
	.set_clock = moving_set_clock,
	.is_in_packet = is_in_packet,
	.sent = sent,
	.execute = execute,
	.executed = executed,
};

/* --- calls --- */

void moving_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct moving_generation *g = ((struct lan_host *)env)->owner;
	struct call placed = *call;

	if (g->moves) {
		moves_call(g->moves, call, waiter);
		return;
	}
	placed.server = moving_place(&g->config.ring, call->key);
	lan_call(env, &placed, waiter);
}

struct moving_generation *moving_generation(const struct message *m)
{
	return m->proxy ? ((struct lan_host *)m->env)->owner : NULL;
}

/* Its cas ids continue, since clients cannot distinguish them. */
void moving_restart(struct moving *w, int server)
{
	uint64_t cas = w->lan.servers[server].cas;

	memcached_restart(&w->lan.servers[server]);
	w->lan.servers[server].cas = cas;
	lan_restart(&w->lan, server);
}
