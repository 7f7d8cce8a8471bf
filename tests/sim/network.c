/*
 * The hooks of world.h for the network: servers of keys, delays, and the checks and mutations of
 * each call.
 */
#include "world.h"

/* The key of a part of oplog is that of the base, a dot, a letter, the place, and ten bytes or more. */
static bool is_part(struct slice key)
{
	return key.n >= SIM_KEY_SIZE + 13 && key.p[SIM_KEY_SIZE] == '.';
}

/* Returns how many servers after that of its base its server is. */
static int place_of(struct slice key)
{
	return is_part(key) ? key.p[SIM_KEY_SIZE + 2] - '0' : 0;
}

int world_server(struct slice key)
{
	int sum = place_of(key);

	for (size_t i = 0; i < (is_part(key) ? SIM_KEY_SIZE : key.n); i++)
		sum += (unsigned char)key.p[i];
	return sum % SIM_SERVERS;
}

/* A proxy with another list of servers looks for parts after the base on the wrong server. */
static bool looks_elsewhere(const struct world *w, const struct message *m)
{
	return m->proxy && m->proxy->index == w->stray && m->call.verb == CALL_GET &&
		is_part(m->call.key) && (place_of(m->call.key) || w->mutation == MUTATION_PLACE);
}

bool network_excuses(const struct sim_op *op)
{
	const struct world *w = op->world;

	return op->proxy->index == w->stray &&
		(op->many || check_says(op, "END") || check_says(op, "NOT_FOUND") ||
			check_says(op, "VALUE sunion 0 0"));
}

int world_set(struct slice key)
{
	return key.n == SIM_KEY_SIZE && key.p[0] == 's' ? key.p[1] - '0' : -1;
}

struct memcached_item *world_find(struct world *w, struct slice key)
{
	return lan_find(&w->lan, key);
}

enum { MS = 1000 };

/*
 * Returns the delay of a call that matters for a mutation, so that the events which show the
 * mutation are frequent; 0 for other calls.
 */
static uint64_t delay_for_mutation(struct lan *lan, const struct call *call)
{
	bool is_cas = call->verb == CALL_CAS;

	switch (((const struct world *)lan->arg)->mutation) {
	case MUTATION_STALE_CAS: /* a restart may hit it */
		return is_cas ? lan_random(lan, 60 * MS) : 0;
	case MUTATION_NO_MARGIN: /* a second ends between the write of a part and that of its base */
		return is_cas && call->exptime > 0 && lan_random(lan, 2)
			? lan_random(lan, 1500 * MS)
			: 0;
	case MUTATION_BLIND_EXPIRE: /* the base may become another */
		return is_cas && call->exptime < 0 ? lan_random(lan, 200 * MS) : 0;
	case MUTATION_BLIND_SEXPIRE: /* the base may become another */
		return is_cas ? lan_random(lan, 40 * MS) : 0;
	case MUTATION_LOST_DELETE: /* another delete is executed */
		return call->verb == CALL_DELETE || (is_cas && call->exptime < 0)
			? lan_random(lan, 40 * MS)
			: 0;
	default:
		return 0;
	}
}

static uint64_t delay(struct lan *lan, const struct call *call)
{
	const struct world *w = lan->arg;
	uint64_t delay = delay_for_mutation(lan, call);

	if (delay)
		return delay;
	if (w->slow && lan_random(lan, 100) < 2)
		return lan_random(lan, 3000 * MS);
	return lan_random(lan, 100) < 5 ? lan_random(lan, 40 * MS) : lan_random(lan, 3 * MS);
}

/*
 * Calls that are sent together arrive separately, so that calls of other proxies are executed
 * between them.
 */
static uint64_t arrival(struct lan *lan, const struct message *m, uint64_t last)
{
	if (m->executed)
		return lan->now + lan_random(lan, 3 * MS);
	return (last > lan->now ? last : lan->now) + delay(lan, &m->call);
}

/*
 * A rewrite reads the time to live, and of a date the server's clock, right before its CAS and its
 * touch. These calls are in one packet, so that nothing is executed between them here. A touch in
 * between would be lost.
 */
static bool is_in_packet(struct lan *lan, const struct message *last, const struct message *m)
{
	const struct world *w = lan->arg;
	bool writes = m->call.verb == CALL_CAS || m->call.verb == CALL_TOUCH;

	if (w->mutation == MUTATION_STALE_CAS || !slice_equal(last->call.key, m->call.key))
		return false;
	if (last->call.verb == CALL_STATS)
		return writes;
	return last->call.verb == CALL_GET && last->call.want == WANT_TTL &&
		(writes || m->call.verb == CALL_STATS);
}

static void sent(struct lan *lan, struct message *m)
{
	struct world *w = lan->arg;

	if (w->mutation == MUTATION_STALE_CAS && m->answered && !m->proxy->dead) {
		m->answered = false;
		note(m)->stale = true;
	}
	if (w->form)
		form_sent(w, m);
	else
		lives_sent(w, m);
	expiring_sent(m);
	mutate_sent(w, m);
}

static bool execute(struct lan *lan, struct message *m)
{
	struct world *w = lan->arg;

	mutate_execute(w, m);
	if (w->form)
		form_execute(w, m);
	else
		check_execute(w, m);
	return true;
}

static void executed(struct lan *lan, struct message *m)
{
	struct world *w = lan->arg;

	mutate_executed(w, m);
	if (looks_elsewhere(w, m))
		m->result = (struct result){ .status = RESULT_MISS };
}

static void broken(struct lan_proxy *p, int server)
{
	struct world *w = p->lan->arg;

	(void)server;
	if (w->form)
		dates_broken(w);
}

/* A CAS that waited while its server was down is sent again with its old id. */
static bool sent_again(struct lan *lan, struct message *m)
{
	const struct world *w = lan->arg;

	if (w->mutation != MUTATION_STALE_CAS || m->call.verb != CALL_CAS)
		return false;
	note(m)->stale = true;
	m->later += lan_random(lan, 200 * MS);
	return true;
}

const struct lan_hooks network_hooks = {
	.note_size = sizeof(struct note),
	.arrival = arrival,
	.place = world_server,
	.clock_error = expiring_error,
	.is_in_packet = is_in_packet,
	.sent = sent,
	.execute = execute,
	.executed = executed,
	.broken = broken,
	.sent_again = sent_again,
};
