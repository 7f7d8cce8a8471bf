/*
 * stake in oplog: each member that a rewrite takes out of a set is in exactly one reply. A rewrite
 * is that of any stake that its proxy has in flight for the set.
 */
#include "../unit/parts.h"
#include "protocol/commands.h"
#include "world.h"

/* Returns whether the proxy has another stake than `self` in flight. */
static bool has_stake(
	struct world *w, const struct lan_proxy *proxy, int key, const struct sim_op *self)
{
	const struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op != self && op->command == COMMAND_STAKE && op->key == key && !op->ended &&
			op->proxy == proxy)
			return true;
	}
	return false;
}

/* Returns whether a stake has failed whose rewrite may still be executed. */
static bool has_late_stake(struct world *w, int key)
{
	const struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command == COMMAND_STAKE && op->key == key && op->ended)
			return true;
	}
	return false;
}

/* A member is taken, unless it has expired for the stake, which was issued before. */
static void take(struct world *w, const struct lan_proxy *proxy, int key, int member)
{
	struct sim_stakes *stakes = &w->stakes[proxy->index][key];
	uint32_t date = w->truth.sets[key].dates[member];
	uint64_t issued = w->truth.tick;
	const struct sim_op *op;

	if (!expiring_may_drop(w, key, date)) {
		stakes->taken[member]++;
		return;
	}
	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command == COMMAND_STAKE && op->key == key && !op->ended &&
			op->proxy == proxy && op->issued < issued)
			issued = op->issued;
	}
	stakes->maybe[member] += date > expiring_least(w, key, truth_time(&w->truth, issued));
}

bool stakes_written(
	struct world *w, const struct message *message, int key, const bool members[SIM_MEMBERS])
{
	struct sim_stakes *stakes = &w->stakes[message->from][key];
	bool *in = w->truth.sets[key].in;
	bool waits = message->proxy && has_stake(w, message->proxy, key, NULL);

	if (message->call.verb != CALL_CAS || (!waits && !has_late_stake(w, key)))
		return false;
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (members[m] && !in[m])
			return false;
	}
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (!in[m] || members[m])
			continue;
		if (waits)
			take(w, message->proxy, key, m);
		truth_set_member(&w->truth, key, m, false);
	}
	/* It may be an sset of these members instead, which has the same effect. */
	stakes->unsure |= check_is_sset(w, key, members);
	return true;
}

/* Marks all members of a reply as returned. */
static void give(struct sim_op *op, struct sim_stakes *stakes)
{
	struct slice rest = buf_slice(&op->reply), word;
	struct part part;

	if (!parts_next(&rest, &part) || part.key.n == 0)
		return;
	while ((word = slice_token(&part.data)).n) {
		int m = truth_member(word);
		if (m >= 0 && stakes->taken[m] == 0 && stakes->maybe[m])
			stakes->maybe[m]--;
		else if (m < 0 || stakes->taken[m] == 0)
			world_fail(op->world, "a member is returned that was not taken for it",
				"key %d %.*s client %d", op->key, (int)word.n, word.p, op->client);
		else
			stakes->taken[m]--;
	}
}

/* What is left when no stake is in flight was in no reply. */
static void check_left(struct sim_op *op, struct sim_stakes *stakes)
{
	if (has_stake(op->world, op->proxy, op->key, op))
		return;
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (stakes->taken[m] && !stakes->unsure)
			world_fail(op->world, "a member was taken and is in no reply",
				"key %d member %d client %d", op->key, m, op->client);
	}
	*stakes = (struct sim_stakes){ .unsure = false };
}

void stakes_reply(struct sim_op *op)
{
	struct sim_stakes *stakes = &op->world->stakes[op->proxy->index][op->key];

	stakes->unsure |= op->proxy->dead || check_says(op, "SERVER_ERROR");
	if (check_says(op, "VALUE"))
		give(op, stakes);
	check_left(op, stakes);
}
