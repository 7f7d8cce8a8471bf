/* Bugs in members that expire: in their dates, in folds, and in the clocks of readers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stored_set.h"
#include "util/check.h"
#include "world.h"

enum { DATE_SIZE = 11 /* with its mark */, MS = 1000, MARK = 2, NUMBER = 4, INTERVAL = 16 };

bool mutate_expiring_needed(const struct world *w)
{
	switch (w->mutation) {
	case MUTATION_MERGE_DATE:
	case MUTATION_SPILL_DATE:
	case MUTATION_FOLD_DATE:
	case MUTATION_RENEWAL:
	case MUTATION_OLD_MOMENT:
	case MUTATION_OTHER_CLOCK:
	case MUTATION_SHOW_THROUGH:
	case MUTATION_LOST_EXPIRY:
	case MUTATION_EARLY_EXPIRY:
	case MUTATION_LATE_EXPIRY:
	case MUTATION_BLIND_SEXPIRE:
		return true;
	default:
		return false;
	}
}

/* --- clocks --- */

/* Returns the result that a proxy acts on now, if it is that of a read of the base of a set. */
static const struct message *read_of_base(const struct world *w)
{
	const struct message *m = w->starting ? NULL : w->lan.delivered;

	return m && m->call.verb == CALL_GET && world_set(m->call.key) >= 0 ? m : NULL;
}

int64_t mutate_expiring_clock(const struct lan_proxy *p, int server)
{
	const struct world *w = p->lan->arg;
	const struct message *read = read_of_base(w);
	int64_t full;

	switch (w->mutation) {
	case MUTATION_OTHER_CLOCK:
		return w->starting ? p->skew - (int64_t)w->lan.servers[server].ahead : 0;
	case MUTATION_EARLY_EXPIRY:
		return w->starting ? 0 : MS;
	case MUTATION_LATE_EXPIRY:
		return w->starting ? 0 : -MS;
	case MUTATION_OLD_MOMENT:
		full = read ? (int64_t)w->full_reads[p->index][world_set(read->call.key)] : 0;
		return full && !(read->call.want & WANT_VALUE) ? full - (int64_t)world_now(w) : 0;
	default:
		return 0;
	}
}

/* --- words --- */

/* Splits a token of a log. Returns its date, or 0. */
static uint32_t split(struct slice token, struct slice *member)
{
	*member = slice_skip(token, 1);
	return stored_take_date(member);
}

/* Returns the last token of a member in the log of a base, or an empty slice. */
static struct slice last_of(struct slice base, struct slice member)
{
	struct slice token, other, last = { "", 0 };

	while ((token = slice_token(&base)).n) {
		(void)split(token, &other);
		if ((token.p[0] == '+' || token.p[0] == '-') && slice_equal(other, member))
			last = token;
	}
	return last;
}

static void set_value(struct message *m, struct slice value)
{
	char *before = m->bytes;

	m->call.value = value;
	m->bytes = memcached_keep_call(&m->call);
	free(before);
}

static bool is_rewrite(struct world *w, const struct message *m, struct slice *before)
{
	const struct memcached_item *item =
		m->call.verb == CALL_CAS && m->call.exptime >= 0 && world_set(m->call.key) >= 0
		? world_find(w, m->call.key)
		: NULL;

	*before = item ? buf_slice(&item->value) : slice_of("", 0);
	return item && item->cas == m->call.number && !stored_lease_is(*before);
}

/* The first word with a date loses it. */
static void lose_date(struct message *m)
{
	struct slice rest = m->call.value, token, member;
	struct buf value = BUF_EMPTY;
	bool lost = false;

	while ((token = slice_token(&rest)).n) {
		bool dated = token.p[0] == '+' && split(token, &member);
		buf_add_word(
			&value, dated && !lost ? slice_of(token.p, token.n - DATE_SIZE) : token);
		lost |= dated;
	}
	set_value(m, buf_slice(&value));
	buf_free(&value);
}

/* Leaves out removals of members that the base before had with a date. */
static void lose_expired(struct message *m, struct slice before)
{
	struct slice rest = m->call.value, token, member;
	struct buf value = BUF_EMPTY;

	while ((token = slice_token(&rest)).n) {
		struct slice last = { "", 0 };
		if (token.p[0] == '-' && split(token, &member) == 0)
			last = last_of(before, member);
		if (!last.n || last.p[0] != '+' || !split(last, &member))
			buf_add_word(&value, token);
	}
	set_value(m, buf_slice(&value));
	buf_free(&value);
}

/* --- tables --- */

/* Returns whether the base refers to this run, by its id. */
static bool has_run(struct slice base, struct slice ref)
{
	enum { ID = 13 /* with @ */ };
	struct slice refs = stored_set_refs(base), token;

	while ((token = slice_token(&refs)).n) {
		if (token.n > ID && memcmp(token.p, ref.p, ID) == 0)
			return true;
	}
	return false;
}

static size_t count_refs(struct slice base)
{
	struct slice refs = stored_set_refs(base);
	size_t count = 0;

	while (slice_token(&refs).n)
		count++;
	return count;
}

/* Takes the dates out of a table that is not packed. Returns false if it has none. */
static bool take_dates(struct buf *value)
{
	struct slice old = buf_slice(value);
	struct buf new = BUF_EMPTY;
	uint32_t count;

	if (!slice_starts(old, SLICE("T3")))
		return false;
	memcpy(&count, old.p + old.n - NUMBER, NUMBER);
	BUF_ADD(&new, "T1");
	buf_add(&new, old.p + MARK, old.n - MARK - NUMBER - (size_t)count * NUMBER);
	buf_add(&new, old.p + old.n - NUMBER, NUMBER);
	buf_free(value);
	*value = new;
	return true;
}

/*
 * Writes a reference to a run as that of a table without dates. Returns false if it is no such
 * run.
 */
static bool add_undated(struct world *w, struct slice key, struct slice ref, struct buf *out)
{
	struct slice rest = slice_skip(ref, 13);
	uint64_t numbers[6];
	struct memcached_item *item;
	char name[32];
	size_t n = 0;

	while (n < 6 && stored_number(&rest, '.', &numbers[n]) && ++n && rest.n > 17)
		;
	if (ref.p[1] != 't' || n != 6)
		return false;
	n = (size_t)snprintf(name, sizeof(name), "%.*s.%.*s", (int)key.n, key.p, 12, ref.p + 1);
	item = world_find(w, slice_of(name, n));
	if (!item || !take_dates(&item->value))
		return false;
	stored_set_written(w, slice_of(name, n), buf_slice(&item->value));
	buf_printf(out, "%.*s.%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%zu.%016" PRIx64 " ", 13, ref.p,
		numbers[0], numbers[1], numbers[2], buf_size(&item->value),
		check_of(buf_slice(&item->value)));
	return true;
}

/* The new runs of a base lose their dates. */
static void lose_dates_of_runs(struct world *w, struct message *m, struct slice before)
{
	struct slice rest = m->call.value, token;
	struct buf value = BUF_EMPTY;

	while ((token = slice_token(&rest)).n) {
		if (token.p[0] != '@' || token.n < 20 || has_run(before, token) ||
			!add_undated(w, m->call.key, token, &value))
			buf_add_word(&value, token);
	}
	set_value(m, buf_slice(&value));
	buf_free(&value);
}

/* --- calls --- */

void mutate_expiring_sent(struct world *w, struct message *m)
{
	const struct memcached_item *item;

	if (w->mutation != MUTATION_BLIND_SEXPIRE || !note(m)->expires)
		return;
	item = world_find(w, m->call.key);
	if (!item || !slice_starts(m->call.value, buf_slice(&item->value)))
		return;
	m->call.verb = CALL_APPEND;
	m->call.value = slice_skip(m->call.value, buf_size(&item->value));
}

void mutate_expiring_execute(struct world *w, struct message *m)
{
	struct slice before;
	bool merges;

	if (!mutate_expiring_needed(w) || !is_rewrite(w, m, &before))
		return;
	merges = count_refs(m->call.value) <= count_refs(before);
	if (w->mutation == (merges ? MUTATION_MERGE_DATE : MUTATION_SPILL_DATE))
		lose_dates_of_runs(w, m, before);
	if (note(m)->expires || note(m)->claims || slice_starts(m->call.value, before))
		return;
	if (w->mutation == MUTATION_FOLD_DATE && merges)
		lose_date(m);
	if (w->mutation == MUTATION_LOST_EXPIRY && count_refs(m->call.value))
		lose_expired(m, before);
}

/* A read of a base without the removals that follow a word with a date. */
static void show_renewed(struct message *m)
{
	struct slice rest = m->result.value, token, member;

	if (stored_lease_is(rest))
		return;
	while ((token = slice_token(&rest)).n) {
		struct slice log = slice_of(
				     m->result.value.p, (size_t)(token.p - m->result.value.p)),
			     last = { "", 0 };
		if (token.p[0] == '-') {
			(void)split(token, &member);
			last = last_of(log, member);
		}
		if (!last.n || last.p[0] != '+' || !split(last, &member))
			buf_add_word(&m->value, token);
	}
	m->result.value = buf_slice(&m->value);
}

/* A read of a base without the words that have expired. */
static void leave_out_expired(const struct world *w, struct message *m)
{
	int64_t now = expiring_least(w, world_set(m->call.key), world_now(w));
	struct slice rest = m->result.value, token, member;

	if (stored_lease_is(rest))
		return;
	while ((token = slice_token(&rest)).n) {
		uint32_t date = token.p[0] == '+' ? split(token, &member) : 0;
		if (!date || date > now)
			buf_add_word(&m->value, token);
	}
	m->result.value = buf_slice(&m->value);
}

void mutate_expiring_executed(struct world *w, struct message *m)
{
	int key = world_set(m->call.key);

	if (!m->proxy || key < 0 || m->call.verb != CALL_GET || !(m->call.want & WANT_VALUE) ||
		m->result.status != RESULT_HIT)
		return;
	w->full_reads[m->from][key] = world_now(w);
	if (w->mutation == MUTATION_RENEWAL)
		show_renewed(m);
	if (w->mutation == MUTATION_SHOW_THROUGH)
		leave_out_expired(w, m);
}
