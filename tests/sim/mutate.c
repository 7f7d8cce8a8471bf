/* Bugs that are put in on purpose: into calls that are sent, or into their results. */
#include "form.h"
#include "protocol/commands.h"
#include "world.h"

enum { POINTER_KEY = SIM_KEY_SIZE + 7, LIST_KEY = SIM_KEY_SIZE + 2 };

/* Of equal members that follow one another in a delimited text, keeps one. */
static void write_once(struct call *call)
{
	struct slice rest = call->value, last = { "", 0 };
	struct buf once = BUF_EMPTY;

	while (rest.n) {
		const char *end = memchr(rest.p, ',', rest.n);
		struct slice member = slice_of(rest.p, end ? (size_t)(end - rest.p) + 1 : rest.n);
		if (!slice_equal(member, last))
			buf_add_slice(&once, member);
		last = member;
		rest = slice_skip(rest, member.n);
	}
	memcpy((char *)call->value.p, buf_slice(&once).p, buf_size(&once));
	call->value.n = buf_size(&once);
	buf_free(&once);
}

/* A read of the pointer right after an append returns the pointer from before the append. */
static void skip_check(struct world *w, struct message *m)
{
	int key = form_key(w->form, m->call.key);
	struct seen_pointer *seen = &w->pointers[m->from][key];

	if (m->call.verb == CALL_APPEND && m->call.key.n == LIST_KEY)
		seen->appended = true;
	else if (m->call.verb == CALL_GET && m->call.key.n == POINTER_KEY && seen->appended &&
		seen->name[0])
		note(m)->lie = *seen;
	else
		seen->appended = false;
}

static bool acks_early(const struct world *w, const struct message *m)
{
	const struct call *call = &m->call;

	if (w->mutation != MUTATION_EARLY_ACK)
		return false;
	if (w->form && w->form->rule.encoding != ENCODING_INDEXED)
		return call->verb == CALL_CAS && call->value.n > 0;
	return call->verb == CALL_ADD && call->key.n != SIM_KEY_SIZE;
}

/* The proxy gets the acknowledgement of a write that is still under way, and that may fail. */
static void acknowledge_early(struct world *w, struct message *m)
{
	lan_acknowledge(&w->lan, m, 5000 + world_random(w, 20000));
	m->gone = m->late && world_chance(w, 20);
}

void mutate_sent(struct world *w, struct message *m)
{
	struct call *call = &m->call;

	if (w->mutation == MUTATION_SET_FOR_CAS && call->verb == CALL_CAS && call->exptime >= 0)
		call->verb = CALL_SET;
	if (w->mutation == MUTATION_ONCE &&
		(call->verb == CALL_APPEND || call->verb == CALL_PREPEND))
		write_once(call);
	if (w->mutation == MUTATION_NO_CHECK)
		skip_check(w, m);
	if (acks_early(w, m))
		acknowledge_early(w, m);
	mutate_runs_sent(w, m);
	mutate_stakes_sent(w, m);
	mutate_lives_sent(w, m);
	mutate_leases_sent(w, m);
	mutate_expiring_sent(w, m);
}

void mutate_execute(struct world *w, struct message *m)
{
	const struct memcached_item *item = note(m)->stale ? world_find(w, m->call.key) : NULL;

	/* Eventually a server that has restarted assigns the same id to another item. */
	if (item)
		m->call.number = item->cas;
	mutate_runs_execute(w, m);
	mutate_expiring_execute(w, m);
}

/* Whether the proxy may have sent it for a claim. */
static bool is_claim(struct world *w, const struct message *m)
{
	const struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command == COMMAND_SCLAIM && op->proxy == m->proxy &&
			op->key == world_set(m->call.key) && m->call.verb == CALL_CAS)
			return true;
	}
	return false;
}

void mutate_executed(struct world *w, struct message *m)
{
	struct seen_pointer *seen;

	mutate_runs_executed(w, m);
	mutate_stakes_executed(w, m);
	mutate_lives_executed(w, m);
	mutate_leases_executed(w, m);
	mutate_expiring_executed(w, m);
	if (w->mutation == MUTATION_LOST_CLAIM && m->result.status == RESULT_EXISTS &&
		is_claim(w, m))
		m->result = (struct result){ .status = RESULT_DONE };
	if (w->mutation != MUTATION_NO_CHECK || m->call.key.n != POINTER_KEY ||
		m->result.status != RESULT_HIT)
		return;
	seen = m->proxy ? &w->pointers[m->from][form_key(w->form, m->call.key)] : NULL;
	if (note(m)->lie.name[0]) {
		m->result.value = slice_of(note(m)->lie.name, strlen(note(m)->lie.name));
		m->result.cas = note(m)->lie.cas;
	} else if (seen && m->result.value.n < sizeof(seen->name)) {
		memset(seen->name, 0, sizeof(seen->name));
		memcpy(seen->name, m->result.value.p, m->result.value.n);
		seen->cas = m->result.cas;
	}
}
