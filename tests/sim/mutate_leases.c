/* Bugs in leases: in how a set is completed, and in which lease is valid. */
#include "leases.h"
#include "stored_set.h"
#include "world.h"

enum { LEASE = 6 /* bytes of "@fill." */ };

static struct slice stored(struct world *w, struct slice key)
{
	const struct memcached_item *base = world_find(w, key);

	return base ? buf_slice(&base->value) : slice_of("", 0);
}

/* The log at the end of a base. */
static struct slice log_of(struct slice base)
{
	struct slice log = base;

	for (size_t i = 0; i < base.n; i++) {
		const char *space = memchr(base.p + i, ' ', base.n - i);
		if ((i == 0 || base.p[i - 1] == ' ') && base.p[i] == '@' && space)
			log = slice_skip(base, (size_t)(space - base.p) + 1);
	}
	return log;
}

/* The members in the log of the new base that are not words of the old one go behind these. */
static void put_behind(struct world *w, struct call *call)
{
	struct slice words = log_of(stored(w, call->key)), log = log_of(call->value);
	struct buf turned = BUF_EMPTY;

	if (words.n == 0 || log.n <= words.n || !slice_equal(slice_skip(log, log.n - words.n), words))
		return;
	buf_add_slice(&turned, words);
	buf_add(&turned, log.p, log.n - words.n);
	memcpy((char *)log.p, turned.data + turned.start, log.n);
	buf_free(&turned);
}

void mutate_leases_sent(struct world *w, struct message *m)
{
	struct call *call = &m->call;

	if (call->verb != CALL_CAS || call->exptime < 0 || world_set(call->key) != LEASES_KEY ||
		!stored_lease_is(stored(w, call->key)) || stored_lease_is(call->value))
		return;
	if (w->mutation == MUTATION_FILL_SET)
		call->verb = CALL_SET;
	if (w->mutation == MUTATION_FILL_BEHIND)
		put_behind(w, call);
}

/* The token of a command under way at this proxy that loads. */
static const char *token_of(struct world *w, const struct message *m)
{
	const struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (!op->ended && op->proxy == m->proxy &&
			(op->command == COMMAND_SLOAD || op->command == COMMAND_SFILL))
			return op->token;
	}
	return NULL;
}

/* The proxy sees the token that its client has, or a deadline that has passed. */
void mutate_leases_executed(struct world *w, struct message *m)
{
	bool token = w->mutation == MUTATION_OLD_TOKEN, deadline = w->mutation == MUTATION_HASTY;
	const char *own = token && m->proxy ? token_of(w, m) : NULL;
	char *at;

	if (!(own || deadline) || m->call.verb != CALL_GET || world_set(m->call.key) != LEASES_KEY ||
		m->result.status != RESULT_HIT || !stored_lease_is(m->result.value))
		return;
	buf_consume(&m->part, buf_size(&m->part));
	buf_add_slice(&m->part, m->result.value);
	m->result.value = buf_slice(&m->part);
	at = (char *)memmem(m->result.value.p, m->result.value.n, "@fill.", LEASE) + LEASE;
	if (own) {
		memcpy(at, own, STORED_TOKEN);
		return;
	}
	for (at += STORED_TOKEN + 1; *at != '.'; at++)
		*at = '1';
}
