/* The commands that clients send. */
#include <assert.h>
#include <stdio.h>

#include "lists.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "wording.h"
#include "world.h"

static const command_id shared[] = { COMMAND_SSET, COMMAND_SPOP, COMMAND_TOUCH, COMMAND_DELETE,
	COMMAND_STAKE };
enum { SHARED = sizeof(shared) / sizeof(*shared) };

/* Other encodings answer all reads from the same fold, so that one command for reading is enough. */
static command_id choose_in_form(struct world *w, int key, uint64_t dice)
{
	/* A date is checked if no other touch is under way. */
	uint64_t undated = w->mutation == MUTATION_NO_TTL ? 97 : 95;

	if (w->mutation == MUTATION_LOST_DELETE && key == 2 && dice >= 80)
		return COMMAND_DELETE;
	if (dice < 40)
		return COMMAND_SADD;
	if (dice < 62)
		return COMMAND_SREM;
	if (dice < 66)
		return COMMAND_SADDX;
	if (dice < 70)
		return COMMAND_SCOMPACT;
	if (key == 1 && dice < 80)
		return COMMAND_SPOP;
	if (key != 2 && w->dated && dice > undated)
		return COMMAND_TOUCH;
	if (key == 2 && dice < 80)
		return shared[world_random(w, SHARED)];
	return COMMAND_SMEMBERS;
}

/*
 * Each member of keys 0 and 1 has one writer, except that other encodings also pop members of key
 * 1. All clients write all members of key 2, replace it, pop from it, touch and delete it.
 */
static command_id choose_command(struct world *w, int key)
{
	static const command_id reads[] = { COMMAND_SMEMBERS, COMMAND_SMEMBERS, COMMAND_SMEMBERS,
		COMMAND_SISMEMBER, COMMAND_SISMEMBER, COMMAND_SMISMEMBER, COMMAND_SCARD,
		COMMAND_SSCAN, COMMAND_SCOUNT, COMMAND_SRANGE, COMMAND_SRANDMEMBER,
		COMMAND_SUNION };
	static const command_id expiring[] = { COMMAND_SADDEX, COMMAND_SADDEX, COMMAND_SADDEX,
		COMMAND_SEXPIRE, COMMAND_SEXPIRE, COMMAND_STTL };
	uint64_t dice = world_random(w, 100);

	if (w->form)
		return choose_in_form(w, key, dice);
	if (w->expiring && world_chance(w, key == LEASES_KEY ? 10 : 30))
		return expiring[world_random(w, sizeof(expiring) / sizeof(*expiring))];
	if (key == LEASES_KEY)
		return (command_id)leases_choose(w);
	if (dice < 40)
		return COMMAND_SADD;
	if (dice < 60)
		return COMMAND_SREM;
	if (dice < 63)
		return COMMAND_SADDX;
	if (dice < 66)
		return COMMAND_SCOMPACT;
	if (dice < 69)
		return COMMAND_SCLAIM;
	if (key == 2 && dice < 79)
		return shared[world_random(w, SHARED)];
	if (dice > 96)
		return dice > 98 && world_chance(w, 50) ? COMMAND_GAT : COMMAND_TOUCH;
	return reads[world_random(w, sizeof(reads) / sizeof(*reads))];
}

/* --- additions and removals --- */

static void add_name(struct buf *line, int member)
{
	char name[16];

	truth_name(member, name);
	buf_printf(line, " %s", name);
}

static void add_word(struct buf *line, struct sim_op *op, int member)
{
	char name[16], stored[WORDING_MAX];
	struct slice word;

	truth_name(member, name);
	word = wording_word(name, stored);
	add_name(line, member);
	if (op->command == COMMAND_SADD || op->command == COMMAND_SADDX ||
		op->command == COMMAND_SREM || op->command == COMMAND_SCLAIM ||
		op->command == COMMAND_SADDEX)
		buf_printf(&op->log, "%c%.*s ", op->command == COMMAND_SREM ? '-' : '+',
			(int)word.n, word.p);
	if (op->command != COMMAND_SREM && op->command != COMMAND_SEXPIRE)
		op->world->ever_added[op->key][member] = true;
	op->members[member] = true;
}

/* Removes all possible members, so that merged runs have nothing left. */
static void remove_all(struct sim_op *op, struct buf *line)
{
	for (int m = 0; m < SIM_MEMBERS; m++)
		add_word(line, op, m);
}

static int own_member(const struct sim_op *op)
{
	return op->client * SIM_OWN + (int)world_random(op->world, SIM_OWN);
}

static int any_member(const struct sim_op *op)
{
	/* This bug shows if clients remove a member at the same time. */
	return (int)world_random(op->world, op->world->mutation == MUTATION_ONCE ? 3 : SIM_MEMBERS);
}

/* --- reads --- */

/* Most are members that the client writes itself: the check knows more about these. */
static void ask_for_members(struct sim_op *op, size_t count, struct buf *line)
{
	struct sim_question *q = &op->question;

	for (q->count = 0; q->count < count; q->count++) {
		q->asked[q->count] = world_chance(op->world, 60) ? own_member(op) : any_member(op);
		add_name(line, q->asked[q->count]);
	}
}

static void ask_for_range(struct sim_op *op, struct buf *line)
{
	struct sim_question *q = &op->question;

	q->first = any_member(op);
	q->last = any_member(op);
	add_name(line, q->first);
	add_name(line, q->last);
}

static void ask_for_some(struct sim_op *op, struct buf *line)
{
	op->question.most =
		1 + world_random(op->world, op->command == COMMAND_SPOP ? 3 : SIM_MEMBERS / 2);
	buf_printf(line, " %zu", op->question.most);
}

static void ask_for_next(struct sim_op *op, struct buf *line)
{
	ask_for_some(op, line);
	if (world_chance(op->world, 30))
		return;
	op->question.first = any_member(op);
	add_name(line, op->question.first++);
}

static void write_question(struct sim_op *op, struct buf *line)
{
	op->question = (struct sim_question){ .last = SIM_MEMBERS - 1, .most = SIM_MEMBERS + 1 };
	switch (op->command) {
	case COMMAND_SISMEMBER:
	case COMMAND_STTL:
		ask_for_members(op, 1, line);
		break;
	case COMMAND_SMISMEMBER:
		ask_for_members(op, SIM_ASKED, line);
		break;
	case COMMAND_SSCAN:
		ask_for_next(op, line);
		break;
	case COMMAND_SCOUNT:
		ask_for_range(op, line);
		break;
	case COMMAND_SRANGE:
		ask_for_range(op, line);
		ask_for_some(op, line);
		break;
	case COMMAND_SRANDMEMBER:
		ask_for_some(op, line);
		break;
	case COMMAND_SPOP:
		op->question.most = 1;
		if (op->key == 1)
			ask_for_some(op, line);
		break;
	default:
		break;
	}
}

/* --- lines --- */

/* A sexpire that finds none of its members is checked as a read of them. */
static void write_timed(struct sim_op *op, struct buf *line)
{
	struct sim_question *q = &op->question;

	op->seconds = expiring_seconds(op->world);
	buf_printf(line, " %llu", (unsigned long long)op->seconds);
	for (uint64_t n = 1 + world_random(op->world, SIM_ASKED); n > 0; n--) {
		int member = op->key >= 2 ? any_member(op) : own_member(op);
		if (op->members[member])
			continue;
		add_word(line, op, member);
		q->asked[q->count++] = member;
	}
}

static void write_line(struct sim_op *op, struct buf *line)
{
	struct world *w = op->world;

	buf_printf(line, "%s s%d", command_get(op->command)->name.p, op->key);
	switch (op->command) {
	case COMMAND_SADD:
	case COMMAND_SADDX:
	case COMMAND_SREM:
		if (!w->form && op->key == 2 && op->command == COMMAND_SREM &&
			world_chance(w, 10)) {
			remove_all(op, line);
			break;
		}
		for (uint64_t n = 1 + world_random(w, 3); n > 0; n--) {
			int member = op->key >= 2 ? any_member(op) : own_member(op);
			if (!op->members[member])
				add_word(line, op, member);
		}
		break;
	case COMMAND_SADDEX:
	case COMMAND_SEXPIRE:
		write_timed(op, line);
		break;
	case COMMAND_SCLAIM:
		add_word(line, op, op->key >= 2 ? any_member(op) : own_member(op));
		break;
	case COMMAND_SLEASE:
		leases_write_line(op, line);
		break;
	case COMMAND_SLOAD:
	case COMMAND_SFILL:
		leases_write_line(op, line);
		for (uint64_t n = world_random(w, world_chance(w, 30) ? SIM_MEMBERS : 5); n > 0;
			n--) {
			int member = any_member(op);
			if (!op->members[member])
				add_word(line, op, member);
		}
		break;
	case COMMAND_SSET:
		for (int m = 0; m < SIM_MEMBERS; m++) {
			if (world_chance(w, 40))
				add_word(line, op, m);
		}
		break;
	case COMMAND_TOUCH:
		/* Only key 2 may expire within the history. */
		if (w->form)
			op->exptime = w->dated ? dates_choose(w) : (int64_t)world_random(w, 3);
		else
			op->exptime = op->key >= 2 &&
					world_chance(w, w->mutation == MUTATION_NO_MARGIN ? 80 : 30)
				? (int64_t)world_random(w, 3)
				: lives_choose(w);
		buf_printf(line, " %d", (int)op->exptime);
		break;
	default:
		write_question(op, line);
	}
	BUF_ADD(line, "\r\n");
}

/* Records the data that the checks need about a write after its reply. */
static void remember(struct sim_op *op)
{
	struct world *w = op->world;
	struct sim_past *past = &w->past[op->number];

	*past = (struct sim_past){
		.client = op->client, .key = op->key, .adds = op->command != COMMAND_SREM
	};
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (!op->members[m])
			continue;
		past->members |= 1ull << m;
		w->last[op->client][op->key][m] = w->last_any[op->client][op->key] = op->number;
	}
}

/* --- commands of many keys --- */

/* With this number of keys a command reads in stages. */
static bool has_many_keys(struct world *w, command_id command)
{
	return command == COMMAND_GAT ||
		(command == COMMAND_SMEMBERS && !w->form && world_chance(w, 10));
}

static void write_many(struct sim_op *op, struct buf *line)
{
	struct world *w = op->world;
	struct sim_many *many = op->many = xcalloc(1, sizeof(*many));

	op->key = -1;
	memcpy(many->before, w->last[op->client], sizeof(many->before));
	memcpy(many->before_any, w->last_any[op->client], sizeof(many->before_any));
	buf_printf(line, "%s", command_get(op->command)->name.p);
	if (op->command == COMMAND_GAT) {
		op->exptime = lives_choose_late(w);
		buf_printf(line, " %d", (int)op->exptime);
		for (size_t n = 0; n < ORDER_KEYS_FIRST + 5; n++)
			buf_printf(line, " %c%d", n % LIVES < SIM_KEYS ? 's' : 'l',
				(int)(n % LIVES % SIM_KEYS));
	} else {
		for (size_t n = ORDER_SETS_FIRST + 1 + world_random(w, 4); n > 0; n--) {
			char key = (char)world_random(w, SIM_KEYS);
			buf_add(&many->keys, &key, 1);
			buf_printf(line, " s%d", key);
		}
	}
	BUF_ADD(line, "\r\n");
}

void clients_issue(
	struct world *w, struct lan_proxy *proxy, int client, int key, command_id command)
{
	struct sim_op *op = xcalloc(1, sizeof(*op));
	struct buf *line = &op->line;

	op->world = w;
	op->proxy = proxy;
	op->client = client;
	op->key = key;
	op->command = command;
	op->number = ++w->commands;
	assert(op->number < SIM_COMMANDS);
	op->before_any = w->last_any[client][key];
	memcpy(op->before, w->last[client][key], sizeof(op->before));
	if (command == COMMAND_LPUSH)
		lists_write_line(w, op, line);
	else if (command == COMMAND_LRANGE)
		lists_write_read(op, key, line);
	else if (has_many_keys(w, command))
		write_many(op, line);
	else
		write_line(op, line);
	remember(op);
	pipeline_send(op);
}

void clients_act(struct world *w)
{
	int client = (int)world_random(w, SIM_CLIENTS);

	for (uint64_t n = 1 + world_random(w, 4); n > 0; n--) {
		int key = (int)world_random(w, w->form ? LEASES_KEY : SIM_KEYS);
		struct lan_proxy *proxy = w->proxies[w->client_proxy[client]];
		if (!w->form && world_chance(w, 40))
			clients_issue(w, proxy, client, key, COMMAND_LPUSH);
		else
			clients_issue(w, proxy, client, key, choose_command(w, key));
	}
}
