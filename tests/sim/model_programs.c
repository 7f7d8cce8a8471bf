/* The programs of model.h: the commands, as the proxies carry them out. */
#include <string.h>

#include "model.h"

enum { TRIES = 4 };

/* Servers by their answers to two calls. */
static void sort_answers(struct model_op *op)
{
	op->failed = op->stored = 0;
	for (unsigned y = 0; y < 2; y++) {
		op->failed |= (unsigned)(op->answers[y].status == MODEL_FAIL) << y;
		op->stored |= (unsigned)(op->answers[y].status == MODEL_OK) << y;
	}
	op->server = op->failed >> 1;
}

/* An answer that comes later than this after its stamp may be that of a word that is void. */
static bool is_late(const struct model_op *op)
{
	return op->w->mutation != MODEL_LATE_ACK &&
		model_now(op) > op->stamp + stamp_at(MODEL_SETTLED / 2);
}

int model_write(struct model_op *op, int member, bool adds)
{
	struct model_world *w = op->w;

	w->writes[w->write_count] = (struct model_write){
		.member = member, .proxy = op->proxy, .adds = adds, .began = w->now
	};
	return w->write_count++;
}

static void acknowledge(struct model_op *op)
{
	op->w->writes[op->write].ended = op->w->now;
	op->w->acknowledged++;
	model_trace(op->w, "proxy %d: %c%c acknowledged", op->proxy,
		op->w->writes[op->write].adds ? '+' : '-', 'a' + op->w->writes[op->write].member);
}

/* --- words --- */

/*
 * The base of a set that is created. Words that are not late are kept, since they may arrive after it.
 * If both servers said that it is missing, all words are kept that are not settled, because another
 * proxy may create it at the same time on the other server. If that is unreachable, it may have former
 * words of this set, and as few of them as possible are kept. All this counts from the time at which
 * the set was looked for.
 */
static struct slice created_base(const struct model_op *op, bool alone)
{
	struct model_world *w = op->w;
	uint64_t seen = w->mutation == MODEL_LATE_CREATE ? op->stamp : op->seen;
	uint64_t horizon = stamp_before(seen, alone ? MODEL_SETTLED / 2 : MODEL_SETTLED);

	return model_append(
		w, model_gone(w, horizon, 0), model_group(w, op->stamp, true, op->member, true));
}

/*
 * The first copy decides who creates the set. The second one needs no fill: a word that finds it
 * missing is not acknowledged before both copies have it.
 */
void model_step_create(struct model_op *op)
{
	struct model_op *of = op->parent;

	PROGRAM(op)
	op->server = of->failed & 1;
	if (of->failed) {
		CHILD(op, model_step_absences);
		if (!op->done || !model_miss_believed(op, op->server))
			FINISH(op, false);
	}
	of->stamp = model_stamp(op);
	model_call(op, 0, op->server, MODEL_ADD)->value = created_base(of, of->failed);
	WAIT(op);
	if (op->answers[0].status != MODEL_OK)
		FINISH(op, false);
	if (of->failed)
		FINISH(op, true);
	op->server = 1;
	model_call(op, 0, 1, MODEL_ADD)->value = created_base(of, false);
	WAIT(op);
	if (op->answers[0].status == MODEL_FAIL)
		CHILD(op, model_step_absent);
	else
		op->done = op->answers[0].status == MODEL_OK;
	FINISH(op, op->done);
	END(op)
}

void model_do_word(struct model_op *op)
{
	struct model_world *w = op->w;

	PROGRAM(op)
	op->write = model_write(op, op->member, op->adds);
	if (!w->owned)
		w->database = op->adds ? w->database | 1u << op->member
				       : w->database & ~(1u << op->member);
	for (; op->tries < TRIES; op->tries++) {
		op->stamp = op->seen = model_stamp(op);
		w->added[op->member] += op->adds;
		for (int y = 0; y < 2; y++)
			model_call(op, (unsigned)y, y, MODEL_APPEND)->value = model_group(
				w, op->stamp, w->owned && op->adds, op->member, op->adds);
		WAIT(op);
		sort_answers(op);
		if (op->failed == 3)
			FINISH(op, false);
		if (op->failed && !(w->mutation == MODEL_SOFT_MISS && !op->stored)) {
			CHILD(op, model_step_absent);
			if (!op->done)
				FINISH(op, false);
		}
		if (!op->stored && w->owned && op->adds) {
			CHILD(op, model_step_create);
			if (!op->done)
				continue;
		} else if (op->stored && !op->failed && op->stored != 3) {
			CHILD(op, model_step_repair);
			if (!op->done || op->horizon >= op->stamp)
				continue;
		}
		if (is_late(op))
			continue;
		acknowledge(op);
		FINISH(op, true);
	}
	FINISH(op, false);
	END(op)
}

/* --- reads --- */

static void answer(struct model_op *op, unsigned members)
{
	struct model_world *w = op->w;

	w->answered++;
	w->reads[w->read_count++] =
		(struct model_read){ .began = op->began, .ended = w->now, .members = members };
	model_trace(w, "proxy %d: read since %lld: %x", op->proxy,
		(long long)op->began - MODEL_START, members);
}

static void answer_missing(struct model_op *op)
{
	struct model_world *w = op->w;

	w->missing++;
	model_trace(w, "proxy %d: missing", op->proxy);
	if (!w->owned)
		model_start(w, op->proxy, NULL, model_do_load);
	else if (!w->lost && !w->lossy)
		answer(op, 0);
}

/* Returns whether the copies that were read suffice for an answer; else an error. */
static bool suffices(struct model_op *op)
{
	int y = op->failed == 1 ? 1 : 0;

	if (!op->failed || op->failed == 3)
		return !op->failed;
	return model_has(op->bases[y]) ? model_believed(op, y, op->bases[y])
				       : model_miss_believed(op, y);
}

/* Reads the first copy alone, if it may be believed. Leaves `found`. */
static void step_first(struct model_op *op)
{
	struct model_op *of = op->parent;

	PROGRAM(op)
	model_call(op, 0, 0, MODEL_GET);
	WAIT(op);
	of->found = op->answers[0].status == MODEL_OK && model_has(op->answers[0].value) &&
		model_believed(op, 0, op->answers[0].value);
	of->bases[0] = op->answers[0].value;
	of->bases[1] = (struct slice){ NULL, 0 };
	of->failed = 0;
	FINISH(op, true);
	END(op)
}

void model_do_read(struct model_op *op)
{
	struct model_world *w = op->w;
	struct model_set set;

	PROGRAM(op)
	for (; op->tries < TRIES; op->tries++) {
		CHILD(op, model_step_absences);
		if (!op->done)
			break;
		if (w->alone || w->mutation == MODEL_ONE_READ)
			CHILD(op, step_first);
		if (!op->found) {
			CHILD(op, model_step_get);
			if (!suffices(op))
				break;
			if (op->found && !model_whole(op)) {
				CHILD(op, model_step_lose);
				op->found = false;
				if (!op->done)
					continue;
				answer_missing(op);
				FINISH(op, true);
			}
		}
		set = model_fold(w, op->bases[0], op->bases[1]);
		if (!set.exists) {
			op->server = op->failed >> 1;
			op->done = true;
			if (op->failed && w->mutation != MODEL_SOFT_MISS)
				CHILD(op, model_step_absent);
			if (!op->done)
				break;
			answer_missing(op);
			FINISH(op, true);
		}
		op->table = set.table;
		CHILD(op, model_step_table);
		if (op->done) {
			set = model_fold(w, op->bases[0], op->bases[1]);
			answer(op, model_members(&set, op->snapshot));
			FINISH(op, true);
		}
		if (op->tables_lost && op->cas[1])
			CHILD(op, model_step_incomplete);
		op->found = false;
	}
	w->errors++;
	FINISH(op, false);
	END(op)
}

/* --- loads --- */

/* Words later than this are kept. The application reads its database afterwards. */
static uint64_t load_horizon(const struct model_op *op)
{
	bool margin = op->w->mutation != MODEL_NO_MARGIN && op->w->mutation != MODEL_LATE_FILL;

	return stamp_before(model_now(op), margin ? MODEL_MARGIN : 0);
}

/* Puts a base that is gone where there is none, so that words are kept from then on. */
static void reserve(struct model_op *op)
{
	for (unsigned y = 0; y < 2; y++) {
		if (!(op->failed & 1u << y) && !model_has(op->bases[y]))
			model_call(op, y, (int)y, MODEL_ADD)->value =
				model_gone(op->w, load_horizon(op), 0);
	}
}

/* Returns the largest horizon of the bases, or 0 if a copy is no longer gone. */
static uint64_t gone_horizon(struct model_op *op)
{
	uint64_t largest = 1;

	if (model_fold(op->w, op->bases[0], op->bases[1]).exists)
		return 0;
	for (int y = 0; y < 2; y++) {
		uint64_t h = model_has(op->bases[y]) ? model_horizon_of(op->bases[y]) : 0;
		largest = h > largest ? h : largest;
	}
	return largest;
}

static void store_loaded(struct model_op *op)
{
	if (op->w->mutation == MODEL_LATE_FILL)
		op->horizon = model_now(op);
	for (unsigned y = 0; y < 2; y++) {
		struct model_call *call;
		if (!model_has(op->bases[y]))
			continue;
		call = model_call(op, y, (int)y, MODEL_CAS);
		call->cas = op->cas[y];
		call->value = model_base(op->w, op->horizon, 0, -1, op->snapshot, op->bases[y]);
	}
}

void model_do_load(struct model_op *op)
{
	PROGRAM(op)
	for (; op->tries < TRIES; op->tries++) {
		CHILD(op, model_step_get);
		reserve(op);
		if (op->left)
			WAIT(op);
		op->horizon = load_horizon(op);
		op->snapshot = op->w->database;
		CHILD(op, model_step_get);
		if (op->failed == 3 || !gone_horizon(op))
			FINISH(op, true);
		if (op->horizon < gone_horizon(op)) {
			model_call(op, 0, 0, MODEL_SLEEP)->number = MODEL_MARGIN;
			WAIT(op);
			continue;
		}
		model_call(op, 0, 0, MODEL_SLEEP)->number = model_below(op->w, 40);
		WAIT(op);
		store_loaded(op);
		if (op->left)
			WAIT(op);
		FINISH(op, true);
	}
	FINISH(op, false);
	END(op)
}

/* --- deletes --- */

/*
 * Each try has the stamp of the first one, so that it deletes no later words, unless the set was
 * closed beyond it. A later try leaves a
 * copy missing, because that stamp is then older than words that found it missing.
 */
static void make_gone(struct model_op *op)
{
	struct slice gone;

	for (int y = 0; y < 2; y++) {
		if (model_has(op->bases[y]) && !model_is_gone(op->bases[y]) &&
			model_horizon_of(op->bases[y]) > op->stamp)
			op->stamp = 0;
	}
	op->w->deletes += !op->stamp;
	if (!op->stamp)
		op->stamp = model_stamp(op);
	gone = model_gone(op->w, op->stamp, 0);
	for (unsigned y = 0; y < 2; y++) {
		struct model_call *call;
		if (op->failed & 1u << y || (op->tries && !model_has(op->bases[y])))
			continue;
		call = model_call(op, y, (int)y, model_has(op->bases[y]) ? MODEL_CAS : MODEL_ADD);
		call->cas = op->cas[y];
		call->value = model_join(op->w, gone, op->bases[y], 0,
			model_has(op->bases[y]) ? model_fill_of(op->bases[y]) : 0);
		if (op->w->mutation == MODEL_PLAIN_DELETE) {
			call->verb = MODEL_DELETE;
			call->cas = 0;
		}
	}
}

void model_do_delete(struct model_op *op)
{
	PROGRAM(op)
	op->write = model_write(op, 0, false);
	for (int m = 1; m < MODEL_MEMBERS; m++)
		model_write(op, m, false);
	for (; op->tries < 2 * TRIES; op->tries++) {
		CHILD(op, model_step_get);
		if (op->failed == 3)
			FINISH(op, false);
		memset(op->answers, 0, sizeof(op->answers));
		make_gone(op);
		if (op->left)
			WAIT(op);
		if (op->answers[0].status == MODEL_EXISTS || op->answers[1].status == MODEL_EXISTS)
			continue;
		op->failed |= (op->answers[0].status == MODEL_FAIL) |
			(unsigned)(op->answers[1].status == MODEL_FAIL) << 1;
		if (op->failed == 3)
			FINISH(op, false);
		op->server = op->failed >> 1;
		if (op->failed)
			CHILD(op, model_step_absent);
		if (op->failed && !op->done)
			FINISH(op, false);
		for (int m = 0; m < MODEL_MEMBERS; m++)
			op->w->writes[op->write + m].ended = op->w->now;
		model_trace(op->w, "proxy %d: deleted", op->proxy);
		FINISH(op, true);
	}
	FINISH(op, false);
	END(op)
}

/* --- spop and sclaim --- */

/* Decides on the first server, whose cas id makes the order of all that take members. */
static bool choose_server(struct model_op *op)
{
	enum model_mutation mutation = op->w->mutation;

	op->here = op->failed & 1;
	if (mutation == MODEL_SPOP_HERE && model_below(op->w, 2) && !op->claims && !op->failed &&
		model_has(op->bases[1]))
		op->here = 1;
	if (op->claims && op->here && mutation != MODEL_CLAIM_THERE)
		return false;
	return suffices(op);
}

/* Chooses the member. Returns false if there is none to take. */
static bool choose_member(struct model_op *op)
{
	struct model_set set = model_fold(op->w, op->bases[0], op->bases[1]);
	unsigned members = set.exists ? model_members(&set, op->snapshot) : 0;

	if (op->claims) {
		op->member = MODEL_MEMBERS - 1;
		return !(members & 1u << op->member);
	}
	op->member = (int)model_below(op->w, MODEL_MEMBERS - 1);
	if (!(members & 1u << op->member))
		op->member = MODEL_MEMBERS - 2 - op->member;
	return members & 1u << op->member;
}

static void commit(struct model_op *op)
{
	struct model_world *w = op->w;
	struct model_call *call;
	struct slice base = op->bases[op->here];

	op->stamp = model_stamp(op);
	op->write = model_write(op, op->member, op->claims);
	w->added[op->member] += op->claims;
	op->next[0] = model_group(w, op->stamp, op->claims, op->member, op->claims);
	call = model_call(op, 0, op->here, model_has(base) ? MODEL_CAS : MODEL_ADD);
	call->cas = op->cas[op->here];
	call->value =
		model_has(base) ? model_append(w, base, op->next[0]) : created_base(op, op->failed);
}

static void count_taken(struct model_op *op)
{
	if (is_late(op))
		return;
	acknowledge(op);
	if (op->claims)
		op->w->claimed[op->member]++;
	else
		op->w->popped[op->member]++;
}

/* Writes the word to the other server, where it may be missing. */
static void step_other(struct model_op *op)
{
	struct model_op *of = op->parent;

	PROGRAM(op)
	op->server = 1 - of->here;
	if (of->claims && op->w->mutation == MODEL_CLAIM_ONE)
		FINISH(op, true);
	op->failed = of->failed;
	if (!op->failed) {
		model_call(op, 0, op->server, MODEL_APPEND)->value = of->next[0];
		WAIT(op);
		op->failed = op->answers[0].status == MODEL_FAIL;
		op->stored = op->answers[0].status == MODEL_OK;
	}
	if (!op->failed && !op->stored && !model_has(of->bases[of->here])) {
		model_call(op, 0, op->server, MODEL_ADD)->value = created_base(of, false);
		WAIT(op);
		op->failed = op->answers[0].status == MODEL_FAIL;
		op->stored = op->answers[0].status == MODEL_OK;
	}
	if (op->failed)
		CHILD(op, model_step_absent);
	else if (!op->stored)
		CHILD(op, model_step_repair);
	else
		op->done = true;
	/* Another proxy may have created the set meanwhile, and so made the word void. */
	FINISH(op, op->done && op->horizon < of->stamp);
	END(op)
}

void model_do_take(struct model_op *op)
{
	PROGRAM(op)
	for (; op->tries < TRIES; op->tries++) {
		CHILD(op, model_step_absences);
		if (!op->done)
			FINISH(op, false);
		op->seen = model_now(op);
		CHILD(op, model_step_get);
		/* Of two proxies that each see one server, at most one finds no absence of it. */
		op->server = op->failed >> 1;
		if (op->failed == 1 || op->failed == 2) {
			CHILD(op, model_step_absent);
			if (op->done)
				CHILD(op, model_step_absences);
			if (!op->done)
				FINISH(op, false);
		}
		if (!choose_server(op))
			FINISH(op, false);
		if (op->found && !model_whole(op)) {
			CHILD(op, model_step_lose);
			continue;
		}
		if (op->found && model_has(op->bases[1]) && !model_has(op->bases[0])) {
			CHILD(op, model_step_repair);
			continue;
		}
		op->table = model_fold(op->w, op->bases[0], op->bases[1]).table;
		CHILD(op, model_step_table);
		if (!op->done || !choose_member(op))
			FINISH(op, false);
		commit(op);
		WAIT(op);
		if (op->answers[0].status == MODEL_EXISTS) {
			op->w->writes[op->write].began = INT64_MAX;
			continue;
		}
		if (op->answers[0].status != MODEL_OK)
			FINISH(op, false);
		CHILD(op, step_other);
		if (op->done)
			count_taken(op);
		FINISH(op, op->done);
	}
	FINISH(op, false);
	END(op)
}

/* A proxy repairs a set that it wrote without a server when that is back. */
void model_do_repair(struct model_op *op)
{
	enum { LONG = 10 };

	PROGRAM(op)
	for (; op->tries < LONG; op->tries++) {
		CHILD(op, model_step_repair);
		if (op->done)
			FINISH(op, true);
		model_call(op, 0, 0, MODEL_SLEEP)->number = MODEL_SETTLED / 2;
		WAIT(op);
	}
	FINISH(op, false);
	END(op)
}
