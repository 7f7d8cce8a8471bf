/* The clients of holding.h: their commands. */
#include <stdio.h>
#include <stdlib.h>

#include "holding.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "wording.h"

void holding_free_op(struct holding_op *op)
{
	TAILQ_REMOVE(&op->world->ops, op, link);
	buf_free(&op->line);
	buf_free(&op->reply);
	free(op);
}

static struct holding_op *new_op(struct holding *w, int client, int list)
{
	struct holding_op *op = xcalloc(1, sizeof(*op));

	op->world = w;
	op->client = client;
	op->proxy = &w->proxies[client % HOLDING_PROXIES];
	op->list = list;
	op->job = -1;
	op->issued = holding_now(w);
	op->deadline = UINT64_MAX;
	op->version = w->version_count[list];
	TAILQ_INSERT_TAIL(&w->ops, op, link);
	return op;
}

/* A job that is due when the command is sent must not be held any more when it has been answered. */
static void note_overdue(struct holding_op *op)
{
	struct holding *w = op->world;
	const struct holding_state *s = &w->lists[op->list];

	for (int i = 0; i < w->job_count; i++) {
		if (s->jobs[i].held && s->jobs[i].date <= holding_clock(w, op->list))
			memcpy(op->overdue, s->jobs[i].ticket, sizeof(op->overdue));
	}
}

static void send(struct holding_op *op)
{
	struct holding *w = op->world;

	w->commands++;
	w->clients[op->client].busy = true;
	note_overdue(op);
	BUF_ADD(&op->line, "\r\n");
	if (!lan_ask(&op->proxy->lan.first, op->client, buf_slice(&op->line), op))
		holding_fail(w, "a request was refused", "%.*s", (int)buf_size(&op->line),
			op->line.data);
}

/* --- commands --- */

static void write_push(struct holding_op *op)
{
	struct holding *w = op->world;
	uint64_t count = 1 + lan_random(&w->lan, 3);

	op->command = holding_chance(w, 70) ? COMMAND_RPUSH : COMMAND_LPUSH;
	buf_printf(&op->line, "%s %s", op->command == COMMAND_RPUSH ? "rpush" : "lpush",
		holding_key(op->list));
	for (; count > 0; count--) {
		w->jobs[w->job_count].list = op->list;
		buf_printf(&op->line, " e%d", w->job_count++);
	}
}

static const char *some_end(struct holding *w)
{
	static const char *const ends[] = { "", " left", " right" };

	return ends[lan_random(&w->lan, 3)];
}

static void write_hold(struct holding_op *op)
{
	struct holding *w = op->world;
	unsigned seconds = 1 + (unsigned)lan_random(&w->lan, HOLDING_SECONDS), ms;

	if (holding_chance(w, 70)) {
		op->command = COMMAND_LHOLD;
		buf_printf(&op->line, "lhold %s", holding_key(op->list));
	} else {
		op->command = COMMAND_BLHOLD;
		ms = holding_chance(w, 40) ? 0 : 20 + (unsigned)lan_random(&w->lan, 4000);
		op->deadline = ms ? op->issued + ms : UINT64_MAX;
		buf_printf(&op->line, "blhold %u.%03u %s", ms / 1000, ms % 1000,
			holding_key(op->list));
	}
	buf_printf(&op->line, " %u%s", seconds, some_end(w));
}

/* A client ends its hold, or that of another client whose ticket it has seen, or none. */
static void write_end(struct holding_op *op, const struct holding_client *c)
{
	struct holding *w = op->world;
	bool fails = holding_chance(w, 30), guesses = holding_chance(w, 10);
	struct holding_job *job = guesses ? NULL : &w->jobs[c->job];

	op->command = fails ? COMMAND_LFAIL : COMMAND_LACK;
	memcpy(op->ticket, guesses ? "0123456789ab" : c->ticket, sizeof(op->ticket));
	if (job && strcmp(job->ticket, op->ticket) == 0) {
		job->ack_sent |= !fails;
		job->fail_sent |= fails;
	}
	op->job = guesses ? -1 : c->job;
	buf_printf(
		&op->line, "%s %s %s", fails ? "lfail" : "lack", holding_key(op->list), op->ticket);
}

static void write_other(struct holding_op *op)
{
	static const struct {
		command_id command;
		const char *name, *more;
	} others[] = { { COMMAND_LRANGE, "lrange", " 0 -1" }, { COMMAND_LLEN, "llen", "" },
		{ COMMAND_LRANGE, "lrange", " 0 -1" }, { COMMAND_SCOMPACT, "scompact", "" },
		{ COMMAND_TOUCH, "touch", " 100000" } };
	uint64_t i = lan_random(&op->world->lan, sizeof(others) / sizeof(others[0]));

	op->command = others[i].command;
	buf_printf(&op->line, "%s %s%s", others[i].name, holding_key(op->list), others[i].more);
}

void holding_act(struct holding *w)
{
	int client = (int)lan_random(&w->lan, HOLDING_CLIENTS);
	struct holding_client *c = &w->clients[client];
	struct holding_op *op;
	uint64_t dice = lan_random(&w->lan, 100);

	if (c->busy)
		return;
	op = new_op(w, client, c->job >= 0 ? w->jobs[c->job].list : (int)dice % 2);
	if (c->job >= 0 && dice < 60)
		write_end(op, c);
	else if (dice < (w->scarce ? 12 : 45) && w->job_count + 3 < HOLDING_JOBS)
		write_push(op);
	else if (dice < 80)
		write_hold(op);
	else
		write_other(op);
	send(op);
}

/* --- at the end --- */

static void ask(struct holding *w, int list, command_id command, const char *line)
{
	struct holding_op *op = new_op(w, 1, list);

	op->command = command;
	buf_printf(&op->line, "%s", line);
	if (command == COMMAND_LACK) {
		op->job = w->clients[1].job;
		memcpy(op->ticket, w->clients[1].ticket, sizeof(op->ticket));
		w->jobs[op->job].ack_sent = true;
	}
	send(op);
	holding_settle(w);
}

/* One client after the other takes all jobs. */
void holding_drain(struct holding *w)
{
	for (int list = 0; list < HOLDING_DEAD && !w->violation; list++) {
		for (int i = 0; i < 2 * HOLDING_JOBS && !w->violation; i++) {
			char line[64];
			w->clients[1].job = -1;
			snprintf(line, sizeof(line), "lhold %s 1000", holding_key(list));
			ask(w, list, COMMAND_LHOLD, line);
			if (w->clients[1].job < 0)
				break;
			snprintf(line, sizeof(line), "lack %s %s", holding_key(list),
				w->clients[1].ticket);
			ask(w, list, COMMAND_LACK, line);
		}
	}
}

void holding_replied(struct holding_op *op)
{
	struct holding *w = op->world;

	wording_reply(&op->reply, false);
	lan_say(&w->lan, "client %d%s %.*s: %.*s", op->client,
		op->proxy->lan.dead ? " (killed)" : "", (int)buf_size(&op->line) - 2, op->line.data,
		(int)buf_size(&op->reply), op->reply.data);
	w->clients[op->client].busy = false;
	if (op->proxy->lan.dead || slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR")))
		w->failures++;
	else
		holding_answered(op);
	holding_free_op(op);
}
