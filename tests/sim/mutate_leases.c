/* Bugs in leases: in how a set or list is completed, and in which lease is valid. */
#include "leases.h"
#include "lists.h"
#include "protocol/commands.h"
#include "stored_set.h"
#include "world.h"

enum { LEASE = 6 /* bytes of "@fill." */ };

static struct slice stored(struct world *w, struct slice key)
{
	const struct memcached_item *base = world_find(w, key);

	return base ? buf_slice(&base->value) : slice_of("", 0);
}

static bool of_lists(const struct world *w)
{
	return w->mutation == MUTATION_LIST_FILL_SET || w->mutation == MUTATION_LIST_FILL_SIDE ||
		w->mutation == MUTATION_LIST_OLD_TOKEN;
}

/* Returns whether clients load the collection with this key, and the mutation applies to it. */
static bool is_meant(const struct world *w, struct slice key)
{
	return of_lists(w) ? lists_index(key) == LOADED_LIST : world_set(key) == LEASES_KEY;
}

/* Returns whether it is being loaded. */
static bool is_loading(const struct world *w, struct slice base)
{
	return of_lists(w) ? list_leases_is(base) : stored_lease_is(base);
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

/* The members in the log of the new base that are not words of the old one follow these. */
static void put_behind(struct world *w, struct call *call)
{
	struct slice words = log_of(stored(w, call->key)), log = log_of(call->value);
	struct buf turned = BUF_EMPTY;

	if (words.n == 0 || log.n <= words.n ||
		!slice_equal(slice_skip(log, log.n - words.n), words))
		return;
	buf_add_slice(&turned, words);
	buf_add(&turned, log.p, log.n - words.n);
	memcpy((char *)log.p, turned.data + turned.start, log.n);
	buf_free(&turned);
}

/*
 * Elements that others pushed at the tail are placed in front: the log of a list moves to its
 * head.
 */
static void put_in_front(struct call *call)
{
	struct slice log = log_of(call->value),
		     front = slice_of(call->value.p, call->value.n - log.n);
	struct buf turned = BUF_EMPTY;

	buf_add_slice(&turned, log);
	buf_add_slice(&turned, front);
	memcpy((char *)call->value.p, turned.data + turned.start, call->value.n);
	buf_free(&turned);
}

/* Writes form 1 over the mark of form 3. */
static void write_narrow_mark(struct call *call)
{
	char *at = (char *)memmem(call->value.p, call->value.n, "@set.3 ", 7);

	if (at)
		at[5] = '1';
}

static void write_narrow_lease(struct call *call)
{
	char *end = (char *)call->value.p + call->value.n;
	char *at = (char *)memmem(call->value.p, call->value.n, "@fill.", LEASE);
	size_t dots = 0;

	for (; at && at < end && *at != ' '; at++)
		dots += *at == '.';
	if (dots != 4)
		return;
	memmove(at - 2, at, (size_t)(end - at));
	call->value.n -= 2;
}

void mutate_leases_sent(struct world *w, struct message *m)
{
	struct call *call = &m->call;

	if (w->mutation == MUTATION_NARROW && call->verb == CALL_CAS && call->value.n)
		write_narrow_mark(call);
	if (w->mutation == MUTATION_LEASE_NARROW && call->verb == CALL_CAS && call->value.n)
		write_narrow_lease(call);
	if (call->verb != CALL_CAS || call->exptime < 0 || !is_meant(w, call->key) ||
		!is_loading(w, stored(w, call->key)) || is_loading(w, call->value))
		return;
	if (w->mutation == MUTATION_LIST_FILL_SIDE)
		put_in_front(call);
	if (w->mutation == MUTATION_FILL_SET || w->mutation == MUTATION_LIST_FILL_SET)
		call->verb = CALL_SET;
	if (w->mutation == MUTATION_FILL_BEHIND)
		put_behind(w, call);
}

/* The token of a command under way at this proxy that loads. */
static const char *token_of(struct world *w, const struct message *m)
{
	const struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->ended || op->proxy != m->proxy)
			continue;
		if (of_lists(w) ? op->command == COMMAND_LLOAD || op->command == COMMAND_LFILL
				: op->command == COMMAND_SLOAD || op->command == COMMAND_SFILL)
			return op->token;
	}
	return NULL;
}

/* The proxy reads the token of its client, or a deadline that has passed. */
void mutate_leases_executed(struct world *w, struct message *m)
{
	bool token = w->mutation == MUTATION_OLD_TOKEN || w->mutation == MUTATION_LIST_OLD_TOKEN,
	     deadline = w->mutation == MUTATION_HASTY;
	const char *own = token && m->proxy ? token_of(w, m) : NULL;
	char *at;

	if (!(own || deadline) || m->call.verb != CALL_GET || !is_meant(w, m->call.key) ||
		m->result.status != RESULT_HIT || !is_loading(w, m->result.value))
		return;
	buf_add_slice(&m->value, m->result.value);
	m->result.value = buf_slice(&m->value);
	at = (char *)memmem(m->result.value.p, m->result.value.n, "@fill.", LEASE) + LEASE;
	if (own) {
		memcpy(at, own, STORED_TOKEN);
		return;
	}
	for (at += STORED_TOKEN + 1; *at != '.'; at++)
		*at = '1';
}
