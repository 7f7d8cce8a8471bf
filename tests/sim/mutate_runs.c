/* Bugs in sorted runs: in stored items, and in reading and replacing a base. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stored_set.h"
#include "stored_table.h"
#include "util/check.h"
#include "world.h"

static bool begins(const struct call *call, enum call_verb verb, struct slice mark)
{
	return call->verb == verb && call->key.p[0] == 's' && call->key.n > SIM_KEY_SIZE &&
		slice_starts(call->value, mark);
}

/* --- a fence that is too high --- */

/* The table with this id, stored or still on its way. */
static struct slice find_table(struct world *w, const struct call *call, struct slice id)
{
	struct memcached_item *item;
	char key[32];
	struct slice name = slice_of(key,
		(size_t)snprintf(
			key, sizeof(key), "%.*s.%.*s", SIM_KEY_SIZE, call->key.p, (int)id.n, id.p));

	for (size_t i = 0; i < w->lan.count; i++) {
		const struct message *m = w->lan.heap[i];
		if (!m->gone && m->call.verb == CALL_ADD && slice_equal(m->call.key, name))
			return m->call.value;
	}
	item = world_find(w, name);
	return item ? buf_slice(&item->value) : slice_of("", 0);
}

/* A fence above the first member of the table and not above its second one; empty when there is no table. */
static struct slice raised(struct slice table, char out[16])
{
	enum { FIRST = 4, NAME = 4, SECOND = FIRST + NAME };
	size_t shared;

	if (table.n < SECOND + 4 || !slice_starts(table, SLICE("T1")))
		return slice_of("", 0);
	memcpy(out, table.p + FIRST, NAME);
	out[NAME] = '!';
	shared = (unsigned char)table.p[SECOND];
	if (table.p[table.n - 4] == 1 || shared == 0)
		return slice_of(out, NAME + 1);
	memcpy(out + shared, table.p + SECOND + 2, NAME - shared);
	return slice_of(out, NAME);
}

/* --- a removal that is lost in packing --- */

static void note_checks(struct world *w, uint64_t was, struct slice value)
{
	w->index_checks[w->index_count++ % SIM_INDEXES] =
		(struct index_check){ was, check_of(value) };
}

static void lose_removal(struct world *w, struct message *m)
{
	uint64_t was = check_of(m->call.value);

	if (stored_lose_removal(m->call.value))
		note_checks(w, was, m->call.value);
}

/* Puts the checks of changed tables into an index. */
static void set_table_checks(struct world *w, struct message *m)
{
	size_t count = w->index_count < SIM_INDEXES ? w->index_count : SIM_INDEXES;
	uint64_t was = check_of(m->call.value);

	for (size_t i = 0; i < count; i++) {
		char *at = memmem(m->call.value.p, m->call.value.n, &w->index_checks[i].was,
			sizeof(uint64_t));
		if (at)
			memcpy(at, &w->index_checks[i].is, sizeof(uint64_t));
	}
	if (check_of(m->call.value) != was)
		note_checks(w, was, m->call.value);
}

static void set_value(struct message *m, struct slice value)
{
	char *before = m->bytes;

	m->call.value = value;
	m->bytes = memcached_keep_call(&m->call);
	free(before);
}

static void raise_fence(struct world *w, struct message *m)
{
	enum { MARK = 2, ENTRY = 12 + 8 + 4 };
	struct slice old = m->call.value, fence, next = slice_skip(old, MARK);
	char first[16];
	struct buf value = BUF_EMPTY;

	/* All numbers are below 128, so that each takes one byte. Only the bytes of a table may take two. */
	for (size_t n = 0; next.n; n++) {
		struct slice entry = next;
		size_t size = ENTRY + (entry.p[ENTRY - 4] < 0);
		size += (unsigned char)entry.p[size - 1];
		next = slice_skip(next, size);
		fence = n ? raised(find_table(w, &m->call, slice_of(entry.p, 12)), first)
			  : slice_of("", 0);
		if (!fence.n || (next.n && world_chance(w, 50)))
			continue;
		size = ENTRY + (entry.p[ENTRY - 4] < 0) - 1;
		buf_add(&value, old.p, (size_t)(entry.p - old.p) + size);
		buf_add(&value, &(char){ (char)fence.n }, 1);
		buf_add_slice(&value, fence);
		buf_add_slice(&value, next);
		note_checks(w, check_of(old), buf_slice(&value));
		set_value(m, buf_slice(&value));
		buf_free(&value);
		return;
	}
}

/* Puts the checks of changed indexes into a base that refers to them. */
static void set_checks(struct world *w, struct message *m)
{
	size_t count = w->index_count < SIM_INDEXES ? w->index_count : SIM_INDEXES;
	char was[17], is[17];
	char *at;

	for (size_t i = 0; i < count; i++) {
		snprintf(was, sizeof(was), "%016" PRIx64, w->index_checks[i].was);
		snprintf(is, sizeof(is), "%016" PRIx64, w->index_checks[i].is);
		at = m->call.value.n
			? memmem(m->call.value.p, m->call.value.n, was, sizeof(was) - 1)
			: NULL;
		if (at)
			memcpy(at, is, sizeof(is) - 1);
	}
}

/* --- other mutations of calls that are sent --- */

static struct slice next_ref(struct slice *rest)
{
	struct slice token = rest->n && rest->p[0] == '@' ? slice_token(rest) : slice_of("", 0);

	if (token.n)
		*rest = slice_skip(*rest, rest->n > 0);
	return token;
}

static size_t count_refs(struct slice base)
{
	struct slice refs = stored_set_refs(base);
	size_t count = 0;

	while (next_ref(&refs).n)
		count++;
	return count;
}

static void swap_runs(struct message *m)
{
	struct slice refs = stored_set_refs(m->call.value), rest = refs, token, last = { "", 0 },
		     before = last;
	struct buf swapped = BUF_EMPTY;

	if (count_refs(m->call.value) < 2)
		return;
	while ((token = next_ref(&rest)).n) {
		before = last;
		last = token;
	}
	buf_add_slice(&swapped, last);
	BUF_ADD(&swapped, " ");
	buf_add_slice(&swapped, before);
	memcpy((char *)before.p, buf_slice(&swapped).p, buf_size(&swapped));
	buf_free(&swapped);
}

/* Changes the number of the first member. */
static void change_member(struct message *m)
{
	enum { NUMBER = 7 };

	((char *)m->call.value.p)[NUMBER] ^= 1;
}

void mutate_runs_sent(struct world *w, struct message *m)
{
	const struct call *call = &m->call;
	bool writes =
		world_set(call->key) >= 0 && call_stores(call->verb) && call->verb != CALL_APPEND;

	if (w->mutation == MUTATION_FENCE && begins(call, CALL_ADD, SLICE("I1")))
		raise_fence(w, m);
	if (w->mutation == MUTATION_LOST_REMOVAL && begins(call, CALL_ADD, SLICE("T2")))
		lose_removal(w, m);
	if (w->mutation == MUTATION_LOST_REMOVAL && begins(call, CALL_ADD, SLICE("I1")))
		set_table_checks(w, m);
	if ((w->mutation == MUTATION_FENCE || w->mutation == MUTATION_LOST_REMOVAL) && writes)
		set_checks(w, m);
	if (w->mutation == MUTATION_RUN_ORDER && writes && call->verb == CALL_CAS)
		swap_runs(m);
	if (w->mutation == MUTATION_TABLE_BYTE && begins(call, CALL_ADD, SLICE("T1")))
		change_member(m);
}

/* --- bugs at the server, and on the way back --- */

/* An sset may replace key 2. In the other keys only merges reduce the number of references. */
void mutate_runs_execute(struct world *w, struct message *m)
{
	int key = world_set(m->call.key);
	struct memcached_item *base = key < 0 ? NULL : world_find(w, m->call.key);

	if (w->mutation != MUTATION_EARLY_DELETE || !base || key == 2 || m->call.verb != CALL_CAS ||
		m->call.number != base->cas ||
		count_refs(m->call.value) >= count_refs(buf_slice(&base->value)))
		return;
	note(m)->lost = m->call.exptime >= 0;
	m->call.number -= note(m)->lost;
}

void mutate_runs_executed(struct world *w, struct message *m)
{
	struct slice value = m->result.value;
	int key = world_set(m->call.key);
	struct buf *view;

	if (note(m)->lost)
		m->result.status = RESULT_DONE;
	if (w->mutation != MUTATION_BLIND_VIEW || !m->proxy || key < 0 ||
		m->result.status != RESULT_HIT || m->call.verb != CALL_GET ||
		!(m->call.want & WANT_VALUE))
		return;
	view = &w->views[m->from][key];
	if (value.n <= buf_size(view))
		buf_consume(view, buf_size(view));
	buf_add_slice(view, slice_skip(value, buf_size(view)));
	m->result.value = buf_slice(view);
}
