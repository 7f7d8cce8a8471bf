/*
 * The checks of sets in encodings other than oplog. After each executed call, form.c reads the
 * stored bytes. A member may change only if a command of the call requests it. So a compaction
 * changes nothing, and no command undoes another.
 *
 * The history of each member is known. An acknowledged command must have been in effect at some
 * moment between command and reply; or another command in flight had the opposite effect right
 * after it. Each member in the reply to a read must have been true at some moment between command
 * and reply.
 */
#include <stdio.h>

#include "form.h"
#include "protocol/commands.h"
#include "world.h"

static uint64_t mask_of(const struct sim_op *op)
{
	uint64_t mask = 0;

	for (int m = 0; m < SIM_MEMBERS; m++)
		mask |= op->members[m] ? 1ull << m : 0;
	return mask;
}

static const uint64_t everything = (1ull << SIM_MEMBERS) - 1;

/* --- commands and their effects --- */

void form_issued(struct sim_op *op)
{
	struct form_command *c = &op->world->form_truth.commands[op->number];
	uint64_t mask = mask_of(op);

	*c = (struct form_command){
		.client = op->client, .key = op->key, .issued = op->issued, .ended = UINT64_MAX
	};
	switch (op->command) {
	case COMMAND_SADD:
	case COMMAND_SADDX:
		c->adds = mask;
		break;
	case COMMAND_SREM:
		c->removes = mask;
		break;
	case COMMAND_SSET:
		c->dates = true;
		c->adds = mask;
		c->removes = everything & ~mask;
		break;
	case COMMAND_SPOP:
	case COMMAND_STAKE:
		c->pops = true;
		c->removes = everything;
		break;
	case COMMAND_TOUCH:
		c->dates = true;
		if (op->exptime > SIM_DATE)
			break;
		/* fall through */
	case COMMAND_DELETE:
		c->deletes = op->command == COMMAND_DELETE;
		c->ends = true;
		c->removes = everything;
		break;
	default:
		break;
	}
}

static bool is_removal(const struct call *call)
{
	return call->verb == CALL_DELETE || (call->verb == CALL_CAS && call->exptime < 0);
}

void form_sent(struct world *w, struct message *m)
{
	int key = form_key(w->form, m->call.key);
	unsigned deletes = 0;
	struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		const struct form_command *c = &w->form_truth.commands[op->number];
		if (op->proxy != m->proxy || op->key != key)
			continue;
		note(m)->wants.adds |= c->adds;
		note(m)->wants.removes |= c->removes;
		note(m)->wants.pops |= c->pops;
		note(m)->wants.ends |= c->ends;
		if (c->deletes && is_removal(&m->call)) {
			note(m)->asked = op->number;
			deletes++;
		}
	}
	if (deletes > 1)
		note(m)->asked = 0;
}

/*
 * Returns whether another command in flight, other than an earlier one of this client, had the
 * opposite effect. A pop of a member may also precede another command that removes it, unless that
 * is a pop too.
 */
static bool opposed(const struct sim_op *op, int member, bool want)
{
	const struct world *w = op->world;
	bool pops = op->command == COMMAND_SPOP || op->command == COMMAND_STAKE;

	for (size_t i = 1; i <= w->commands; i++) {
		const struct form_command *c = &w->form_truth.commands[i];
		if (c->key != op->key || i == op->number || c->ended <= op->issued ||
			(c->client == op->client && i < op->number))
			continue;
		if ((want || (pops && !c->pops) ? c->removes : c->adds) >> member & 1)
			return true;
		if (!want && c->adds >> member & 1)
			return true;
	}
	return false;
}

/* --- stored members --- */

static void take_over(struct world *w, int key, uint64_t members, enum form_state state)
{
	struct truth_set *set = &w->truth.sets[key];

	for (int m = 0; m < SIM_MEMBERS; m++) {
		bool in = members >> m & 1;
		if (set->in[m] && !in && w->form_truth.taking)
			w->form_truth.taken[key][m]++;
		else if (set->in[m] && !in && w->form_truth.damaged[key] >> m & 1)
			w->form_truth.dropped[key][m] = w->truth.tick;
		truth_set_member(&w->truth, key, m, in);
	}
	truth_set_absent(&w->truth, key, state != FORM_WHOLE);
	if (state == FORM_LOST)
		w->form_truth.lost[key] = w->truth.tick;
	if (state != FORM_WHOLE && w->form_truth.state[key] == FORM_WHOLE)
		w->form_truth.gone[key] = w->truth.tick;
	w->form_truth.state[key] = state;
	w->form_truth.members[key] = members;
}

/* Members that commands without a reply add, or remove. */
static uint64_t under_way(const struct world *w, int key, bool want)
{
	uint64_t members = 0;

	for (size_t i = 1; i <= w->commands; i++) {
		const struct form_command *c = &w->form_truth.commands[i];
		if (c->key == key && c->ended == UINT64_MAX)
			members |= want ? c->adds : c->removes;
	}
	return members;
}

/* Marks an sset under way as executed when the set has exactly its members. */
static void find_sset(struct world *w, int key, uint64_t members)
{
	struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		uint64_t differ = mask_of(op) ^ members;
		if (op->command != COMMAND_SSET || op->key != key)
			continue;
		/* Other commands in flight may follow it, at the same moment. */
		if (differ && w->form->exempt & EXEMPT_SSET_RACES)
			differ &= ~((members & under_way(w, key, true)) |
				(~members & under_way(w, key, false)));
		op->executed[0] |= !differ;
	}
}

static const char *wrong_change(const struct world *w, int key, enum form_state state,
	uint64_t members, const struct message *m)
{
	uint64_t before = w->form_truth.members[key];
	uint64_t in = members & ~before, out = before & ~members;
	enum form_state was = w->form_truth.state[key];

	if (state == FORM_WRONG)
		return "what is stored is not of the encoding";
	if (!m && w->form->exempt & EXEMPT_FLICKER) {
		in &= ~under_way(w, key, false);
		out &= ~under_way(w, key, true);
	}
	if (!m) {
		if (state == FORM_WHOLE && (in || out) && !(w->form->exempt & EXEMPT_PARTS))
			return "a set of which a part is gone is taken for whole";
		return NULL;
	}
	/* A list may be evicted before it is named, and the rest of a lost set is deleted. */
	if (state != FORM_WHOLE && was == FORM_WHOLE)
		return note(m)->wants.ends || (state == FORM_LOST && w->evictions) ||
				!(before & ~w->form_truth.damaged[key])
			? NULL
			: "a set was lost";
	if (state != FORM_WHOLE)
		return NULL;
	/* Who has read it before it was lost may put it back. */
	in &= ~(note(m)->wants.adds | w->form_truth.damaged[key]);
	out &= ~(note(m)->wants.removes | w->form_truth.damaged[key]);
	if ((in || out) && w->form->exempt & EXEMPT_FLICKER) {
		in &= ~under_way(w, key, false);
		out &= ~under_way(w, key, true);
	}
	if ((in || out) && w->form->exempt & EXEMPT_LATE) {
		in &= ~under_way(w, key, true);
		out &= ~under_way(w, key, false);
	}
	return in     ? "a member came in that nobody adds"
		: out ? "a member went that nobody removes"
		      : NULL;
}

/* A call of a delete removed the set, and with it members that no other command was removing. */
static void find_wiped(struct world *w, int key, const struct message *m)
{
	struct form_command *c = &w->form_truth.commands[note(m)->asked];
	uint64_t members =
		w->form_truth.members[key] & ~w->form_truth.damaged[key] & ~under_way(w, key, true);

	for (size_t i = 1; i <= w->commands; i++) {
		const struct form_command *other = &w->form_truth.commands[i];
		if (i != note(m)->asked && other->key == key && other->ended == UINT64_MAX)
			members &= ~other->removes;
	}
	c->wiped |= members != 0;
}

/* A lost flip leaves nothing that a delete could report as deleted. */
static bool took_away(
	const struct world *w, int key, const struct message *m, enum form_state state)
{
	enum form_state was = w->form_truth.state[key];

	if (!m || !note(m)->wants.ends || !is_removal(&m->call))
		return false;
	return was == FORM_LOST && w->form->rule.encoding != ENCODING_FLIP
		? state == FORM_MISSING
		: was == FORM_WHOLE && state != FORM_WHOLE;
}

/* Reads a collection after a call, or after a loss when `m` is NULL. */
static void follow(struct world *w, int key, const struct message *m)
{
	uint64_t members = 0, changed;
	enum form_state state = w->form->read(w, key, &members);
	const char *wrong;

	if (state != FORM_WHOLE)
		members = 0;
	changed = members ^ w->form_truth.members[key];
	wrong = wrong_change(w, key, state, members, m);
	if (wrong)
		world_fail(w, wrong, "key %d, members %llx of %llx changed", key,
			(unsigned long long)changed, (unsigned long long)members);
	if (changed || state != w->form_truth.state[key])
		lan_say(&w->lan, "key %d is %d %012llx, was %d %012llx\n", key, (int)state,
			(unsigned long long)members, (int)w->form_truth.state[key],
			(unsigned long long)w->form_truth.members[key]);
	/*
	 * A proxy that read it before the loss may restore it, and a write during the loss may
	 * appear when it is restored.
	 */
	if (state == FORM_MISSING && m)
		w->form_truth.damaged[key] = 0;
	else if (m && state == FORM_LOST)
		w->form_truth.damaged[key] |= note(m)->wants.adds | changed;
	else if (!m)
		w->form_truth.damaged[key] |= changed;
	/* So may an item have been that is part of a set which is being made. */
	if (!m && state != FORM_WHOLE)
		w->form_truth.gone[key] = w->form_truth.evicted[key] = w->truth.tick;
	w->form_truth.taking = m && note(m)->wants.pops;
	if (m && note(m)->asked && w->form_truth.state[key] == FORM_WHOLE && state != FORM_WHOLE)
		find_wiped(w, key, m);
	w->deleted[key] += took_away(w, key, m, state);
	take_over(w, key, members, state);
	if (m && state == FORM_WHOLE)
		find_sset(w, key, members);
	dates_follow(w, key, m);
}

void form_time(struct world *w)
{
	w->truth.tick++;
	w->form_truth.second = world_now(w) / 1000;
	for (int key = 0; key < SIM_KEYS; key++)
		follow(w, key, NULL);
}

void form_execute(struct world *w, struct message *m)
{
	int key = form_key(w->form, m->call.key);

	/* Items expire when a second begins. */
	if (world_now(w) / 1000 != w->form_truth.second)
		form_time(w);
	m->result = memcached_call(&w->lan.servers[m->server], &m->call, world_now(w));
	w->truth.tick++;
	dates_check(w, m);
	if (m->result.status != RESULT_DONE || m->call.verb == CALL_GET)
		return;
	if (key < 0)
		world_fail(w, "an item that is no part of a collection", "%.*s", (int)m->call.key.n,
			m->call.key.p);
	else
		follow(w, key, m);
}

/* --- replies --- */

/* The first moment from `from` on at which it was this; 0 for none. */
static uint64_t first(const struct history *h, uint64_t from, bool value)
{
	for (size_t i = 0; i < h->count; i++) {
		if (h->changes[i].value == value &&
			(i + 1 == h->count || h->changes[i + 1].tick > from))
			return h->changes[i].tick > from ? h->changes[i].tick : from;
	}
	return 0;
}

/* The set was lost, or expired, while the operation was in flight. */
static bool ended(const struct sim_op *op)
{
	const struct form_truth *t = &op->world->form_truth;

	return t->lost[op->key] > op->issued || t->gone[op->key] > op->issued ||
		t->state[op->key] == FORM_LOST;
}

void form_stored(struct sim_op *op)
{
	struct world *w = op->world;
	const struct form_command *c = &w->form_truth.commands[op->number];

	for (int m = 0; m < SIM_MEMBERS; m++) {
		bool want = c->adds >> m & 1;
		uint64_t tick;
		if (!((c->adds | c->removes) >> m & 1))
			continue;
		tick = first(
			&w->truth.sets[op->key].members[m], check_since(op, op->before[m]), want);
		if (tick > w->executed[op->number])
			w->executed[op->number] = tick;
		if (!tick && !ended(op) && !(w->form_truth.damaged[op->key] >> m & 1) &&
			!opposed(op, m, want))
			world_fail(w, "acknowledged, but not done", "key %d member %d client %d",
				op->key, m, op->client);
	}
	if (op->command == COMMAND_SSET && !op->executed[0] && !ended(op) &&
		!(w->form->exempt & EXEMPT_SSET_RACES))
		world_fail(w, "an sset that was never what is stored", "key %d client %d", op->key,
			op->client);
}

void form_popped(struct sim_op *op, int member)
{
	struct world *w = op->world;
	unsigned *taken = &w->form_truth.taken[op->key][member];
	bool dropped = w->form->exempt & EXEMPT_PARTS &&
		w->form_truth.dropped[op->key][member] > op->issued;

	if (*taken)
		--*taken;
	else if (!dropped && !ended(op) && !opposed(op, member, false))
		world_fail(w, "a member was handed out that was not taken out", "key %d member %d",
			op->key, member);
}

bool form_was_evicted(const struct sim_op *op)
{
	return op->world->form_truth.evicted[op->key] > op->issued;
}

void form_reply(struct sim_op *op)
{
	struct world *w = op->world;

	check_reply(op);
	if (op->command == COMMAND_DELETE && check_says(op, "DELETED") &&
		!truth_was(&w->truth.sets[op->key].absent, op->issued, true))
		world_fail(w, "deleted, and there all the time", "key %d client %d", op->key,
			op->client);
	if (check_says(op, "NOT_FOUND") && w->form_truth.commands[op->number].wiped)
		world_fail(w, "not found, and deleted", "key %d client %d", op->key, op->client);
	dates_reply(op);
	/* After a failure it may still be executed. */
	if (!check_says(op, "SERVER_ERROR"))
		op->world->form_truth.commands[op->number].ended = op->world->truth.tick;
}
