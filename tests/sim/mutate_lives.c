/* Mutations of times to live, of the deletion of bases, and of missing items. */
#include <stdio.h>

#include "lists.h"
#include "stored_set.h"
#include "world.h"

/* In other encodings than oplog each item has a time to live that matters. */
static bool is_base(const struct world *w, struct slice key)
{
	return w->form || key.n == SIM_KEY_SIZE;
}

/* Subtracts the time by which a part outlives its base. */
static void take_margin(struct call *call)
{
	enum { MARGIN = 10, MARGIN_OF_DATE = 600 };

	if (call->exptime > SIM_DATE)
		call->exptime -= MARGIN_OF_DATE;
	else if (call->exptime > MARGIN)
		call->exptime -= MARGIN;
	else if (call->exptime)
		call->exptime = -1;
}

/* Returns the mutation that a rewrite with this base is subject to. */
static enum mutation date_mutation(const struct call *call)
{
	if (!memchr(call->value.p, '@', call->value.n))
		return call->key.p[0] == 'l' ? MUTATION_DATE_OF_LIST : MUTATION_DATE_OF_LOG;
	if (memmem(call->value.p, call->value.n, "@fill.", 6))
		return MUTATION_DATE_OF_LEASE;
	return call->key.p[0] == 'l' ? MUTATION_DATE_OF_LIST : MUTATION_DATE_OF_RUNS;
}

/* Removes the date from the end of a base. */
static void take_date(struct slice *base)
{
	const char *at = base->n ? memrchr(base->p, '~', base->n) : NULL;

	if (at && (at == base->p || at[-1] == ' '))
		base->n = (size_t)(at - base->p);
}

/* A read of a base that does not show its dates after the first one. */
static void show_first_date(struct message *m)
{
	struct slice rest = m->result.value, token;
	bool seen = false;

	while ((token = slice_token(&rest)).n) {
		bool dated = slice_starts(token, SLICE("~t"));
		if (!dated || !seen)
			buf_add_word(&m->value, token);
		seen |= dated;
	}
	m->result.value = buf_slice(&m->value);
}

static bool is_date(const struct call *call)
{
	return call->verb == CALL_APPEND && slice_starts(call->value, SLICE("~t"));
}

void mutate_lives_sent(struct world *w, struct message *m)
{
	struct call *call = &m->call;

	if (w->mutation == MUTATION_NO_MARGIN && !is_base(w, call->key) &&
		(call->verb == CALL_ADD || call->verb == CALL_TOUCH))
		take_margin(call);
	if (w->mutation == MUTATION_ONLY_TOUCH && is_base(w, call->key) && is_date(call))
		call->value.n = 0;
	if (w->mutation == MUTATION_ONLY_DATE && is_base(w, call->key) && call->verb == CALL_GAT)
		call->verb = CALL_GET;
	if (call->verb != CALL_CAS || !is_base(w, call->key))
		return;
	if (w->mutation == date_mutation(call) && !w->form)
		take_date(&call->value);
	if (w->mutation == MUTATION_NO_TTL && call->exptime > 0)
		call->exptime = 0;
	if (w->mutation == MUTATION_BLIND_EXPIRE && call->exptime < 0)
		call->verb = CALL_DELETE;
}

/* Deletes the first segment that the base of a list refers to. */
static void delete_segment(struct world *w, const struct message *m)
{
	enum { CHECK = 17 }; /* a dot and 16 digits */
	struct memcached_item *base = world_find(w, m->call.key);
	struct slice rest = base ? buf_slice(&base->value) : slice_of("", 0), id = { "", 0 };
	struct buf key = BUF_EMPTY;

	/* `@list` is the mark of the base. */
	for (struct slice token; !id.n && (token = slice_token(&rest)).n;) {
		if (slice_starts(token, SLICE("@s")) && token.n > 6)
			id = slice_skip(token, 1);
	}
	if (!id.n)
		return;
	if (memchr(id.p, ':', id.n))
		id.n = (size_t)((const char *)memchr(id.p, ':', id.n) - id.p);
	id.n -= CHECK;
	buf_add_slice(&key, m->call.key);
	BUF_ADD(&key, ".");
	buf_add_slice(&key, id);
	lan_call_lost(&w->lan, &(struct call){ .verb = CALL_DELETE, .key = buf_slice(&key) });
	buf_free(&key);
}

/* Omits each run with a missing item from a base that is read. */
static void leave_out(struct world *w, struct message *m)
{
	struct slice rest = m->result.value;
	struct buf *whole = &m->value;
	char key[32];

	while (rest.n) {
		const char *space = memchr(rest.p, ' ', rest.n);
		struct slice token =
			slice_of(rest.p, space ? (size_t)(space - rest.p) + 1 : rest.n);
		size_t n = (size_t)snprintf(key, sizeof(key), "%.*s.%.*s", (int)m->call.key.n,
			m->call.key.p, 12, token.n > 13 ? token.p + 1 : "");
		rest = slice_skip(rest, token.n);
		if (token.p[0] != '@' || token.n < 20 || world_find(w, slice_of(key, n)))
			buf_add_slice(whole, token);
	}
	m->result.value = buf_slice(whole);
}

/* Each rewrite reads the time to live right before its CAS and its touch, and of a date the server's clock. */
static bool is_before(const struct world *w, const struct message *m, enum call_verb verb)
{
	for (size_t i = 0; i < w->lan.count; i++) {
		const struct message *next = w->lan.heap[i];
		if (next->call.verb == verb && next->proxy == m->proxy &&
			next->number > m->number && next->number <= m->number + 2 &&
			slice_equal(next->call.key, m->call.key))
			return true;
	}
	return false;
}

void mutate_lives_executed(struct world *w, struct message *m)
{
	const struct call *call = &m->call;

	if (!is_base(w, call->key) || !m->proxy)
		return;
	if (w->mutation == MUTATION_NO_CLOCK && call->verb == CALL_STATS)
		m->result = (struct result){ .status = RESULT_MISS };
	if (w->mutation == MUTATION_LOST_DELETE && m->result.status == RESULT_MISS &&
		note(m)->asked &&
		(call->verb == CALL_DELETE || (call->verb == CALL_CAS && call->exptime < 0)))
		m->result = (struct result){ .status = RESULT_DONE };
	if (w->mutation == MUTATION_LOST_CAS && m->result.status == RESULT_EXISTS &&
		(note(m)->wants.pops || note(m)->asked))
		m->result = (struct result){ .status = RESULT_DONE };
	if (w->mutation == MUTATION_OLD_BASE && call->verb == CALL_CAS &&
		m->result.status == RESULT_EXISTS && lives_read_ahead(w, m))
		m->result = (struct result){ .status = RESULT_DONE };
	if (w->mutation == MUTATION_OLD_DATE && call->verb == CALL_GET &&
		m->result.status == RESULT_HIT && call->want & WANT_VALUE)
		show_first_date(m);
	if (call->verb == CALL_GET && call->want == WANT_TTL && w->mutation == MUTATION_NO_FOLLOW &&
		is_before(w, m, CALL_CAS))
		m->result = (struct result){ .status = RESULT_MISS };
	if (w->mutation == MUTATION_LIST_DELETE && call->verb == CALL_CAS &&
		call->key.p[0] == 'l' && m->result.status == RESULT_EXISTS)
		delete_segment(w, m);
	if (w->mutation == MUTATION_PART && call->verb == CALL_GET && call->want & WANT_VALUE &&
		call->key.p[0] == 's' && m->result.status == RESULT_HIT)
		leave_out(w, m);
}
