/* The steps of the programs of model.h: each runs as a child, and uses variables of its parent. */
#include <string.h>

#include "model.h"

/* The servers that keep the absence of a server: all others. A majority must take or return it. */
enum { WITNESSES = MODEL_SERVERS - 1, MAJORITY = 2 };

static int witness(int server, int i)
{
	return (server + 1 + i) % MODEL_SERVERS;
}

static int count_ok(const struct model_op *op, unsigned slots)
{
	int count = 0;

	for (unsigned i = 0; i < slots; i++)
		count += op->answers[i].status == MODEL_OK;
	return count;
}

/* Takes over the absences of one server, by its witnesses. */
static bool take_absence(struct model_op *op, int server)
{
	struct model_proxy *p = &op->w->proxies[op->proxy];

	if (count_ok(op, WITNESSES) < MAJORITY)
		return false;
	for (int i = 0; i < WITNESSES; i++) {
		uint64_t absence = op->answers[i].absences[server];
		if (op->answers[i].status == MODEL_OK && absence > p->absences[server])
			p->absences[server] = absence;
	}
	return true;
}

static void ask_witnesses(struct model_op *op, int server, enum model_verb verb, uint64_t number)
{
	int most = op->w->mutation == MODEL_AWAY_ONE ? 1 : WITNESSES;

	for (int i = 0; i < WITNESSES; i++) {
		/* The last witness is not the server of the other copy. */
		int at = witness(server, (i + 1) % WITNESSES);
		struct model_call *call;
		if (verb == MODEL_RAISE && i >= most)
			break;
		call = model_call(op, (unsigned)i, at, verb);
		call->which = server;
		call->number = number;
	}
	op->needed = verb == MODEL_RAISE && most == 1 ? 1 : MAJORITY;
}

void model_step_absences(struct model_op *op)
{
	struct model_proxy *p = &op->w->proxies[op->proxy];

	PROGRAM(op)
	if (p->absences_read && op->w->now - p->absences_read <= MODEL_LEASE)
		FINISH(op, true);
	for (op->server = 0; op->server < 2; op->server++) {
		ask_witnesses(op, op->server, MODEL_READ_ABSENCES, 0);
		WAIT(op);
		if (!take_absence(op, op->server))
			FINISH(op, false);
	}
	p->absences_read = op->began;
	FINISH(op, true);
	END(op)
}

/* All clocks are within MODEL_SKEW of each other, and so are all stamps. */
void model_step_absent(struct model_op *op)
{
	struct model_proxy *p = &op->w->proxies[op->proxy];
	enum { BY_ANY_CLOCK = 2 * MODEL_SKEW };

	PROGRAM(op)
	op->server = op->parent->server;
	op->stamp = model_now(op) + stamp_at(BY_ANY_CLOCK);
	if (op->stamp < p->clock.last)
		op->stamp = p->clock.last;
	if (op->w->mutation == MODEL_NO_AWAY || p->raised[op->server] >= op->stamp)
		FINISH(op, true);
	op->stamp += stamp_at(MODEL_AHEAD);
	ask_witnesses(op, op->server, MODEL_RAISE, op->stamp);
	WAIT(op);
	if (count_ok(op, WITNESSES) < (op->w->mutation == MODEL_AWAY_ONE ? 1 : MAJORITY))
		FINISH(op, false);
	if (op->w->mutation != MODEL_NO_LEASE) {
		model_call(op, 0, 0, MODEL_SLEEP)->number = MODEL_LEASE + 1;
		WAIT(op);
	}
	model_trace(op->w, "proxy %d: server %d is absent", op->proxy, op->server);
	model_start(op->w, op->proxy, NULL, model_do_repair);
	if (p->cut[op->server] && op->w->servers[op->server].state == MODEL_UP)
		op->w->marks[MARK_lone_absences]++;
	p->raised[op->server] = op->stamp;
	if (p->absences[op->server] < op->stamp)
		p->absences[op->server] = op->stamp;
	FINISH(op, true);
	END(op)
}

/* Returns whether one copy is missing because the set is just being created. */
static bool is_being_created(struct model_op *op)
{
	int y = model_has(op->bases[1]);

	return model_has(op->bases[y]) && !model_has(op->bases[1 - y]) &&
		model_is_gone(op->bases[y]) &&
		model_horizon_of(op->bases[y]) + stamp_at(MODEL_SETTLED + 2 * MODEL_TIMEOUT) >
		model_now(op);
}

/*
 * A copy that is missing is made gone first: the two were read one after the other, and the set may
 * have been created between.
 */
void model_step_lose(struct model_op *op)
{
	struct model_op *of = op->parent;
	struct model_call *call;

	PROGRAM(op)
	if (is_being_created(of)) {
		model_call(op, 0, 0, MODEL_SLEEP)->number = MODEL_TIMEOUT / 2;
		WAIT(op);
		FINISH(op, false);
	}
	op->stamp = model_stamp(op);
	op->here = model_has(of->bases[0]);
	op->found = model_fold(op->w, of->bases[0], of->bases[1]).exists;
	if (!model_has(of->bases[op->here])) {
		model_call(op, 0, op->here, MODEL_ADD)->value = model_gone(op->w, op->stamp, 0);
		WAIT(op);
		op->w->lost |= op->found && op->answers[0].status != MODEL_EXISTS;
		if (op->answers[0].status != MODEL_OK)
			FINISH(op, false);
	}
	model_trace(op->w, "proxy %d: not whole", op->proxy);
	op->w->marks[MARK_lost] += op->found;
	op->w->lost |= op->found;
	for (unsigned y = 0; y < 2; y++) {
		if (!model_has(of->bases[y]))
			continue;
		call = model_call(op, y, (int)y, MODEL_CAS);
		call->cas = of->cas[y];
		call->value = model_gone(op->w, op->stamp, 0);
	}
	if (op->left)
		WAIT(op);
	FINISH(op, true);
	END(op)
}

/* Leaves in the parent: the bases, their cas ids, the servers that `failed`, and `found` if none. */
void model_step_get(struct model_op *op)
{
	struct model_op *of = op->parent;

	PROGRAM(op)
	model_call(op, 0, 0, MODEL_GET);
	model_call(op, 1, 1, MODEL_GET);
	WAIT(op);
	for (int y = 0; y < 2; y++) {
		bool ok = op->answers[y].status == MODEL_OK;
		of->bases[y] = ok ? op->answers[y].value : (struct slice){ NULL, 0 };
		of->cas[y] = ok ? op->answers[y].cas : 0;
		if (model_has(of->bases[y]))
			model_see(op, of->bases[y]);
	}
	of->failed = (op->answers[0].status != MODEL_OK) | (op->answers[1].status != MODEL_OK) << 1;
	of->found = !of->failed;
	FINISH(op, of->found);
	END(op)
}

/* Leaves the members of the table in `snapshot`; a table that one server lacks is added there. */
void model_step_table(struct model_op *op)
{
	struct model_op *of = op->parent;
	struct model_call *call;

	PROGRAM(op)
	of->snapshot = 0;
	if (of->table < 0)
		FINISH(op, true);
	for (int y = 0; y < 2; y++)
		model_call(op, (unsigned)y, y, MODEL_GET_TABLE)->which = of->table;
	WAIT(op);
	/* Which both servers lack: the set is not complete, unless its bases were replaced meanwhile. */
	if (op->answers[0].status == MODEL_MISS && op->answers[1].status == MODEL_MISS)
		of->tables_lost++;
	if (count_ok(op, 2) == 0)
		FINISH(op, false);
	op->server = op->answers[0].status != MODEL_OK;
	of->snapshot = op->answers[op->server].table;
	if (op->answers[1 - op->server].status != MODEL_MISS || op->w->mutation == MODEL_NO_TABLE)
		FINISH(op, true);
	call = model_call(op, 0, 1 - op->server, MODEL_ADD_TABLE);
	call->which = of->table;
	call->number = of->snapshot;
	WAIT(op);
	FINISH(op, true);
	END(op)
}

/* Both servers lack a table. If no base was replaced meanwhile, the set is lost. */
void model_step_incomplete(struct model_op *op)
{
	struct model_op *of = op->parent;

	PROGRAM(op)
	CHILD(op, model_step_get);
	if (of->found && op->found && op->cas[0] == of->cas[0] && op->cas[1] == of->cas[1])
		CHILD(op, model_step_lose);
	FINISH(op, false);
	END(op)
}

/* --- repair --- */

/*
 * Computes the joined base, closed if it is time: up to S before the bases were read, however long
 * that took. Returns whether a new table is needed.
 */
static bool compute(struct model_op *op)
{
	struct model_world *w = op->w;
	uint64_t read = w->mutation == MODEL_SLOW_CLOSE ? model_now(op) : op->stamp;
	uint64_t settled = stamp_before(read, w->mutation == MODEL_EARLY_CLOSE ? 0 : MODEL_SETTLED);
	uint64_t before = 0;
	struct model_set closed;

	for (int y = 0; y < 2; y++) {
		uint64_t h = model_has(op->bases[y]) ? model_horizon_of(op->bases[y]) : 0;
		before = h > before ? h : before;
	}
	op->next[0] = model_join(w, op->bases[0], op->bases[1], settled, 0);
	closed = model_fold(w, op->next[0], (struct slice){ NULL, 0 });
	op->horizon = model_horizon_of(op->next[0]);
	op->adds = closed.exists && op->horizon > before;
	return op->adds && w->table_count < MODEL_TABLES && model_below(w, 3) == 0;
}

/* Writes the closed part as a new table. */
static void add_table(struct model_op *op)
{
	struct model_world *w = op->w;
	/* Only words up to the horizon are in the table. */
	struct slice base = model_base(w, op->horizon, 0, -1, 0, op->next[0]);
	struct model_set all = model_fold(w, op->next[0], (struct slice){ NULL, 0 });
	struct model_set log = model_fold(w, base, (struct slice){ NULL, 0 });
	unsigned later = log.adds | log.removes;
	unsigned members = model_members(&all, op->snapshot) & ~later;

	op->table = w->table_count++;
	w->marks[MARK_tables]++;
	op->next[0] = model_base(w, op->horizon, 0, op->table, 0, op->next[0]);
	for (int y = 0; y < 2; y++) {
		struct model_call *call = model_call(op, (unsigned)y, y, MODEL_ADD_TABLE);
		call->which = op->table;
		call->number = members;
	}
}

/*
 * Writes both bases. A copy that is missing is added with the time of that. It keeps it until words
 * from before are settled: then each is in the other copy, or its absence is known.
 */
static void write_bases(struct model_op *op)
{
	struct model_world *w = op->w;
	bool both = model_has(op->bases[0]) && model_has(op->bases[1]);
	uint64_t settled = stamp_before(op->stamp, MODEL_SETTLED);
	bool exists = model_fold(w, op->next[0], (struct slice){ NULL, 0 }).exists;

	for (int y = 0; y < 2; y++) {
		bool has = model_has(op->bases[y]);
		uint64_t fill = w->mutation == MODEL_NO_F ? 0 : model_stamp(op);
		struct slice next;
		struct model_call *call;

		if (has)
			fill = model_fill_of(op->bases[y]);
		if (has && both && fill < settled)
			fill = 0;
		next = model_join(w, op->next[0], (struct slice){ NULL, 0 }, 0, fill);
		if (has ? slice_equal(next, op->bases[y]) : !op->found || !exists)
			continue;
		call = model_call(op, (unsigned)y, y, has ? MODEL_CAS : MODEL_ADD);
		if (w->mutation == MODEL_BLIND_REFILL)
			call->verb = MODEL_SET;
		call->cas = op->cas[y];
		call->value = next;
		op->written |= 1u << y;
	}
	w->marks[MARK_late_closes] += op->adds && op->left && model_has_late_append(w);
}

/* Deletes the bases of a set that has been gone for so long that no word from before is on its way. */
static bool clean(struct model_op *op)
{
	struct model_world *w = op->w;
	uint64_t old = stamp_before(op->stamp, 2 * MODEL_SETTLED);

	if (!op->found || model_fold(w, op->bases[0], op->bases[1]).exists)
		return false;
	for (int y = 0; y < 2; y++) {
		if (model_has(op->bases[y]) &&
			(model_horizon_of(op->bases[y]) >= old ||
				!model_believed(op, y, op->bases[y])))
			return false;
	}
	for (int y = 0; y < 2; y++) {
		if (model_has(op->bases[y]))
			model_call(op, (unsigned)y, y, MODEL_DELETE)->cas = op->cas[y];
	}
	return true;
}

/*
 * Deletes the former table if both bases that had it were replaced. If one was not, another repair may
 * just copy the table to the other server again.
 */
static void drop_tables(struct model_op *op)
{
	struct model_world *w = op->w;

	bool replaced = op->stored == 3 || (op->stored && w->mutation == MODEL_FOREIGN_TABLE);

	for (unsigned y = 0; y < 2; y++) {
		if (op->former >= 0 && op->former != op->table && replaced)
			model_call(op, y, (int)y, MODEL_DELETE_TABLE)->which = op->former;
	}
}

static unsigned stored(const struct model_op *op)
{
	return (op->answers[0].status == MODEL_OK) | (op->answers[1].status == MODEL_OK) << 1;
}

/*
 * Makes both bases the join, or adds it where it is missing. Fails if another write was faster.
 * Leaves the horizon in the parent.
 */
void model_step_repair(struct model_op *op)
{
	PROGRAM(op)
	CHILD(op, model_step_absences);
	if (!op->done)
		FINISH(op, false);
	op->stamp = model_now(op);
	CHILD(op, model_step_get);
	if (op->failed == 3 || (op->failed && op->w->mutation != MODEL_CLOSE_ALONE))
		FINISH(op, false);
	if (op->found && !model_whole(op)) {
		CHILD(op, model_step_lose);
		FINISH(op, false);
	}
	if (!model_has(op->bases[0]) && !model_has(op->bases[1]))
		FINISH(op, true);
	if (is_being_created(op)) {
		model_call(op, 0, 0, MODEL_SLEEP)->number = MODEL_TIMEOUT / 2;
		WAIT(op);
		FINISH(op, false);
	}
	if (clean(op)) {
		WAIT(op);
		FINISH(op, true);
	}
	op->former = op->table = model_fold(op->w, op->bases[0], op->bases[1]).table;
	op->tables_lost = 0;
	CHILD(op, model_step_table);
	if (op->tables_lost)
		CHILD(op, model_step_incomplete);
	if (!op->done || op->tables_lost)
		FINISH(op, false);
	if (compute(op) && op->found) {
		add_table(op);
		WAIT(op);
		if (stored(op) != 3)
			FINISH(op, false);
	}
	op->stored = op->written = 0;
	write_bases(op);
	if (op->left) {
		WAIT(op);
		op->stored = stored(op);
	}
	op->found = op->stored == op->written;
	op->parent->horizon = op->horizon;
	drop_tables(op);
	if (op->left)
		WAIT(op);
	FINISH(op, op->found);
	END(op)
}
