/*
 * What must hold of the reply to a read. A set in oplog is read at one moment, and what the reply says was all true then: between
 * the question, or what its client had done before that, and the reply, or what its client asked for later. Another encoding
 * is read in parts; of that each member by itself was as the reply says.
 */
#include <stdio.h>

#include "protocol/dialect.h"
#include "util/num.h"
#include "world.h"

struct answer {
	bool missing;                            /* there is no set */
	bool nothing;                            /* no member is named: there may be none to name, or no set */
	bool said[SIM_MEMBERS], in[SIM_MEMBERS]; /* of which something is said, and what */
	bool counts;
	uint64_t number; /* of the members in the range that was asked for */
};

/* --- what the reply says --- */

static void say(struct answer *a, int member, bool in)
{
	a->said[member] = true;
	a->in[member] = in;
}

static void read_digits(struct sim_op *op, struct slice line, struct answer *a)
{
	const struct sim_question *q = &op->question;

	for (size_t i = 0; i < q->count; i++) {
		struct slice digit = slice_token(&line);
		if (digit.n != 1 || (digit.p[0] != '0' && digit.p[0] != '1'))
			world_fail(op->world, "a reply that makes no sense", "%.*s", (int)buf_size(&op->reply),
				op->reply.data);
		else
			say(a, q->asked[i], digit.p[0] == '1');
	}
}

static void read_number(struct sim_op *op, struct slice line, struct answer *a)
{
	a->counts = true;
	if (!num_parse_u64(line, &a->number))
		world_fail(op->world, "a reply that makes no sense", "%.*s", (int)line.n, line.p);
}

static bool is_random(const struct sim_op *op)
{
	return op->command == COMMAND_SPOP || op->command == COMMAND_SRANDMEMBER;
}

/* Of a part of the set in byte order no member is left out up to the last that is listed; or to the end, when there was room. */
static void say_others(const struct sim_op *op, size_t listed, int last, struct answer *a)
{
	const struct sim_question *q = &op->question;
	bool full = listed == q->most;

	if (full && is_random(op))
		return;
	for (int m = q->first; m <= (full ? last : q->last); m++) {
		if (!a->said[m])
			say(a, m, false);
	}
}

static void read_list(struct sim_op *op, struct slice line, struct answer *a)
{
	const struct sim_question *q = &op->question;
	bool ordered = op->command == COMMAND_SSCAN || op->command == COMMAND_SRANGE;
	struct world *w = op->world;
	struct slice word;
	size_t listed = 0;
	int last = -1;

	while ((word = slice_token(&line)).n) {
		int m = truth_member(word);
		if (m < 0) {
			world_fail(w, "a member that nobody named", "%.*s", (int)word.n, word.p);
			return;
		}
		if (a->said[m] || (ordered && m < last) || m < q->first || m > q->last || ++listed > q->most)
			world_fail(w, "a member is listed where it does not belong", "key %d member %d client %d",
				op->key, m, op->client);
		say(a, m, true);
		last = m;
	}
	say_others(op, listed, last, a);
}

/* The members of a list are in the second line. */
static void read_answer(struct sim_op *op, struct answer *a)
{
	struct slice rest = buf_slice(&op->reply), line = { "", 0 };
	size_t n;

	*a = (struct answer){ .missing = check_says(op, "NOT_FOUND"), .nothing = check_says(op, "END") };
	if (a->nothing && op->command == COMMAND_SMEMBERS)
		a->missing = true;
	if (a->missing || !dialect_line(rest, &line, &n))
		return;
	switch (op->command) {
	case COMMAND_SISMEMBER:
	case COMMAND_SMISMEMBER:
		read_digits(op, line, a);
		break;
	case COMMAND_SCARD:
	case COMMAND_SCOUNT:
		read_number(op, line, a);
		break;
	default:
		if (a->nothing || !dialect_line(slice_skip(rest, n), &line, &n))
			line = slice_of("", 0);
		read_list(op, line, a);
	}
}

/* --- one moment --- */

struct window {
	uint64_t from, until; /* ticks, both within */
};

/* Behind all that the client had written when it asked, whatever members that was of. */
static uint64_t earliest(const struct sim_op *op)
{
	uint64_t from = op->issued;

	for (int m = 0; m < SIM_MEMBERS; m++) {
		uint64_t since = check_since(op, op->before[m]);
		from = since > from ? since : from;
	}
	return from;
}

/*
 * Before all that the client wrote later; but single members may be asked for behind what it wrote of others. Of what was not
 * acknowledged it is not known when it was executed.
 */
static uint64_t latest(const struct sim_op *op)
{
	const struct world *w = op->world;
	uint64_t until = w->truth.tick, asked = op->question.count ? 0 : UINT64_MAX;

	for (size_t i = 0; i < op->question.count; i++)
		asked |= 1ull << op->question.asked[i];
	for (size_t i = op->number + 1; i <= w->commands; i++) {
		const struct sim_past *past = &w->past[i];
		if (past->done && past->client == op->client && past->key == op->key && past->members & asked &&
			w->executed[i] <= until)
			until = w->executed[i] - 1;
	}
	return until;
}

static uint64_t count_at(const struct truth_set *set, const struct sim_question *q, uint64_t tick)
{
	uint64_t count = 0;

	for (int m = q->first; m <= q->last; m++)
		count += truth_at(&set->members[m], tick);
	return count;
}

/* Whether all that the answer says was true at that moment. A set of which a part is gone may still be in a proxy's memory. */
static bool fits(const struct sim_op *op, const struct answer *a, uint64_t tick)
{
	const struct truth_set *set = &op->world->truth.sets[op->key];

	if ((a->missing || a->nothing) && truth_at(&set->absent, tick))
		return true;
	if (a->missing || truth_at(&set->gone, tick))
		return false;
	if (a->counts && count_at(set, &op->question, tick) != a->number)
		return false;
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (a->said[m] && truth_at(&set->members[m], tick) != a->in[m])
			return false;
	}
	return true;
}

/* Whether it was at a moment within the window at which this changed. */
static bool fits_at_change(
	const struct sim_op *op, const struct answer *a, const struct history *h, const struct window *window)
{
	for (size_t i = h->count; i-- > 0 && h->changes[i].tick > window->from;) {
		if (h->changes[i].tick <= window->until && fits(op, a, h->changes[i].tick))
			return true;
	}
	return false;
}

static bool fits_somewhere(const struct sim_op *op, const struct answer *a)
{
	const struct truth_set *set = &op->world->truth.sets[op->key];
	struct window window = { earliest(op), latest(op) };

	if (fits(op, a, window.until) || fits(op, a, window.from) || fits_at_change(op, a, &set->absent, &window) ||
		fits_at_change(op, a, &set->gone, &window))
		return true;
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (fits_at_change(op, a, &set->members[m], &window))
			return true;
	}
	return false;
}

static void check_moment(struct sim_op *op, const struct answer *a)
{
	struct world *w = op->world;

	if (!fits_somewhere(op, a))
		world_fail(w,
			a->missing ? "a set is missing that was there all the time" : "a read shows what never was",
			"key %d client %d %s: %.*s", op->key, op->client, command_get(op->command)->name.p,
			(int)buf_size(&op->reply), op->reply.data);
}

/* --- each member by itself --- */

static bool was_in(const struct sim_op *op, int member, bool in)
{
	return truth_was(&op->world->truth.sets[op->key].members[member], check_since(op, op->before[member]), in);
}

/* Those that were in all the time were counted, and those that never were have not been. */
static void check_number(const struct sim_op *op, uint64_t number)
{
	uint64_t least = 0, most = 0;

	for (int m = op->question.first; m <= op->question.last; m++) {
		least += !was_in(op, m, false);
		most += was_in(op, m, true);
	}
	if (number < least || number > most)
		world_fail(op->world, "a number of members that never was", "key %d client %d: %llu", op->key,
			op->client, (unsigned long long)number);
}

static void check_members(struct sim_op *op, const struct answer *a)
{
	struct world *w = op->world;
	bool was_absent = truth_was(&w->truth.sets[op->key].absent, check_since(op, op->before_any), true);

	if (a->missing && !was_absent)
		world_fail(w, "a set is missing that was there all the time", "key %d", op->key);
	if (a->missing || (a->nothing && was_absent))
		return;
	if (a->counts)
		check_number(op, a->number);
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (!a->said[m])
			continue;
		if (!was_in(op, m, a->in[m]))
			world_fail(w, "a read shows what never was", "key %d member %d is %d, client %d", op->key, m,
				a->in[m], op->client);
		if (op->command == COMMAND_SPOP && a->in[m])
			form_popped(op, m);
	}
}

/* --- many sets --- */

/* The members in the next VALUE of the reply, which is of this set; false when it is of another. */
static bool next_value(struct slice *rest, int key, struct slice *members)
{
	char head[16];
	struct slice line;
	size_t n, size;

	if (!slice_starts(*rest, slice_of(head, (size_t)snprintf(head, sizeof(head), "VALUE s%d ", key))) ||
		!dialect_line(*rest, &line, &n) || sscanf(line.p, "VALUE s%*d 0 %zu", &size) != 1)
		return false;
	*members = slice_of(rest->p + n, size);
	*rest = slice_skip(*rest, n + size + 2);
	return true;
}

/* Each set is one of those that were asked for, in that order, and read at a moment of its own. A missing one is left out,
 * and so is one that cannot be read: then the reply ends with an error. */
static void check_many(struct sim_op *op)
{
	struct slice rest = buf_slice(&op->reply), keys = buf_slice(&op->many->keys), members;
	bool complete = memmem(rest.p, rest.n, "END\r\n", 5);
	struct answer answer;

	op->question = (struct sim_question){ .last = SIM_MEMBERS - 1, .most = SIM_MEMBERS + 1 };
	for (size_t i = 0; i < keys.n; i++) {
		op->key = keys.p[i];
		op->before_any = op->many->before_any[op->key];
		memcpy(op->before, op->many->before[op->key], sizeof(op->before));
		answer = (struct answer){ .missing = !next_value(&rest, op->key, &members) };
		if (!answer.missing)
			read_list(op, members, &answer);
		if (!answer.missing || complete)
			check_moment(op, &answer);
	}
	op->world->failures += !complete;
	if (!slice_starts(rest, complete ? SLICE("END\r\n") : SLICE("SERVER_ERROR")))
		world_fail(op->world, "a reply that makes no sense", "%.*s", (int)rest.n, rest.p);
}

void check_answer(struct sim_op *op)
{
	struct answer answer;

	if (op->many) {
		check_many(op);
		return;
	}

	read_answer(op, &answer);
	if (op->world->form)
		check_members(op, &answer);
	else
		check_moment(op, &answer);
}
