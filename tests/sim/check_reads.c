/*
 * Checks of replies to reads. A set in oplog is read at one moment, and the whole reply must have
 * been true then. That moment is after the command and the earlier writes of its client, and
 * before the reply and the later writes of its client. A set in another encoding is read in parts,
 * so each member has a moment of its own. So is any set that is read in blocks.
 */
#include "../unit/parts.h"
#include "protocol/commands.h"
#include "util/num.h"
#include "world.h"

struct answer {
	bool missing; /* there is no set */
	/* no member is listed: there is none in the range, or no set */
	bool nothing;
	bool said[SIM_MEMBERS], in[SIM_MEMBERS]; /* members in the reply, and their states in it */
	bool lasts; /* one member expires after `number` seconds, UINT64_MAX for never */
	bool counts;
	uint64_t number; /* of the members in the requested range */
};

/* --- the reply --- */

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
			world_fail(op->world, "a reply that makes no sense", "%.*s",
				(int)buf_size(&op->reply), op->reply.data);
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

/* A set that is missing does not have the member either. */
static void read_ttl(struct sim_op *op, struct slice line, struct answer *a)
{
	if (slice_equal(line, SLICE("-1")))
		a->number = UINT64_MAX;
	else
		read_number(op, line, a);
	a->counts = false;
	a->lasts = true;
	say(a, op->question.asked[0], true);
}

static bool is_random(const struct sim_op *op)
{
	return op->command == COMMAND_SPOP || op->command == COMMAND_SRANDMEMBER;
}

/* A member that is not listed is out, if it sorts before the last one listed, or the list was not cut. */
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
		if (a->said[m] || (ordered && m < last) || m < q->first || m > q->last ||
			++listed > q->most)
			world_fail(w, "a member is listed where it does not belong",
				"key %d member %d client %d", op->key, m, op->client);
		say(a, m, true);
		last = m;
	}
	say_others(op, listed, last, a);
}

static void read_answer(struct sim_op *op, struct answer *a)
{
	struct slice rest = buf_slice(&op->reply);
	struct part part = { .line = { "", 0 } };

	*a = (struct answer){ .missing = check_says(op, "NOT_FOUND"),
		.nothing = check_says(op, "END") };
	if (a->nothing && op->command == COMMAND_SMEMBERS)
		a->missing = true;
	if (a->missing && op->command == COMMAND_STTL) {
		*a = (struct answer){ .nothing = true };
		say(a, op->question.asked[0], false);
		return;
	}
	if (a->missing || !parts_next(&rest, &part))
		return;
	switch (op->command) {
	case COMMAND_SISMEMBER:
	case COMMAND_SMISMEMBER:
		read_digits(op, part.line, a);
		break;
	case COMMAND_SEXPIRE:
		for (size_t i = 0; i < op->question.count; i++)
			say(a, op->question.asked[i], false);
		break;
	case COMMAND_STTL:
		read_ttl(op, part.line, a);
		break;
	case COMMAND_SCARD:
	case COMMAND_SCOUNT:
		read_number(op, part.line, a);
		break;
	default:
		read_list(op, part.data, a);
	}
}

/* --- one moment --- */

struct window {
	uint64_t from, until; /* ticks, both within */
};

/* The first moment of the read: after all earlier writes of its client. */
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
 * The last moment of the read: before the later writes of its client. When the read names its members, only writes of these
 * count. When a write was not acknowledged, its moment is unknown, and it does not count.
 */
static uint64_t latest(const struct sim_op *op)
{
	const struct world *w = op->world;
	uint64_t until = w->truth.tick, asked = op->question.count ? 0 : UINT64_MAX;

	for (size_t i = 0; i < op->question.count; i++)
		asked |= 1ull << op->question.asked[i];
	for (size_t i = op->number + 1; i <= w->commands; i++) {
		const struct sim_past *past = &w->past[i];
		if (past->done && past->client == op->client && past->key == op->key &&
			past->members & asked && w->executed[i] <= until)
			until = w->executed[i] - 1;
	}
	return until;
}

/* The estimates that a reader may have of the clock of the set's server. */
struct estimates {
	int64_t least, most;
};

static struct estimates estimates_since(const struct sim_op *op, uint64_t tick)
{
	const struct world *w = op->world;

	return (struct estimates){ expiring_least(w, op->key, truth_time(&w->truth, tick)),
		expiring_most(w, op->key, world_now(w)) };
}

/* Excludes estimates for which a member was not as the reply has it. */
static void narrow(struct estimates *e, const struct change *member, bool in)
{
	int64_t date = member->date;

	if (in != member->value && (in || !date))
		e->least = INT64_MAX;
	else if (in && date && date - 1 < e->most)
		e->most = date - 1;
	else if (!in && member->value && date > e->least)
		e->least = date;
}

static uint64_t count_at(
	const struct truth_set *set, const struct sim_question *q, uint64_t tick, int64_t estimate)
{
	uint64_t count = 0;

	for (int m = q->first; m <= q->last; m++) {
		const struct change *c = truth_change(&set->members[m], tick);
		count += c->value && (!c->date || c->date > estimate);
	}
	return count;
}

/* Returns whether a reader with one of these estimates has counted this number. */
static bool counts(
	const struct sim_op *op, uint64_t number, uint64_t tick, const struct estimates *estimates)
{
	const struct truth_set *set = &op->world->truth.sets[op->key];
	const struct sim_question *q = &op->question;

	if (count_at(set, q, tick, estimates->least) == number)
		return true;
	for (int m = q->first; m <= q->last; m++) {
		int64_t date = truth_change(&set->members[m], tick)->date;
		if (date > estimates->least && date <= estimates->most &&
			count_at(set, q, tick, date) == number)
			return true;
	}
	return false;
}

static void narrow_to_ttl(struct estimates *e, const struct change *member, uint64_t seconds)
{
	int64_t estimate = (int64_t)member->date - (int64_t)seconds;

	if ((seconds == UINT64_MAX) != (member->date == 0)) {
		e->least = INT64_MAX;
	} else if (member->date) {
		e->least = estimate > e->least ? estimate : e->least;
		e->most = estimate < e->most ? estimate : e->most;
	}
}

/*
 * Returns whether the whole reply was true at that moment. A proxy may still have a set in memory
 * when an item of it is missing.
 */
static bool fits(const struct sim_op *op, const struct answer *a, uint64_t tick)
{
	const struct truth_set *set = &op->world->truth.sets[op->key];

	struct estimates e = estimates_since(op, tick);

	if ((a->missing || a->nothing) && truth_at(&set->absent, tick))
		return true;
	if (a->missing || truth_at(&set->gone, tick))
		return false;
	for (int m = 0; m < SIM_MEMBERS; m++) {
		const struct change *c = truth_change(&set->members[m], tick);
		if (a->said[m])
			narrow(&e, c, a->in[m]);
		if (a->said[m] && a->lasts)
			narrow_to_ttl(&e, c, a->number);
	}
	return e.least <= e.most && (!a->counts || counts(op, a->number, tick, &e));
}

/* Whether the answer was true right after a change of this history within the window. */
static bool fits_at_change(const struct sim_op *op, const struct answer *a, const struct history *h,
	const struct window *window)
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

	if (fits(op, a, window.until) || fits(op, a, window.from) ||
		fits_at_change(op, a, &set->absent, &window) ||
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
			a->missing ? "a set is missing that was there all the time"
				   : "a read shows what never was",
			"key %d client %d %s: %.*s", op->key, op->client,
			command_get(op->command)->name.p, (int)buf_size(&op->reply),
			op->reply.data);
}

/* --- each member by itself --- */

/* Returns whether a reader may have found a member so, from that tick on. */
static bool may_be(
	const struct world *w, int key, const struct change *member, uint64_t tick, bool in)
{
	struct estimates e = { expiring_least(w, key, truth_time(&w->truth, tick)),
		expiring_most(w, key, world_now(w)) };

	narrow(&e, member, in);
	return e.least <= e.most;
}

bool check_was(const struct world *w, int key, int member, uint64_t since, bool in)
{
	const struct history *h = &w->truth.sets[key].members[member];

	for (size_t i = h->count; i-- > 0;) {
		uint64_t tick = h->changes[i].tick;
		if (may_be(w, key, &h->changes[i], tick > since ? tick : since, in))
			return true;
		if (tick <= since)
			return false;
	}
	return false;
}

static bool was_in(const struct sim_op *op, int member, bool in)
{
	return check_was(op->world, op->key, member, check_since(op, op->before[member]), in);
}

/*
 * The number is at least that of the members that were always in the set, and at most that of all
 * that ever were.
 */
static void check_number(const struct sim_op *op, uint64_t number)
{
	uint64_t least = 0, most = 0;

	for (int m = op->question.first; m <= op->question.last; m++) {
		least += !was_in(op, m, false);
		most += was_in(op, m, true);
	}
	if (number < least || number > most)
		world_fail(op->world, "a number of members that never was",
			"key %d client %d: %llu", op->key, op->client, (unsigned long long)number);
}

static void check_members(struct sim_op *op, const struct answer *a)
{
	struct world *w = op->world;
	bool was_absent =
		truth_was(&w->truth.sets[op->key].absent, check_since(op, op->before_any), true);

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
			world_fail(w, "a read shows what never was",
				"key %d member %d is %d, client %d", op->key, m, a->in[m],
				op->client);
		if ((op->command == COMMAND_SPOP || op->command == COMMAND_STAKE) && a->in[m])
			form_popped(op, m);
	}
}

/* --- blocks --- */

static bool is_without(const struct sim_op *op, int member, uint64_t tick)
{
	const struct truth_set *set = &op->world->truth.sets[op->key];

	return !truth_at(&set->gone, tick) &&
		may_be(op->world, op->key, truth_change(&set->members[member], tick), tick, false);
}

/* Whether there was a moment at which the set was there, and did not have this member. */
static bool was_without(const struct sim_op *op, int member)
{
	const struct truth_set *set = &op->world->truth.sets[op->key];
	const struct history *histories[] = { &set->members[member], &set->gone };
	uint64_t from = check_since(op, op->before[member]);

	if (is_without(op, member, from))
		return true;
	for (size_t h = 0; h < 2; h++) {
		for (size_t i = histories[h]->count;
			i-- > 0 && histories[h]->changes[i].tick > from;) {
			uint64_t tick = histories[h]->changes[i].tick;
			if (is_without(op, member, tick))
				return true;
		}
	}
	return false;
}

/* A set is missing as a whole. Nothing of it may be listed then. */
static void check_blocks(struct sim_op *op, const struct answer *a)
{
	struct world *w = op->world;
	bool any = false;

	for (int m = 0; m < SIM_MEMBERS; m++)
		any |= a->said[m] && a->in[m];
	if (!any &&
		truth_was(&w->truth.sets[op->key].absent, check_since(op, op->before_any), true))
		return;
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (!(a->in[m] ? was_in(op, m, true) : was_without(op, m)))
			world_fail(w, "a union shows what never was",
				"key %d member %d is %d, client %d", op->key, m, a->in[m],
				op->client);
	}
}

/* --- many sets --- */

/* The members in the next VALUE of the reply, which is of this set; false when it is of another. */
static bool next_value(struct slice *rest, int key, struct slice *members)
{
	struct slice behind = *rest;
	struct part part;

	if (!parts_next(&behind, &part) || part.key.n == 0 || world_set(part.key) != key)
		return false;
	*members = part.data;
	*rest = behind;
	return true;
}

/*
 * Each set is one of the requested ones, in that order, and read at a moment of its own. A missing
 * one is omitted, and so is one that cannot be read: then the reply ends with an error.
 */
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
	else if (op->command == COMMAND_SUNION)
		check_blocks(op, &answer);
	else
		check_moment(op, &answer);
}
