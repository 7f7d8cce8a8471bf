/* The clients of pairs.h: their commands, the loads of the application, and the replies. */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/parts.h"
#include "collection/copies/copy.h"
#include "pairs.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "wording.h"

/* --- members --- */

int pairs_member(struct slice name)
{
	uint32_t number;

	if (name.n != 3 || *name.p != 'm' || !num_parse_u32(slice_skip(name, 1), &number) ||
		number < 10 || number >= 10 + PAIRS_MEMBERS)
		return -1;
	return (int)number - 10;
}

/* Some are used more often. */
static int some_member(struct pairs *w)
{
	return (int)pairs_below(w, 1 + pairs_below(w, PAIRS_POPPED));
}

static void note_stamp(struct pairs *w, int key, int member, uint64_t stamp)
{
	struct pairs_added *added = &w->added[key][member];

	for (unsigned i = 0; i < added->count; i++) {
		if (added->stamps[i] == stamp)
			return;
	}
	if (added->count < sizeof(added->stamps) / sizeof(*added->stamps))
		added->stamps[added->count++] = stamp;
}

void pairs_note_added(struct pairs *w, int key, struct slice base)
{
	struct copy copy;
	struct copy_reader reader = { 0 };
	struct copy_word word;
	int member;

	if (!copy_parse(base, &copy))
		return;
	reader.rest = copy.log;
	reader.largest = copy.horizon;
	while (copy_next(&reader, &word) == COPY_WORD) {
		if (word.starts || *word.token.p != '+')
			continue;
		member = pairs_member(wording_name(copy_member(word.token), false));
		if (member >= 0)
			note_stamp(w, key, member, word.stamp);
	}
}

/* --- the history --- */

static int add_write(struct pairs_op *op, int member, bool adds)
{
	struct pairs *w = op->world;
	int *head = &w->heads[op->key][member];

	if (w->write_count == PAIRS_WRITES)
		abort();
	w->writes[w->write_count] = (struct pairs_write){ .key = op->key,
		.member = member,
		.proxy = op->proxy,
		.next = *head,
		.adds = adds,
		.began = op->began };
	*head = w->write_count;
	return w->write_count++;
}

/* One write for each member, in their order. */
static void add_writes(struct pairs_op *op, uint64_t members, bool adds)
{
	op->first = op->world->write_count;
	op->members = members;
	for (int m = 0; m < PAIRS_MEMBERS; m++) {
		if (members & UINT64_C(1) << m)
			add_write(op, m, adds);
	}
}

/* The writes to these members were acknowledged, and the others were not done. */
static void end_writes(struct pairs_op *op, uint64_t done)
{
	struct pairs *w = op->world;
	struct pairs_write *write = &w->writes[op->first];
	bool resets = (op->command == COMMAND_DELETE || op->command == COMMAND_SSET) &&
		pairs_has_reached_all(w, op->proxy, op->began - PAIRS_SETTLED);

	for (int m = 0; m < PAIRS_MEMBERS; m++) {
		if (!(op->members & UINT64_C(1) << m))
			continue;
		write->ended = op->ended;
		write->resets = resets;
		if (!(done & UINT64_C(1) << m))
			write->began = INT64_MAX;
		write++;
	}
}

static void add_read(struct pairs_op *op, uint64_t known, uint64_t in, int members)
{
	struct pairs *w = op->world;

	w->answered++;
	if (w->read_count == PAIRS_READS)
		abort();
	w->reads[w->read_count++] = (struct pairs_read){ .key = op->key,
		.proxy = op->proxy,
		.began = op->began,
		.ended = op->ended,
		.known = known,
		.in = in,
		.count = members };
}

/* --- commands --- */

struct weight {
	command_id command;
	unsigned weight;
};

static const struct weight owned[] = { { COMMAND_SADD, 30 }, { COMMAND_SREM, 10 },
	{ COMMAND_SMEMBERS, 18 }, { COMMAND_SISMEMBER, 5 }, { COMMAND_SCARD, 4 },
	{ COMMAND_SCOMPACT, 7 }, { COMMAND_DELETE, 3 }, { COMMAND_SPOP, 7 }, { COMMAND_SCLAIM, 7 },
	{ COMMAND_SSET, 2 }, { COMMAND_TOUCH, 4 }, { COMMAND_SADDEX, 3 }, { COMMAND_STAKE, 2 },
	{ 0, 0 } };

static const struct weight cache[] = { { COMMAND_SADDX, 25 }, { COMMAND_SREM, 22 },
	{ COMMAND_SMEMBERS, 25 }, { COMMAND_SISMEMBER, 7 }, { COMMAND_SCARD, 4 },
	{ COMMAND_SCOMPACT, 8 }, { COMMAND_DELETE, 4 }, { COMMAND_TOUCH, 4 }, { 0, 0 } };

static command_id choose(struct pairs *w)
{
	const struct weight *list = w->owned ? owned : cache;
	unsigned sum = 0, dice;

	for (size_t i = 0; list[i].weight; i++)
		sum += list[i].weight;
	for (dice = pairs_below(w, sum); dice >= list->weight; list++)
		dice -= list->weight;
	return list->command;
}

static void write_members(struct pairs_op *op, uint64_t members)
{
	for (int m = 0; m < PAIRS_MEMBERS; m++) {
		if (members & UINT64_C(1) << m)
			buf_printf(&op->line, " m%d", 10 + m);
	}
}

/* The application writes to its database first. */
static void write_words(struct pairs_op *op, bool adds)
{
	struct pairs *w = op->world;
	unsigned count = pairs_chance(w, 60) ? 1 : 2 + pairs_below(w, 5);
	uint64_t members = 0;

	while (count--)
		members |= UINT64_C(1) << some_member(w);
	if (!w->owned)
		w->database[op->key] =
			adds ? w->database[op->key] | members : w->database[op->key] & ~members;
	add_writes(op, members, adds);
	write_members(op, members);
}

static void add_life(struct pairs_op *op, int member)
{
	struct pairs *w = op->world;

	if (w->life_count == PAIRS_READS)
		abort();
	op->life = w->life_count++;
	w->lives[op->life] = (struct pairs_life){
		.key = op->key, .member = member, .began = op->began, .seconds = op->seconds
	};
}

static void write_sset(struct pairs_op *op)
{
	struct pairs *w = op->world;
	uint64_t members = 0;

	for (int m = 0; m < PAIRS_MEMBERS; m++) {
		if (pairs_below(w, 3) == 0)
			members |= UINT64_C(1) << m;
	}
	write_members(op, members);
	op->first = w->write_count;
	op->members = (UINT64_C(1) << PAIRS_MEMBERS) - 1;
	for (int m = 0; m < PAIRS_MEMBERS; m++)
		add_write(op, m, members & UINT64_C(1) << m);
}

static const uint64_t everybody = (UINT64_C(1) << PAIRS_MEMBERS) - 1;

/* The arguments after the key. */
static void write_arguments(struct pairs_op *op)
{
	struct pairs *w = op->world;
	int member = some_member(w);

	switch (op->command) {
	case COMMAND_SADD:
	case COMMAND_SADDX:
		write_words(op, true);
		break;
	case COMMAND_SREM:
		write_words(op, false);
		break;
	case COMMAND_SISMEMBER:
		op->members = UINT64_C(1) << member;
		write_members(op, op->members);
		break;
	case COMMAND_SADDEX:
		op->seconds = (int64_t[]){ 3, 8, 20 }[pairs_below(w, 3)];
		add_writes(op, UINT64_C(1) << member, true);
		add_life(op, w->writes[op->first].member);
		buf_printf(&op->line, " %d", (int)op->seconds);
		write_members(op, op->members);
		break;
	case COMMAND_SCLAIM:
		member = PAIRS_POPPED + (int)pairs_below(w, PAIRS_CLAIMED);
		add_writes(op, UINT64_C(1) << member, true);
		write_members(op, op->members);
		break;
	case COMMAND_SPOP:
	case COMMAND_STAKE:
		add_writes(op, everybody, false);
		break;
	case COMMAND_DELETE:
		add_life(op, -1);
		if (w->owned)
			add_writes(op, everybody, false);
		break;
	case COMMAND_SSET:
		add_life(op, -1);
		write_sset(op);
		break;
	case COMMAND_TOUCH:
		op->seconds = (int64_t[]){ 2, 6, 15, 60, 0 }[pairs_below(w, 5)];
		add_life(op, -1);
		buf_printf(&op->line, " %d", (int)op->seconds);
		break;
	default:
		break;
	}
}

static struct pairs_op *new_op(struct pairs *w, int proxy, int key, command_id command)
{
	struct pairs_op *op = xcalloc(1, sizeof(*op));

	op->world = w;
	op->proxy = proxy;
	op->key = key;
	op->command = command;
	op->life = -1;
	op->began = pairs_now(w);
	TAILQ_INSERT_TAIL(&w->ops, op, link);
	buf_add_slice(&op->line, command_get(command)->name);
	buf_printf(&op->line, " s%d", key);
	return op;
}

void pairs_free_op(struct pairs_op *op)
{
	TAILQ_REMOVE(&op->world->ops, op, link);
	buf_free(&op->line);
	buf_free(&op->reply);
	free(op);
}

static void start(struct pairs_op *op)
{
	struct pairs *w = op->world;

	BUF_ADD(&op->line, "\r\n");
	if (!lan_ask(
		    &pairs_current(&w->proxies[op->proxy])->lan, op->key, buf_slice(&op->line), op))
		pairs_fail(w, "a request was refused", "%.*s", (int)buf_size(&op->line),
			op->line.data);
}

struct pairs_op *pairs_ask(struct pairs *w, int proxy, int key, command_id command)
{
	struct pairs_op *op = new_op(w, proxy, key, command);

	op->closing = w->ending;
	write_arguments(op);
	start(op);
	return op;
}

void pairs_act(struct pairs *w, int proxy, int key)
{
	command_id command = choose(w);

	w->resets[key] += command == COMMAND_DELETE || command == COMMAND_SSET ||
		command == COMMAND_TOUCH || command == COMMAND_STAKE;
	pairs_ask(w, proxy, key, command);
}

/* --- loads --- */

static const int64_t lease_seconds[] = { 1, 3, 10 };

void pairs_load(struct pairs *w, int proxy, int key)
{
	struct pairs_op *op = new_op(w, proxy, key, COMMAND_SLEASE);

	buf_printf(&op->line, " %d", (int)lease_seconds[pairs_below(w, 3)]);
	start(op);
}

static struct pairs_op *ask_load(
	struct pairs *w, const struct pairs_event *e, command_id command, uint64_t members)
{
	struct pairs_op *op = new_op(w, e->a, e->b, command);

	memcpy(op->token, e->token, sizeof(op->token));
	buf_printf(&op->line, " %s", e->token);
	write_members(op, members);
	start(op);
	return op;
}

static void pairs_on_fill(struct pairs *w, const struct pairs_event *e)
{
	ask_load(w, e, COMMAND_SFILL, e->members);
}

static void fill_later(struct pairs *w, int proxy, int key, const char *token, uint64_t members)
{
	struct pairs_event *e =
		pairs_at(w, pairs_now(w) + pairs_below(w, 400), pairs_on_fill, proxy, key);

	memcpy(e->token, token, sizeof(e->token));
	e->members = members;
}

/*
 * The application reads its database after it has got the lease. If it loads in two steps, it takes
 * the second one when the first has succeeded.
 */
static void pairs_on_database(struct pairs *w, const struct pairs_event *e)
{
	uint64_t all = w->database[e->b], some = all & (0x5555u << pairs_below(w, 2));

	if (pairs_chance(w, 25))
		ask_load(w, e, COMMAND_SLOAD, some)->members = all & ~some;
	else
		fill_later(w, e->a, e->b, e->token, all);
}

static void loaded(struct pairs_op *op)
{
	if (slice_starts(buf_slice(&op->reply), SLICE("STORED")))
		fill_later(op->world, op->proxy, op->key, op->token, op->members);
}

static void leased(struct pairs_op *op)
{
	struct pairs *w = op->world;
	struct slice reply = buf_slice(&op->reply), prefix = SLICE("LEASE ");
	struct pairs_event *e;

	if (!slice_starts(reply, prefix) || reply.n < prefix.n + 8)
		return;
	e = pairs_at(w, op->ended + pairs_below(w, 300), pairs_on_database, op->proxy, op->key);
	memcpy(e->token, reply.p + prefix.n, 8);
}

/* --- replies --- */

static bool says(const struct pairs_op *op, struct slice word)
{
	return slice_starts(buf_slice(&op->reply), word);
}

/* Returns the members of all values. `exists` is whether there is one. */
static uint64_t reply_members(struct pairs_op *op, bool *exists)
{
	struct slice rest = buf_slice(&op->reply), word;
	struct part part;
	uint64_t in = 0;

	*exists = false;
	while (parts_next(&rest, &part)) {
		*exists |= part.key.n > 0;
		while (part.key.n && (word = slice_token(&part.data)).n) {
			int member = pairs_member(word);
			if (member < 0 || in & UINT64_C(1) << member)
				pairs_fail(op->world, "a member that nobody added, or twice",
					"%.*s", (int)buf_size(&op->reply), op->reply.data);
			else
				in |= UINT64_C(1) << member;
		}
	}
	return in;
}

static void missing(struct pairs_op *op)
{
	struct pairs *w = op->world;

	w->missing++;
	if (w->owned)
		add_read(op, everybody, 0, 0);
	else
		pairs_load(w, op->proxy, op->key);
}

static void read_answered(struct pairs_op *op)
{
	struct pairs *w = op->world;
	bool exists;
	uint64_t in, number;

	if (op->command == COMMAND_SMEMBERS) {
		in = reply_members(op, &exists);
		if (op->closing) {
			w->last_read = in;
			w->last_exists = exists;
		}
		if (exists)
			add_read(op, everybody, in, -1);
		else
			missing(op);
	} else if (says(op, SLICE("NOT_FOUND"))) {
		missing(op);
	} else if (op->command == COMMAND_SISMEMBER) {
		add_read(op, op->members, says(op, SLICE("1")) ? op->members : 0, -1);
	} else if (num_parse_u64(
			   slice_of(op->reply.data + op->reply.start, buf_size(&op->reply) - 2),
			   &number)) {
		add_read(op, 0, 0, (int)number);
	}
}

/*
 * A member that was taken was there. Of a stake, the others were not, when it took them all: it has
 * small blocks, and others may be added meanwhile.
 */
static void taken(struct pairs_op *op)
{
	struct pairs *w = op->world;
	bool exists;
	uint64_t out = reply_members(op, &exists);

	end_writes(op, out);
	if (out)
		add_read(op, out, out, -1);
	for (int m = 0; m < PAIRS_MEMBERS; m++) {
		if (out & UINT64_C(1) << m) {
			w->popped[op->key][m]++;
			w->marks[PAIRS_MARK_taken]++;
		}
	}
}

static void claimed(struct pairs_op *op)
{
	struct pairs *w = op->world;
	bool won = says(op, SLICE("1"));

	end_writes(op, won ? op->members : 0);
	add_read(op, op->members, won ? 0 : op->members, -1);
	for (int m = PAIRS_POPPED; m < PAIRS_MEMBERS && won; m++) {
		if (op->members & UINT64_C(1) << m) {
			w->claimed[op->key][m]++;
			w->marks[PAIRS_MARK_taken]++;
		}
	}
}

static void succeeded(struct pairs_op *op)
{
	op->world->acknowledged++;
	switch (op->command) {
	case COMMAND_SADD:
	case COMMAND_SADDX:
	case COMMAND_SREM:
	case COMMAND_SADDEX:
	case COMMAND_SSET:
	case COMMAND_DELETE:
		end_writes(op, op->members);
		break;
	case COMMAND_SPOP:
	case COMMAND_STAKE:
		taken(op);
		break;
	case COMMAND_SCLAIM:
		claimed(op);
		break;
	case COMMAND_SLEASE:
		leased(op);
		break;
	case COMMAND_SLOAD:
		loaded(op);
		break;
	case COMMAND_SMEMBERS:
	case COMMAND_SISMEMBER:
	case COMMAND_SCARD:
		read_answered(op);
		break;
	default:
		break;
	}
}

/* Without faults, and when they are over, commands succeed, unless they have lost many races. */
static void check_failure(struct pairs_op *op)
{
	struct pairs *w = op->world;

	if (says(op, SLICE("SERVER_ERROR busy")) && op->command != COMMAND_SMEMBERS)
		return;
	/* A lease that is taken while the copies of a deleted set are removed may fail. */
	if (op->command == COMMAND_SLEASE && !op->closing)
		return;
	/* The same of a claim that is stored in one copy when the set is deleted. */
	if (op->command == COMMAND_SCLAIM && w->resets[op->key])
		return;
	/* A word or a base that is stored so late may be void. */
	if (pairs_now(w) - op->began >= PAIRS_TIMEOUT && !op->closing &&
		says(op, SLICE("SERVER_ERROR upstream sim connection lost, outcome unknown")))
		return;
	if (op->closing || (w->faults == PAIRS_FAULTS_NONE && !w->queues))
		pairs_fail(w, "a command failed", "%.*s -> %.*s", (int)buf_size(&op->line) - 2,
			op->line.data, (int)buf_size(&op->reply), op->reply.data);
}

void pairs_answered(struct pairs_op *op)
{
	struct pairs *w = op->world;
	bool dead = w->proxies[op->proxy].lan.dead;

	wording_reply(&op->reply, op->command == COMMAND_SPOP);
	op->ended = pairs_now(w);
	op->failed = dead || says(op, SLICE("SERVER_ERROR"));
	lan_say(&w->lan, "P%d%s %.*s (since %lld): %.*s", op->proxy, dead ? " (killed)" : "",
		(int)buf_size(&op->line) - 2, op->line.data, (long long)pairs_since(w, op->began),
		(int)buf_size(&op->reply), op->reply.data);
	w->errors += op->failed;
	if (says(op, SLICE("CLIENT_ERROR")))
		pairs_fail(w, "a client's error", "%.*s -> %.*s", (int)buf_size(&op->line) - 2,
			op->line.data, (int)buf_size(&op->reply), op->reply.data);
	/* If a touch finds the set missing, that may have expired because of it. */
	if (op->life >= 0 && !op->failed &&
		(op->command != COMMAND_TOUCH || says(op, SLICE("TOUCHED"))))
		w->lives[op->life].ended = op->ended;
	if (!op->failed)
		succeeded(op);
	else if (!dead)
		check_failure(op);
	pairs_free_op(op);
}
