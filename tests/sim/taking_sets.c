/* The sets of taking.h: members that move, and sets that are stored. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/commands.h"
#include "taking.h"
#include "util/num.h"

enum { WORKERS = 6, OTHERS = TAKING_CLIENTS - WORKERS, WRITERS = 3, STORES_MAX = LINEAR_OPS - 8 };

static const char *const keys[TAKING_SETS] = { "s0", "s1", "s2", "t0" };

/* --- members --- */

/* Between two permanent members there may be one that is added and removed. */
static int loose_number(int loose)
{
	return 2 * loose * (TAKING_STABLE / TAKING_VOLATILE) + 1;
}

static void add_name(struct taking *w, struct taking_set *set, struct slice name)
{
	uint32_t number;

	if (name.n < 2 || !num_parse_u32(slice_skip(name, 1), &number)) {
		stage_fail(&w->stage, "a member that nobody named", "%.*s", (int)name.n, name.p);
		return;
	}
	set->count++;
	if (name.p[0] == 'm')
		set->moved |= UINT32_C(1) << (number - 10);
	else if (name.p[0] == 'k' && number % 2 == 0)
		set->stable[(number - 100) / 128] |= UINT64_C(1) << (number - 100) / 2 % 64;
	for (int i = 0; i < TAKING_VOLATILE && name.p[0] == 'k'; i++) {
		if ((int)number == 100 + loose_number(i))
			set->loose |= UINT32_C(1) << i;
	}
}

static struct taking_set read_reply(struct taking_op *op)
{
	struct slice rest = stage_value(buf_slice(&op->stage.reply)), name;
	struct taking_set set = { .count = 0 };

	while ((name = slice_token(&rest)).n)
		add_name(op->world, &set, name);
	return set;
}

/* --- members that expire --- */

/* All servers have the same clock. */
static uint64_t second(const struct taking *w)
{
	return stage_now(&w->stage) / 1000;
}

/* Returns the date of a member that was added since then. */
static struct taking_date date_since(const struct taking *w, uint64_t since)
{
	return (struct taking_date){ since / 1000 + w->life, second(w) + w->life };
}

/* Return whether a member must still be there; must have been gone at that time. */
static bool must_be_there(const struct taking *w, const struct taking_date *date)
{
	return w->life != TAKING_SHORT || date->least > second(w);
}

static bool must_be_gone(const struct taking *w, const struct taking_date *date, uint64_t time)
{
	return w->life == TAKING_SHORT && date->most <= time / 1000;
}

/*
 * Returns whether a read that was sent at that time shows a member as it cannot be. Of a place that
 * is not known nothing is expected.
 */
static bool contradicts(const struct taking *w, enum taking_place place, enum taking_place is,
	const struct taking_date *date, uint64_t time)
{
	if (place == TAKING_IN)
		return is == TAKING_IN ? must_be_gone(w, date, time) : must_be_there(w, date);
	return place == TAKING_OUT && is == TAKING_IN;
}

/* --- at first --- */

static void load_source(struct taking *w, int set)
{
	struct taking_set *source = &w->sources[set];
	char line[1024];
	int n = snprintf(line, sizeof(line), "sadd %s", keys[set]);

	for (int i = 0; i < TAKING_STABLE; i++) {
		if (!stage_chance(&w->stage, 75))
			continue;
		source->stable[i / 64] |= UINT64_C(1) << i % 64;
		n += snprintf(line + n, sizeof(line) - (size_t)n, " k%d", 100 + 2 * i);
	}
	taking_ask(w, 0, COMMAND_SADD, line);
	stage_settle(&w->stage);
}

void taking_sets_init(struct taking *w)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "sadd s0");
	uint64_t begun;

	for (int set = 0; set < TAKING_SHARES && w->kind == TAKING_STORES; set++)
		load_source(w, set);
	if (w->kind != TAKING_SMOVES)
		return;
	for (int i = 0; i < TAKING_MEMBERS; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " m%d", 10 + i);
	begun = stage_now(&w->stage);
	taking_ask(w, 0, COMMAND_SADD, line);
	stage_settle(&w->stage);
	for (int i = 0; i < TAKING_MEMBERS; i++)
		w->members[i].date = date_since(w, begun);
}

/* --- commands of clients --- */

/* Each member is moved by one client. */
void taking_write_smove(struct taking_op *op)
{
	struct taking *w = op->world;

	op->member =
		op->stage.client + WORKERS * (int)stage_random(&w->stage, TAKING_MEMBERS / WORKERS);
	op->stage.command = COMMAND_SMOVE;
	op->from = w->members[op->member].set;
	if (op->from < 0 || stage_chance(&w->stage, 15))
		op->from = (int)stage_random(&w->stage, TAKING_SHARES);
	op->to = (int)stage_random(&w->stage, TAKING_SHARES);
	buf_printf(&op->stage.line, "smove %s %s m%d", keys[op->from],
		taking_refuses(op) ? taking_plain.p : keys[op->to], 10 + op->member);
}

/* Undoes the command that has failed, and then reads the member: that shows if the command is executed after all. */
static void write_undo(struct taking_op *op)
{
	const struct taking_client *c = &op->world->clients[op->stage.client];

	op->from = c->set;
	op->member = c->loose;
	if (op->world->loose[c->set][c->loose])
		op->stage.command = COMMAND_SISMEMBER;
	else
		op->stage.command = c->failed == COMMAND_SADD ? COMMAND_SREM : COMMAND_SADD;
}

/*
 * Members next to those that move, or in the sources of stores. Each is added and removed by one
 * client.
 */
void taking_write_loose(struct taking_op *op)
{
	struct taking *w = op->world;
	const struct taking_client *c = &w->clients[op->stage.client];

	op->stage.command = stage_chance(&w->stage, 20) ? COMMAND_SISMEMBER
		: stage_chance(&w->stage, 60)           ? COMMAND_SADD
							: COMMAND_SREM;
	op->from = (int)stage_random(&w->stage, TAKING_SHARES);
	op->member = OTHERS * (int)stage_random(&w->stage, TAKING_VOLATILE / OTHERS) +
		(op->stage.client - WORKERS) % OTHERS;
	if (c->failed && stage_chance(&w->stage, 60))
		write_undo(op);
	if (op->stage.command == COMMAND_SADD)
		w->ever_loose |= UINT32_C(1) << op->member;
	buf_printf(&op->stage.line, "%s %s k%d", command_get(op->stage.command)->name.p,
		keys[op->from], 100 + loose_number(op->member));
}

/* One of the permanent members of the sources. */
static void expect(
	struct taking *w, struct taking_store *store, command_id command, int first, int count)
{
	for (int half = 0; half < 2; half++) {
		uint64_t bits = w->sources[first].stable[half];
		for (int i = 1; i < count; i++) {
			uint64_t other = w->sources[(first + i) % TAKING_SHARES].stable[half];
			if (command == COMMAND_SINTERSTORE)
				bits &= other;
			else
				bits = command == COMMAND_SDIFFSTORE ? bits & ~other : bits | other;
		}
		store->seen[half] = bits;
	}
}

static size_t begin(struct taking *w, bool reads)
{
	w->stores[w->store_count] =
		(struct taking_store){ .op = { .from = ++w->tick, .reads = reads } };
	return w->store_count++;
}

void taking_write_store(struct taking_op *op)
{
	static const struct {
		command_id id;
		const char *name;
	} stores[] = { { COMMAND_SUNIONSTORE, "sunionstore" },
		{ COMMAND_SINTERSTORE, "sinterstore" }, { COMMAND_SDIFFSTORE, "sdiffstore" } };
	struct taking *w = op->world;
	int which = (int)stage_random(&w->stage, 3),
	    first = (int)stage_random(&w->stage, TAKING_SHARES),
	    count = 1 + (int)stage_random(&w->stage, TAKING_SHARES);

	if (w->store_count >= STORES_MAX)
		return;
	op->to = TAKING_TARGET;
	op->linear = begin(w, op->stage.client >= WRITERS);
	if (op->stage.client >= WRITERS) {
		op->stage.command = COMMAND_SMEMBERS;
		BUF_ADD(&op->stage.line, "smembers t0");
		return;
	}
	op->stage.command = stores[which].id;
	buf_printf(&op->stage.line, "%s t0", stores[which].name);
	for (int i = 0; i < count; i++)
		buf_printf(&op->stage.line, " %s", keys[(first + i) % TAKING_SHARES]);
	expect(w, &w->stores[op->linear], op->stage.command, first, count);
}

/* --- replies --- */

static void smove_answered(struct taking_op *op)
{
	struct taking *w = op->world;
	struct taking_member *m = &w->members[op->member];
	struct taking_date date = date_since(w, op->stage.issued);
	struct slice reply = buf_slice(&op->stage.reply);

	if (taking_is_unknown(op)) {
		m->failed++;
		m->set = -1;
	} else if (slice_equal(reply, SLICE("STORED\r\n"))) {
		if (!m->failed && m->set != op->from)
			stage_fail(&w->stage, "a member was moved from where it was not", "m%d",
				10 + op->member);
		if (!m->failed && must_be_gone(w, &m->date, op->stage.issued))
			stage_fail(&w->stage, "a member was moved that had expired", "m%d",
				10 + op->member);
		/* A member that stays where it is may keep its date. */
		m->date = (struct taking_date){ op->from == op->to ? m->date.least : date.least,
			date.most };
		m->set = op->to;
	} else if (!m->failed && m->set == op->from && must_be_there(w, &m->date)) {
		stage_fail(
			&w->stage, "a member was not found where it was", "m%d", 10 + op->member);
	}
}

/*
 * The client has waited until a failed command is executed or never will be. So the next reply
 * shows where the member is.
 */
static void loose_answered(struct taking_op *op)
{
	struct taking *w = op->world;
	struct taking_client *c = &w->clients[op->stage.client];
	struct taking_date *date = &w->loose_dates[op->from][op->member];
	enum taking_place *place = &w->loose[op->from][op->member],
			  is = op->stage.command == COMMAND_SADD ||
			slice_starts(buf_slice(&op->stage.reply), SLICE("1"))
		? TAKING_IN
		: TAKING_OUT;

	if (op->stage.command == COMMAND_SISMEMBER && taking_is_unknown(op))
		return;
	if (op->stage.command == COMMAND_SISMEMBER &&
		contradicts(w, *place, is, date, op->stage.issued))
		stage_fail(&w->stage, "a member is not as its client left it", "%.*s: %.*s",
			STAGE_LINE(op), (int)buf_size(&op->stage.reply), op->stage.reply.data);
	if (op->stage.command == COMMAND_SADD)
		*date = date_since(w, op->stage.issued);
	else if (*place == TAKING_SOMEWHERE)
		*date = (struct taking_date){ 0, UINT64_MAX };
	*place = taking_is_unknown(op) ? TAKING_SOMEWHERE : is;
	if (!taking_is_unknown(op))
		return;
	c->failed = op->stage.command;
	c->set = op->from;
	c->loose = op->member;
}

static void store_answered(struct taking_op *op)
{
	struct taking *w = op->world;
	struct taking_store *s = &w->stores[op->linear];

	if (taking_is_unknown(op))
		return;
	s->op.replied = true;
	s->op.until = ++w->tick;
	if (!s->op.reads)
		return;
	w->last_read = read_reply(op);
	memcpy(s->seen, w->last_read.stable, sizeof(s->seen));
	if (w->last_read.loose & ~w->ever_loose)
		stage_fail(&w->stage, "a member is stored that no source had", "%x",
			w->last_read.loose & ~w->ever_loose);
}

void taking_set_answered(struct taking_op *op)
{
	struct taking *w = op->world;

	if (op->stage.command == COMMAND_SMOVE)
		smove_answered(op);
	else if (op->to == TAKING_TARGET)
		store_answered(op);
	else if (op->member >= 0)
		loose_answered(op);
	else if (op->stage.command == COMMAND_SMEMBERS)
		w->last_read = read_reply(op);
	else if (op->stage.command == COMMAND_SUNIONSTORE &&
		!num_parse_u64(slice_of(op->stage.reply.data, buf_size(&op->stage.reply) - 2),
			&w->last_number))
		stage_fail(&w->stage, "a store has no number", "%.*s",
			(int)buf_size(&op->stage.reply), op->stage.reply.data);
}

/* --- when all is over --- */

static struct taking_set read_set(struct taking *w, int client, int set)
{
	char line[32];

	snprintf(line, sizeof(line), "smembers %s", keys[set]);
	taking_ask(w, client, COMMAND_SMEMBERS, line);
	stage_settle(&w->stage);
	return w->last_read;
}

/* The set was read since then. */
static void check_loose(struct taking *w, const struct taking_set *set, int number, uint64_t time)
{
	for (int i = 0; i < TAKING_VOLATILE; i++) {
		enum taking_place place = w->loose[number][i],
				  is = set->loose >> i & 1 ? TAKING_IN : TAKING_OUT;
		if (contradicts(w, place, is, &w->loose_dates[number][i], time))
			stage_fail(&w->stage, "a member is not as its client left it",
				"%s k%d at the end", keys[number], 100 + loose_number(i));
	}
}

static void check_members(struct taking *w)
{
	struct taking_set sets[TAKING_SHARES];
	uint64_t time = stage_now(&w->stage);

	for (int set = 0; set < TAKING_SHARES; set++) {
		sets[set] = read_set(w, set, set);
		check_loose(w, &sets[set], set, time);
	}
	for (int i = 0; i < TAKING_MEMBERS && !w->stage.violation; i++) {
		const struct taking_member *m = &w->members[i];
		int count = 0;
		for (int set = 0; set < TAKING_SHARES; set++)
			count += sets[set].moved >> i & 1;
		if (count == 0) {
			if (must_be_there(w, &m->date) && !(m->failed && w->life == TAKING_SHORT))
				stage_fail(&w->stage, "a member was lost", "m%d", 10 + i);
			continue;
		}
		if (!m->failed && must_be_gone(w, &m->date, time))
			stage_fail(&w->stage, "members have not expired", "m%d", 10 + i);
		if (count > 1 + m->failed)
			stage_fail(&w->stage, "a member is in more than one set", "m%d is in %d",
				10 + i, count);
		else if (!m->failed && !(sets[m->set].moved >> i & 1))
			stage_fail(
				&w->stage, "a member is not where it was moved to", "m%d", 10 + i);
		w->left += (uint64_t)(count - 1);
	}
}

static enum linear_step store_step(void *arg, size_t op, const struct linear_state *before,
	unsigned choice, struct linear_state *after)
{
	const struct taking_store *s = &((struct taking *)arg)->stores[op];

	*after = *before;
	if (choice > 0)
		return LINEAR_END;
	if (s->op.reads)
		return s->seen[0] == before->a && s->seen[1] == before->b ? LINEAR_RIGHT
									  : LINEAR_WRONG;
	after->a = s->seen[0];
	after->b = s->seen[1];
	return LINEAR_RIGHT;
}

static void check_order(struct taking *w)
{
	struct linear_op ops[LINEAR_OPS];
	struct linear linear = {
		.ops = ops, .count = w->store_count, .step = store_step, .arg = w
	};

	for (size_t i = 0; i < w->store_count; i++)
		ops[i] = w->stores[i].op;
	if (linear_check(&linear) == LINEAR_NO)
		stage_fail(&w->stage, "no order of the stores explains what was read",
			"%zu commands, found %d of them", w->store_count,
			__builtin_popcountll(linear.furthest));
}

/* While nothing else is in flight, the stored set is exactly the union. */
static void check_union(struct taking *w)
{
	struct taking_set all = { .count = 0 }, stored;

	taking_ask(w, 0, COMMAND_SUNIONSTORE, "sunionstore t0 s0 s1 s2");
	stage_settle(&w->stage);
	for (int set = 0; set < TAKING_SHARES; set++) {
		struct taking_set source = read_set(w, set, set);
		check_loose(w, &source, set, 0);
		if (memcmp(source.stable, w->sources[set].stable, sizeof(source.stable)) != 0)
			stage_fail(&w->stage, "a source has other members than before", "%s",
				keys[set]);
		all.loose |= source.loose;
		for (int half = 0; half < 2; half++)
			all.stable[half] |= source.stable[half];
	}
	stored = read_set(w, 1, TAKING_TARGET);
	if (memcmp(stored.stable, all.stable, sizeof(all.stable)) != 0 ||
		stored.loose != all.loose || stored.count != w->last_number)
		stage_fail(&w->stage, "the stored set is not the union",
			"%u members, and the reply was %llu", stored.count,
			(unsigned long long)w->last_number);
}

/* Long after the last command. */
static void check_expired(struct taking *w)
{
	stage_run_until(&w->stage, stage_now(&w->stage) + w->life * 1000);
	for (int set = 0; set < TAKING_SETS && !w->stage.violation; set++) {
		struct taking_set left = read_set(w, set % STAGE_PROXIES, set);
		if (left.count)
			stage_fail(&w->stage, "members have not expired", "%u of %s", left.count,
				keys[set]);
	}
}

static void check_stores(struct taking *w)
{
	for (int client = 0; client < STAGE_PROXIES && !w->stage.violation; client++) {
		size_t at = begin(w, true);
		struct taking_set set = read_set(w, client, TAKING_TARGET);
		w->stores[at].op.replied = true;
		w->stores[at].op.until = ++w->tick;
		memcpy(w->stores[at].seen, set.stable, sizeof(set.stable));
	}
	if (!w->stage.violation)
		check_order(w);
	if (!w->stage.violation)
		check_union(w);
}

void taking_check_sets(struct taking *w)
{
	(w->kind == TAKING_SMOVES ? check_members : check_stores)(w);
	if (w->life && !w->stage.violation)
		check_expired(w);
}
