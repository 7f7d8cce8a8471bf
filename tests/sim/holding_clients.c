/* The clients of holding.h: their commands. */
#include <stdio.h>
#include <stdlib.h>

#include "holding.h"
#include "protocol/commands.h"

static struct holding_op *new_op(struct holding *w, int client, int list)
{
	struct holding_op *op =
		stage_new_op(&w->stage, sizeof(*op), client, client % STAGE_PROXIES);

	op->world = w;
	op->list = list;
	op->job = -1;
	op->version = w->version_count[list];
	return op;
}

/* A job that is due when the command is sent must not be held any more when it has been answered. */
static void note_overdue(struct holding_op *op)
{
	struct holding *w = op->world;
	const struct holding_state *s = &w->lists[op->list];

	for (int i = 0; i < w->job_count; i++) {
		if (s->jobs[i].held && s->jobs[i].date <= holding_least(w, op->list))
			memcpy(op->overdue, s->jobs[i].ticket, sizeof(op->overdue));
	}
}

static void send(struct holding_op *op)
{
	op->world->clients[op->stage.client].busy = true;
	note_overdue(op);
	stage_send(&op->stage);
}

/* --- commands --- */

static void write_push(struct holding_op *op)
{
	struct holding *w = op->world;
	uint64_t count = 1 + stage_random(&w->stage, 3);

	op->stage.command = stage_chance(&w->stage, 70) ? COMMAND_RPUSH : COMMAND_LPUSH;
	buf_printf(&op->stage.line, "%s %s", op->stage.command == COMMAND_RPUSH ? "rpush" : "lpush",
		holding_key(op->list));
	for (; count > 0; count--) {
		w->jobs[w->job_count].list = op->list;
		buf_printf(&op->stage.line, " e%d", w->job_count++);
	}
}

static const char *some_end(struct holding *w)
{
	static const char *const ends[] = { "", " left", " right" };

	return ends[stage_random(&w->stage, 3)];
}

static void write_hold(struct holding_op *op)
{
	struct holding *w = op->world;
	unsigned seconds = 1 + (unsigned)stage_random(&w->stage, HOLDING_SECONDS), ms;

	if (stage_chance(&w->stage, 70)) {
		op->stage.command = COMMAND_LHOLD;
		buf_printf(&op->stage.line, "lhold %s", holding_key(op->list));
	} else {
		op->stage.command = COMMAND_BLHOLD;
		ms = stage_chance(&w->stage, 40) ? 0 : 20 + (unsigned)stage_random(&w->stage, 4000);
		op->stage.deadline = ms ? op->stage.issued + ms : UINT64_MAX;
		buf_printf(&op->stage.line, "blhold %u.%03u %s", ms / 1000, ms % 1000,
			holding_key(op->list));
	}
	buf_printf(&op->stage.line, " %u%s", seconds, some_end(w));
}

/* A client ends its hold, or that of another client whose ticket it has seen, or none. */
static void write_end(struct holding_op *op, const struct holding_client *c)
{
	struct holding *w = op->world;
	bool fails = stage_chance(&w->stage, 30), guesses = stage_chance(&w->stage, 10);
	struct holding_job *job = guesses ? NULL : &w->jobs[c->job];

	op->stage.command = fails ? COMMAND_LFAIL : COMMAND_LACK;
	memcpy(op->ticket, guesses ? "0123456789ab" : c->ticket, sizeof(op->ticket));
	if (job && strcmp(job->ticket, op->ticket) == 0) {
		job->ack_sent |= !fails;
		job->fail_sent |= fails;
	}
	op->job = guesses ? -1 : c->job;
	buf_printf(&op->stage.line, "%s %s %s", fails ? "lfail" : "lack", holding_key(op->list),
		op->ticket);
}

static void write_other(struct holding_op *op)
{
	static const struct {
		command_id command;
		const char *name, *more;
	} others[] = { { COMMAND_LRANGE, "lrange", " 0 -1" }, { COMMAND_LLEN, "llen", "" },
		{ COMMAND_LRANGE, "lrange", " 0 -1" }, { COMMAND_SCOMPACT, "scompact", "" },
		{ COMMAND_TOUCH, "touch", " 100000" } };
	uint64_t i = stage_random(&op->world->stage, sizeof(others) / sizeof(others[0]));

	op->stage.command = others[i].command;
	buf_printf(
		&op->stage.line, "%s %s%s", others[i].name, holding_key(op->list), others[i].more);
}

void holding_act(struct holding *w)
{
	int client = (int)stage_random(&w->stage, HOLDING_CLIENTS);
	struct holding_client *c = &w->clients[client];
	struct holding_op *op;
	uint64_t dice = stage_random(&w->stage, 100);

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

	op->stage.command = command;
	buf_printf(&op->stage.line, "%s", line);
	if (command == COMMAND_LACK) {
		op->job = w->clients[1].job;
		memcpy(op->ticket, w->clients[1].ticket, sizeof(op->ticket));
		w->jobs[op->job].ack_sent = true;
	}
	send(op);
	stage_settle(&w->stage);
}

/* One client after the other takes all jobs. */
void holding_drain(struct holding *w)
{
	for (int list = 0; list < HOLDING_DEAD && !w->stage.violation; list++) {
		for (int i = 0; i < 2 * HOLDING_JOBS && !w->stage.violation; i++) {
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
