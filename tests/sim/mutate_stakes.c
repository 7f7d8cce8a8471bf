/* Bugs in stake. */
#include <stdlib.h>

#include "protocol/commands.h"
#include "world.h"

/* Whether the proxy may have sent this call on a base for a stake. */
static bool is_stake(struct world *w, const struct message *m)
{
	const struct sim_op *op;

	if (!m->proxy || world_set(m->call.key) < 0 || w->form)
		return false;
	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command == COMMAND_STAKE && op->proxy == m->proxy && !op->ended &&
			op->key == world_set(m->call.key))
			return true;
	}
	return false;
}

/* Whether it is the rewrite of one: all others write at least the log that was there. */
static bool is_rewrite(struct world *w, const struct message *m)
{
	const struct memcached_item *item =
		m->call.verb == CALL_CAS && is_stake(w, m) ? world_find(w, m->call.key) : NULL;

	return item && m->call.exptime >= 0 && m->call.value.n < buf_size(&item->value);
}

static void keep_base(struct world *w, struct message *m)
{
	char *before = m->bytes;

	m->call.value = buf_slice(&world_find(w, m->call.key)->value);
	m->bytes = memcached_keep_call(&m->call);
	free(before);
}

void mutate_stakes_sent(struct world *w, struct message *m)
{
	if (w->mutation == MUTATION_STAKE_KEPT && is_rewrite(w, m))
		keep_base(w, m);
	if (w->mutation == MUTATION_STAKE_EARLY && is_rewrite(w, m))
		lan_acknowledge(&w->lan, m, 5000 + world_random(w, 20000));
}

void mutate_stakes_executed(struct world *w, struct message *m)
{
	int key = world_set(m->call.key);
	struct buf *view;

	if (w->mutation == MUTATION_STAKE_LOST && m->result.status == RESULT_EXISTS &&
		is_rewrite(w, m))
		m->result = (struct result){ .status = RESULT_DONE };
	if (w->mutation != MUTATION_STAKE_VIEW || !m->proxy || key < 0 ||
		m->result.status != RESULT_HIT || m->call.verb != CALL_GET ||
		!(m->call.want & WANT_VALUE))
		return;
	view = &w->views[m->from][key];
	if (is_stake(w, m) && buf_size(view)) {
		m->result.value = buf_slice(view);
		return;
	}
	buf_consume(view, buf_size(view));
	buf_add_slice(view, m->result.value);
}
