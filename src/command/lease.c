/*
 * The commands by which one client at a time loads a missing set or list. Each is an operation
 * in the lane of its key.
 */
#include "collection/lane/lanes.h"
#include "command/args.h"
#include "command/op_task.h"
#include "command/start.h"
#include "command/word_log.h"
#include "protocol/commands.h"
#include "protocol/reply.h"

static void lease_on_outcome(struct op *op, const struct outcome *outcome)
{
	struct task *task = &op_task_of(op)->task;
	struct reply r;

	switch (outcome->status) {
	case OUTCOME_DONE:
		r = reply_word(WORD_LEASE);
		r.bytes = outcome->log;
		task_say(task, &r);
		return;
	case OUTCOME_LOADING:
		task_say_word(task, WORD_WAIT);
		return;
	case OUTCOME_PRESENT:
		task_say_word(task, WORD_EXISTS);
		return;
	default:
		(void)outcome_ends(outcome, task);
	}
}

void take_lease_start(struct host *host, const struct request *request, void *owner)
{
	struct op_task *t = op_task_new(host, request, owner, OP_LEASE, lease_on_outcome, 0);

	t->op.count = request->args->count ? request->args->count : host->env.options->lease_time;
	t->op.type = request->command->id == COMMAND_LLEASE ? COLLECTION_LIST : COLLECTION_SET;
	op_task_submit(t);
}

void load_words_start(struct host *host, const struct request *request, void *owner)
{
	static const struct {
		bool completes;
		enum collection_type type;
	} loads[] = {
		[COMMAND_SLOAD] = { .completes = false },
		[COMMAND_SFILL] = { .completes = true },
		[COMMAND_LLOAD] = { .type = COLLECTION_LIST },
		[COMMAND_LFILL] = { .completes = true, .type = COLLECTION_LIST },
	};
	const struct args *args = request->args;
	struct word_log w = word_log_of_args(request, '+', word_log_date(host, request));
	size_t room = word_log_room(&w);
	struct op_task *t =
		op_task_new(host, request, owner, OP_LOAD, op_task_told, room + args->token.n);
	char *at = t->more + room;

	t->op.token = task_keep(&at, args->token);
	t->op.completes = loads[request->command->id].completes;
	t->op.type = loads[request->command->id].type;
	word_log_submit(t, &w);
}
