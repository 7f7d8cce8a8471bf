/* The clients of taking.h: their commands and replies. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/commands.h"
#include "taking.h"
#include "util/alloc.h"
#include "wording.h"

enum {
	WORKERS = 6,
	RESTS = 100 /* milliseconds, after a failure: lost messages arrive before that */
};

void taking_free_op(struct taking_op *op)
{
	TAILQ_REMOVE(&op->world->ops, op, link);
	buf_free(&op->line);
	buf_free(&op->reply);
	free(op);
}

/* --- sending --- */

static struct taking_op *new_op(struct taking *w, int client)
{
	struct taking_op *op = xcalloc(1, sizeof(*op));

	op->world = w;
	op->client = client;
	op->proxy = &w->proxies[w->clients[client].proxy];
	op->from = op->to = op->member = -1;
	op->issued = taking_now(w);
	op->deadline = UINT64_MAX;
	TAILQ_INSERT_TAIL(&w->ops, op, link);
	return op;
}

static void send(struct taking_op *op)
{
	struct taking *w = op->world;

	w->commands++;
	w->clients[op->client].busy = true;
	if (!lan_ask(&op->proxy->lan.first, op->client, buf_slice(&op->line), op))
		taking_fail(w, "a request was refused", "%.*s", (int)buf_size(&op->line),
			op->line.data);
}

void taking_ask(struct taking *w, int client, command_id command, const char *line)
{
	struct taking_op *op = new_op(w, client);

	op->command = command;
	buf_printf(&op->line, "%s\r\n", line);
	send(op);
}

/* --- lists --- */

static const char *any_end(struct taking *w)
{
	return taking_chance(w, 50) ? "left" : "right";
}

static void write_push(struct taking_op *op)
{
	struct taking *w = op->world;
	int count = 1 + (int)taking_random(w, 3), element;

	op->command = taking_chance(w, 60) ? COMMAND_RPUSH : COMMAND_LPUSH;
	op->to = (int)taking_random(w, w->kind == TAKING_MOVES ? 2 : TAKING_SHARES);
	/* To a client's own list, others may only push as well. */
	if (w->kind == TAKING_MOVES && taking_chance(w, 40))
		op->to = TAKING_OWN + (int)taking_random(w, WORKERS);
	buf_printf(&op->line, "%s %s", op->command == COMMAND_RPUSH ? "rpush" : "lpush",
		taking_list_key(op->to));
	while (count-- > 0 && (element = taking_new_element(w)))
		buf_printf(&op->line, " e%d", element);
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
	op->command = taking_chance(w, 20) ? COMMAND_RPOPLPUSH : COMMAND_LMOVE;
	if (op->command == COMMAND_RPOPLPUSH)
		buf_printf(&op->line, "rpoplpush %s %s", taking_list_key(from), target(op));
	else
		buf_printf(&op->line, "lmove %s %s %s %s", taking_list_key(from), target(op),
			any_end(w), any_end(w));
}

static void write_pop(struct taking_op *op, int list)
{
	op->command = taking_chance(op->world, 50) ? COMMAND_LPOP : COMMAND_RPOP;
	op->from = list;
	buf_printf(&op->line, "%s %s 1", op->command == COMMAND_LPOP ? "lpop" : "rpop",
		taking_list_key(list));
}

/* In milliseconds; 0 for ever. */
static void write_timeout(struct taking_op *op, const char *name)
{
	struct taking *w = op->world;
	unsigned ms = taking_chance(w, 40) ? 0 : 20 + (unsigned)taking_random(w, 2500);

	if (ms)
		op->deadline = op->issued + ms;
	buf_printf(&op->line, "%s %u.%03u", name, ms / 1000, ms % 1000);
}

static void add_waiting(struct taking_op *op, int list)
{
	op->keys[op->count++] = list;
	buf_printf(&op->line, " %s", taking_list_key(list));
}

static void write_wait(struct taking_op *op)
{
	struct taking *w = op->world;
	int first = (int)taking_random(w, TAKING_SHARES), count = 1;

	if (taking_chance(w, 25)) {
		op->command = COMMAND_BLMOVE;
		op->from = first;
		op->to = TAKING_OWN + op->client;
		write_timeout(op, "blmove");
		add_waiting(op, first);
		buf_printf(&op->line, " %s %s %s", target(op), any_end(w), any_end(w));
		return;
	}
	op->command = taking_chance(w, 50) ? COMMAND_BLPOP : COMMAND_BRPOP;
	write_timeout(op, op->command == COMMAND_BLPOP ? "blpop" : "brpop");
	if (taking_chance(w, 40))
		count += 1 + (int)taking_random(w, TAKING_SHARES - 1);
	for (int i = 0; i < count; i++)
		add_waiting(op, (first + i) % TAKING_SHARES);
}

/* From a shared list to one of the client, and from there to one from which nothing is removed. */
static void write_owned(struct taking_op *op)
{
	struct taking *w = op->world;
	int source = (int)taking_random(w, 2), own = TAKING_OWN + op->client;
	uint64_t dice = taking_random(w, 100);

	if (dice < 55)
		write_move(op, source, own);
	else if (dice < 65)
		write_move(op, source, source);
	else if (dice < 90 || w->trouble)
		write_move(op, own, TAKING_DONE);
	else
		write_pop(op, own);
}

static void write_shared(struct taking_op *op)
{
	struct taking *w = op->world;

	if (!w->trouble && taking_chance(w, 25))
		write_pop(op, (int)taking_random(w, TAKING_SHARES));
	else
		write_move(op, (int)taking_random(w, TAKING_SHARES),
			(int)taking_random(w, TAKING_SHARES + 1));
}

/* --- acting --- */

static void write_line(struct taking_op *op)
{
	bool works = op->client < WORKERS;

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

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->client == client && op->count && op->way == TAKING_STAYS)
			return op;
	}
	return NULL;
}

static bool is_under_way(const struct taking *w, const struct taking_op *op)
{
	const struct taking_op *other;

	TAILQ_FOREACH(other, &w->ops, link) {
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
	op->way = TAKING_CLOSES + (enum taking_way)taking_random(w, 3);
	op->left = taking_now(w);
	lan_say(&w->lan, "client %d leaves (%d)\n", client, (int)op->way);
	w->clients[client].busy = false;
	if (op->way != TAKING_CLOSES)
		return;
	lan_set_clock(&op->proxy->lan);
	op->account.gone = true;
	if (op->task->resume)
		op->task->resume(op->task);
	if (is_under_way(w, op))
		op->is_popping = true;
}

void taking_act(struct taking *w)
{
	int client = (int)taking_random(w, TAKING_CLIENTS);
	struct taking_op *op;

	if (w->clients[client].busy && taking_chance(w, 5))
		leave(w, client);
	if (w->clients[client].busy || w->clients[client].rests > taking_now(w))
		return;
	/* Usually the waiting clients are faster than the pushing ones. */
	if (w->kind == TAKING_WAITERS && client >= WORKERS && taking_chance(w, 40))
		return;
	op = new_op(w, client);
	write_line(op);
	if (buf_size(&op->line) == 0) {
		taking_free_op(op);
		return;
	}
	BUF_ADD(&op->line, "\r\n");
	send(op);
}

/* --- replies --- */

struct slice taking_value(struct slice reply)
{
	struct slice rest = reply, token;
	uint64_t size = 0;

	if (!slice_starts(reply, SLICE("VALUE ")))
		return slice_of("", 0);
	for (int i = 0; i < 3; i++)
		(void)slice_token(&rest);
	rest = slice_skip(rest, 1);
	while (rest.n && *rest.p >= '0' && *rest.p <= '9') {
		size = size * 10 + (uint64_t)(*rest.p - '0');
		rest = slice_skip(rest, 1);
	}
	token = slice_skip(rest, 2);
	return slice_of(token.p, size < token.n ? size : token.n);
}

bool taking_is_unknown(const struct taking_op *op)
{
	/* The reply of an abandoned task is not read. */
	if (op->way == TAKING_CLOSES && !op->proxy->lan.dead)
		return op->is_popping;
	return op->proxy->lan.dead || slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR"));
}

static void look_at_failure(struct taking_op *op)
{
	struct taking *w = op->world;
	struct slice reply = buf_slice(&op->reply);
	bool busy = slice_starts(reply, SLICE("SERVER_ERROR busy"));

	w->clients[op->client].rests =
		(op->proxy->lan.dead ? w->last_arrival : taking_now(w)) + RESTS;
	if (busy && !op->proxy->lan.dead)
		w->busy++;
	else
		w->failures++;
	if (!w->trouble && !busy)
		taking_fail(w, "a command failed", "%.*s: %.*s", (int)buf_size(&op->line) - 2,
			op->line.data, (int)reply.n, reply.p);
}

/* Nothing was moved to the plain item. */
static void refused(const struct taking_op *op)
{
	struct slice reply = buf_slice(&op->reply);

	if (slice_starts(reply, SLICE("VALUE ")) || slice_starts(reply, SLICE("STORED")))
		taking_fail(op->world, "something was moved to a plain item", "%.*s",
			(int)buf_size(&op->line) - 2, op->line.data);
}

void taking_answered(struct taking_op *op)
{
	struct taking *w = op->world;

	wording_reply(&op->reply, false);
	lan_say(&w->lan, "client %d%s %.*s: %.*s", op->client,
		op->proxy->lan.dead ? " (killed)" : "", (int)buf_size(&op->line) - 2, op->line.data,
		(int)buf_size(&op->reply), op->reply.data);
	if (op->way == TAKING_STAYS)
		w->clients[op->client].busy = false;
	if (slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR too many waiting clients"))) {
		taking_may_not_wait(op);
		taking_free_op(op);
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
	taking_free_op(op);
}
