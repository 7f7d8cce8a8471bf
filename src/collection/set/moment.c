#include "collection/set/moment.h"

/* Returns the number of members of a table that expire, and the first of their dates, or less. */
static uint64_t dated_of(const struct set_view *v, size_t run, size_t table, uint32_t *first)
{
	const struct set_run *r = &v->runs[run];
	const struct fence *fence;

	*first = 0;
	if (!r->ref.indexed || !r->index.part)
		return r->ref.dated;
	fence = &r->index.part->fences.list[table];
	*first = fence->first_date;
	return fence->dated;
}

/* Returns when a member of a run may expire next, after the moment of the view. */
static int64_t next_of_run(const struct set_view *v, size_t run)
{
	const struct set_run *r = &v->runs[run];
	int64_t next = INT64_MAX;

	if (!r->ref.dated)
		return next;
	for (size_t i = 0; i < r->ref.tables; i++) {
		const struct set_part *part = r->tables ? r->tables[i].part : NULL;
		uint32_t first;
		int64_t date;

		if (!dated_of(v, run, i, &first))
			continue;
		date = part && part->next_date > v->now ? part->next_date : first;
		/* The dates after it are not known. */
		if (date <= v->now)
			return v->now + 1;
		next = date < next ? date : next;
	}
	return next;
}

static int64_t next_of_runs(const struct set_view *v)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; v->dated_runs && i < v->run_count; i++) {
		int64_t date = next_of_run(v, i);
		next = date < next ? date : next;
	}
	return next;
}

void set_view_advance(struct set_view *v, int64_t now)
{
	bool overlay, head, runs;

	/* Dates that were not known may be by now, since answers have read their tables. */
	if (now >= v->fresh_until)
		v->fresh_until = next_of_runs(v);
	runs = now >= v->fresh_until;
	/* The clock of a server is an estimate, and members do not come back. */
	v->now = now > v->now ? now : v->now;
	overlay = fold_expire(&v->overlay, v->now);
	head = fold_expire(&v->head, v->now);
	if (overlay || head || runs)
		set_view_forget(v, head || runs);
	if (runs)
		v->fresh_until = next_of_runs(v);
}

bool set_view_is_spent(const struct set_view *v)
{
	for (size_t i = 0; v->dated_runs && i < v->run_count; i++) {
		if (oplog_is_spent(&v->runs[i].ref, v->now))
			return true;
	}
	return false;
}

bool set_view_expired(struct set_view *v, size_t run, uint64_t *out)
{
	enum { DATES = 64 /* read in one step */ };
	const struct set_run *r = &v->runs[run];
	bool there = true;

	*out = 0;
	if (!r->ref.dated)
		return true;
	if (r->ref.indexed && !set_view_index(v, run))
		return false;
	for (size_t i = 0; i < r->ref.tables; i++) {
		uint32_t first;
		if (!dated_of(v, run, i, &first) || first > v->now)
			continue;
		if (set_view_table(v, run, i)) {
			*out += r->tables[i].part->expired;
			set_view_spend(v, r->tables[i].part->table.count / DATES);
		} else {
			there = false;
		}
	}
	return there;
}

/* Moves a cursor to the newest entry of a member in the runs. SET_OUT if they have none. */
static enum set_found find_in_runs(struct set_view *v, struct slice member, struct table_cursor *c)
{
	for (size_t i = v->run_count; i-- > 0;) {
		size_t number = set_view_table_of(v, i, member);
		const struct table *table =
			number == SIZE_MAX ? NULL : set_view_table(v, i, number);

		if (!table)
			return SET_WANTED;
		if (table_seek(c, table, member) && slice_equal(table_member(c), member))
			return SET_IN;
	}
	return SET_OUT;
}

static enum set_found date_in_fold(const struct fold_member *m, uint32_t *date)
{
	*date = fold_date(m);
	return m->live ? SET_IN : SET_OUT;
}

enum set_found set_view_date(struct set_view *v, struct slice member, uint32_t *date)
{
	struct table_cursor c;
	enum set_found found;
	size_t i;

	*date = EXPIRY_NONE;
	if (fold_find(&v->overlay, member, &i))
		return date_in_fold(&v->overlay.members[i], date);
	found = find_in_runs(v, member, &c);
	if (found == SET_IN) {
		*date = table_date(c.table, c.at);
		return table_gone(&c, v->now) ? SET_OUT : SET_IN;
	}
	if (found == SET_OUT && fold_find(&v->head, member, &i))
		return date_in_fold(&v->head.members[i], date);
	return found;
}
