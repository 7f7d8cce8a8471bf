/* The clients of taking.h: their commands and replies. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/commands.h"
#include "taking.h"

enum {
	WORKERS = 6,
	RESTS = 100 /* milliseconds, after a failure: lost messages arrive before that */
};

/* --- sending --- */

static struct taking_op *new_op(struct taking *w, int client)
{
	struct taking_op *op =
		stage_new_op(&w->stage, sizeof(*op), client, w->clients[client].proxy);

	op->world = w;
	op->from = op->to = op->member = -1;
	return op;
}

static void send(struct taking_op *op)
{
	op->world->clients[op->stage.client].busy = true;
	stage_send(&op->stage);
}

void taking_ask(struct taking *w, int client, command_id command, const char *line)
{
	struct taking_op *op = new_op(w, client);

	op->stage.command = command;
	buf_printf(&op->stage.line, "%s", line);
	send(op);
}

/* --- lists --- */

static const char *any_end(struct taking *w)
{
	return stage_chance(&w->stage, 50) ? "left" : "right";
}

static void write_push(struct taking_op *op)
{
	struct taking *w = op->world;
	int count = 1 + (int)stage_random(&w->stage, 3), element;

	op->stage.command = stage_chance(&w->stage, 60) ? COMMAND_RPUSH : COMMAND_LPUSH;
	op->to = (int)stage_random(&w->stage, w->kind == TAKING_MOVES ? 2 : TAKING_SHARES);
	/* To a client's own list, others may only push as well. */
	if (w->kind == TAKING_MOVES && stage_chance(&w->stage, 40))
		op->to = TAKING_OWN + (int)stage_random(&w->stage, WORKERS);
	buf_printf(&op->stage.line, "%s %s", op->stage.command == COMMAND_RPUSH ? "rpush" : "lpush",
		taking_list_key(op->to));
	while (count-- > 0 && (element = taking_new_element(w)))
		buf_printf(&op->stage.line, " e%d", element);
}

static const char *target(struct taking_op *op)
{
	if (!taking_refuses(op))
		return taking_list_key(op->to);
	op->to = -1;
	return taking_plain.p;
}

static void write_move(struct taking_op *op, int from, int to)
{
	struct taking *w = op->world;

	op->from = from;
	op->to = to;
	op->stage.command = stage_chance(&w->stage, 20) ? COMMAND_RPOPLPUSH : COMMAND_LMOVE;
	if (op->stage.command == COMMAND_RPOPLPUSH)
		buf_printf(&op->stage.line, "rpoplpush %s %s", taking_list_key(from), target(op));
	else
		buf_printf(&op->stage.line, "lmove %s %s %s %s", taking_list_key(from), target(op),
			any_end(w), any_end(w));
}

static void write_pop(struct taking_op *op, int list)
{
	op->stage.command = stage_chance(&op->world->stage, 50) ? COMMAND_LPOP : COMMAND_RPOP;
	op->from = list;
	buf_printf(&op->stage.line, "%s %s 1", op->stage.command == COMMAND_LPOP ? "lpop" : "rpop",
		taking_list_key(list));
}

/* In milliseconds; 0 for ever. */
static void write_timeout(struct taking_op *op, const char *name)
{
	struct taking *w = op->world;
	unsigned ms =
		stage_chance(&w->stage, 40) ? 0 : 20 + (unsigned)stage_random(&w->stage, 2500);

	if (ms)
		op->stage.deadline = op->stage.issued + ms;
	buf_printf(&op->stage.line, "%s %u.%03u", name, ms / 1000, ms % 1000);
}

static void add_waiting(struct taking_op *op, int list)
{
	op->keys[op->count++] = list;
	buf_printf(&op->stage.line, " %s", taking_list_key(list));
}

static void write_wait(struct taking_op *op)
{
	struct taking *w = op->world;
	int first = (int)stage_random(&w->stage, TAKING_SHARES), count = 1;

	if (stage_chance(&w->stage, 25)) {
		op->stage.command = COMMAND_BLMOVE;
		op->from = first;
		op->to = TAKING_OWN + op->stage.client;
		write_timeout(op, "blmove");
		add_waiting(op, first);
		buf_printf(&op->stage.line, " %s %s %s", target(op), any_end(w), any_end(w));
		return;
	}
	op->stage.command = stage_chance(&w->stage, 50) ? COMMAND_BLPOP : COMMAND_BRPOP;
	write_timeout(op, op->stage.command == COMMAND_BLPOP ? "blpop" : "brpop");
	if (stage_chance(&w->stage, 40))
		count += 1 + (int)stage_random(&w->stage, TAKING_SHARES - 1);
	for (int i = 0; i < count; i++)
		add_waiting(op, (first + i) % TAKING_SHARES);
}

/* From a shared list to one of the client, and from there to one from which nothing is removed. */
static void write_owned(struct taking_op *op)
{
	struct taking *w = op->world;
	int source = (int)stage_random(&w->stage, 2), own = TAKING_OWN + op->stage.client;
	uint64_t dice = stage_random(&w->stage, 100);

	if (dice < 55)
		write_move(op, source, own);
	else if (dice < 65)
		write_move(op, source, source);
	else if (dice < 90 || w->stage.trouble)
		write_move(op, own, TAKING_DONE);
	else
		write_pop(op, own);
}

static void write_shared(struct taking_op *op)
{
	struct taking *w = op->world;

	if (!w->stage.trouble && stage_chance(&w->stage, 25))
		write_pop(op, (int)stage_random(&w->stage, TAKING_SHARES));
	else
		write_move(op, (int)stage_random(&w->stage, TAKING_SHARES),
			(int)stage_random(&w->stage, TAKING_SHARES + 1));
}

/* --- acting --- */

static void write_line(struct taking_op *op)
{
	bool works = op->stage.client < WORKERS;

	if (op->world->kind == TAKING_SMOVES)
		(works ? taking_write_smove : taking_write_loose)(op);
	else if (op->world->kind == TAKING_STORES)
		(works ? taking_write_store : taking_write_loose)(op);
	else if (!works)
		write_push(op);
	else if (op->world->kind == TAKING_MOVES)
		write_owned(op);
	else
		(op->world->kind == TAKING_SHARED ? write_shared : write_wait)(op);
}

static struct taking_op *waiting_op(struct taking *w, int client)
{
	struct taking_op *op;

	STAGE_FOREACH(op, w) {
		if (op->stage.client == client && op->count && op->way == TAKING_STAYS)
			return op;
	}
	return NULL;
}

static bool is_under_way(const struct taking *w, const struct taking_op *op)
{
	const struct taking_op *other;

	STAGE_FOREACH(other, w) {
		if (other == op)
			return true;
	}
	return false;
}

/*
 * Another client replaces one that disconnects. An abandoned task that does not end immediately is
 * about to pop.
 */
static void leave(struct taking *w, int client)
{
	struct taking_op *op = waiting_op(w, client);

	if (!op)
		return;
	op->way = TAKING_CLOSES + (enum taking_way)stage_random(&w->stage, 3);
	op->left = stage_now(&w->stage);
	lan_say(&w->stage.lan, "client %d leaves (%d)\n", client, (int)op->way);
	w->clients[client].busy = false;
	if (op->way != TAKING_CLOSES)
		return;
	lan_set_clock(&op->stage.proxy->lan);
	op->stage.account.gone = true;
	if (op->stage.task->resume)
		op->stage.task->resume(op->stage.task);
	if (is_under_way(w, op))
		op->is_popping = true;
}

void taking_act(struct taking *w)
{
	int client = (int)stage_random(&w->stage, TAKING_CLIENTS);
	struct taking_op *op;

	if (w->clients[client].busy && stage_chance(&w->stage, 5))
		leave(w, client);
	if (w->clients[client].busy || w->clients[client].rests > stage_now(&w->stage))
		return;
	/* Usually the waiting clients are faster than the pushing ones. */
	if (w->kind == TAKING_WAITERS && client >= WORKERS && stage_chance(&w->stage, 40))
		return;
	op = new_op(w, client);
	write_line(op);
	if (buf_size(&op->stage.line) == 0) {
		stage_free_op(&op->stage);
		return;
	}
	send(op);
}

/* --- replies --- */

bool taking_is_unknown(const struct taking_op *op)
{
	/* The reply of an abandoned task is not read. */
	if (op->way == TAKING_CLOSES && !op->stage.proxy->lan.dead)
		return op->is_popping;
	return stage_has_failed(&op->stage);
}

static void look_at_failure(struct taking_op *op)
{
	struct taking *w = op->world;
	struct slice reply = buf_slice(&op->stage.reply);
	bool busy = slice_starts(reply, SLICE("SERVER_ERROR busy"));

	w->clients[op->stage.client].rests =
		(op->stage.proxy->lan.dead ? w->stage.last_arrival : stage_now(&w->stage)) + RESTS;
	if (busy && !op->stage.proxy->lan.dead)
		w->busy++;
	else
		w->stage.failures++;
	if (!w->stage.trouble && !busy)
		stage_fail(&w->stage, "a command failed", "%.*s: %.*s", STAGE_LINE(op),
			(int)reply.n, reply.p);
}

/* Nothing was moved to the plain item. */
static void refused(const struct taking_op *op)
{
	struct slice reply = buf_slice(&op->stage.reply);

	if (slice_starts(reply, SLICE("VALUE ")) || slice_starts(reply, SLICE("STORED")))
		stage_fail(&op->world->stage, "something was moved to a plain item", "%.*s",
			STAGE_LINE(op));
}

void taking_answered(struct stage_op *answered)
{
	struct taking_op *op = (struct taking_op *)answered;
	struct taking *w = op->world;

	if (op->way == TAKING_STAYS)
		w->clients[op->stage.client].busy = false;
	if (slice_starts(
		    buf_slice(&op->stage.reply), SLICE("SERVER_ERROR too many waiting clients"))) {
		taking_may_not_wait(op);
		return;
	}
	if (taking_is_unknown(op) && op->way != TAKING_CLOSES)
		look_at_failure(op);
	if (op->is_refused)
		refused(op);
	else if (w->kind >= TAKING_SMOVES)
		taking_set_answered(op);
	else
		taking_list_answered(op);
}
