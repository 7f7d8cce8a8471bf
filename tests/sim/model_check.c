/* What each history of model.h must show. */
#include "model.h"

/*
 * Writes within this time may be in either order: those of clocks that differ; and in a set that was
 * lost by both servers, and created again while one of them was unreachable.
 */
static int64_t tolerance(const struct model_world *w)
{
	if (w->owned && w->lossy)
		return MODEL_SETTLED / 2 + 2 * MODEL_SKEW;
	return w->apart ? 2 * MODEL_SKEW : 0;
}

/* Returns whether a later acknowledged write of the other value ended before the read began. */
static bool is_contradicted(
	const struct model_world *w, const struct model_write *o, const struct model_read *read)
{
	int64_t e = tolerance(w);

	for (int i = 0; i < w->write_count; i++) {
		const struct model_write *q = &w->writes[i];
		/* The stamps of one proxy grow. */
		int64_t order = q->proxy == o->proxy && !w->lossy ? 0 : e;
		if (q->member == o->member && q->adds != o->adds && q->ended && o->ended &&
			q->began > o->ended + order && q->ended < read->began - e)
			return true;
	}
	return false;
}

/* Returns whether a read may return this value of a member. */
static bool is_explained(
	const struct model_world *w, const struct model_read *read, int member, bool value)
{
	bool added = false;

	for (int i = 0; i < w->write_count; i++) {
		const struct model_write *o = &w->writes[i];
		if (o->member != member)
			continue;
		added |= o->adds && o->ended && o->ended < read->began - tolerance(w);
		if (o->adds == value && o->began <= read->ended && !is_contradicted(w, o, read))
			return true;
	}
	/* At first there are no members; and none after the set was lost. */
	return !value && (!added || (w->owned && (w->lost || w->lossy)));
}

static void check_reads(struct model_world *w)
{
	for (int i = 0; i < w->read_count; i++) {
		const struct model_read *read = &w->reads[i];
		for (int m = 0; m < MODEL_MEMBERS; m++) {
			bool value = read->members & 1u << m;
			if (!is_explained(w, read, m, value))
				model_fail(w, "a wrong read", "%c is%s a member, from %lld to %lld",
					'a' + m, value ? "" : " not",
					(long long)read->began - MODEL_START,
					(long long)read->ended - MODEL_START);
		}
	}
}

/*
 * A member is popped no more often than it was added, where a word that is sent again with a new stamp
 * adds it again; and claimed once for each delete, where a delete that takes long may delete twice.
 */
static void check_taken(struct model_world *w)
{
	const int claimed = MODEL_MEMBERS - 1;

	if (w->lost || w->lossy)
		return;
	if (w->claimed[claimed] > 1 + w->deletes)
		model_fail(w, "claimed twice", "%u times", w->claimed[claimed]);
	/* While the first server is unreachable, another proxy may pop the same member there. */
	if (w->faults == FAULTS_SIDES || (w->faults == FAULTS_ONE && w->faulty == 0))
		return;
	for (int m = 0; m < claimed; m++) {
		if (w->popped[m] > w->added[m])
			model_fail(w, "popped twice", "%c, %u times", 'a' + m, w->popped[m]);
	}
}

static void check_equal(struct model_world *w)
{
	struct slice a = w->servers[0].base, b = w->servers[1].base, none = { NULL, 0 };

	if (model_has(a))
		a = model_join(w, a, none, 0, 0);
	if (model_has(b))
		b = model_join(w, b, none, 0, 0);
	if (model_has(a) != model_has(b) || !slice_equal(a, b))
		model_fail(w, "the copies differ at the end", "%.*s and %.*s", (int)a.n,
			a.p ? a.p : "", (int)b.n, b.p ? b.p : "");
}

static void check_tables(struct model_world *w)
{
	for (int y = 0; y < 2; y++) {
		struct slice base = w->servers[y].base;
		int table = model_fold(w, base, (struct slice){ NULL, 0 }).table;
		if (table >= 0 && !w->servers[y].has_table[table])
			model_fail(w, "a copy without its table", "%d at server %d", table, y);
	}
}

void model_check(struct model_world *w)
{
	if (w->violation)
		return;
	check_reads(w);
	check_equal(w);
	check_tables(w);
	check_taken(w);
	if (w->lost &&
		(w->faults == FAULTS_NONE || (w->owned && w->faults == FAULTS_ONE && !w->unsteady)))
		model_fail(w, "a set was lost", "with at most one faulty server");
}
