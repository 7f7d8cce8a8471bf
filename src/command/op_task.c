#include "command/op_task.h"

#include "collection/lane/lanes.h"
#include "command/args.h"
#include "command/lookup.h"
#include "protocol/commands.h"
#include "protocol/reply.h"

/* --- outcomes --- */

struct result outcome_result(const struct outcome *outcome)
{
	const char *const lines[] = {
		[OUTCOME_CORRUPT] = "CLIENT_ERROR value is not a collection",
		[OUTCOME_NEWER] = "SERVER_ERROR stored by a newer version of setlistd",
		[OUTCOME_IS_SET] = "CLIENT_ERROR value is a set, not a list",
		[OUTCOME_TOO_LARGE] = "SERVER_ERROR object too large for cache",
		[OUTCOME_OVERFLOW] = task_too_large,
		[OUTCOME_BUSY] = "SERVER_ERROR busy",
		[OUTCOME_NO_CAS] = "SERVER_ERROR the server returns no cas ids (memcached -C)",
		[OUTCOME_RANGE] = "CLIENT_ERROR index out of range",
		[OUTCOME_FULL] = "SERVER_ERROR too many held elements",
	};
	const char *line;

	if (outcome->status == OUTCOME_MISSING)
		return (struct result){ .status = RESULT_MISS };
	if (outcome->status == OUTCOME_FAILED)
		return *outcome->result;
	line = lines[outcome->status];
	return (struct result){ .status = RESULT_REFUSED, .line = slice_of(line, strlen(line)) };
}

void outcome_add_error(struct buf *out, const struct outcome *outcome)
{
	const struct result r = outcome_result(outcome);

	reply_add_error(out, &r);
}

void task_note_outcome(struct task *task, const struct outcome *outcome)
{
	if (!task_has_failed(task))
		outcome_add_error(&task->scratch, outcome);
}

/*
 * Returns the word of an outcome that is not a failure. memcached's own commands reply the same
 * for a missing item as in memcached.
 */
static enum reply_word word_of_status(enum outcome_status status, const struct command *command)
{
	switch (status) {
	case OUTCOME_MISSING:
		return command->grammar == GRAMMAR_STORAGE && command->id != COMMAND_CAS
			? WORD_NOT_STORED
			: WORD_NOT_FOUND;
	case OUTCOME_PRESENT:
		return WORD_NOT_STORED;
	case OUTCOME_CHANGED:
		return WORD_EXISTS;
	default:
		return WORD_NONE;
	}
}

void outcome_end(const struct outcome *outcome, struct task *task)
{
	enum reply_word word = word_of_status(outcome->status, task->command);
	struct result r;

	if (word) {
		task_say_word(task, word);
		return;
	}
	r = outcome_result(outcome);
	task_say_failure(task, &r);
}

void outcome_describe(const struct outcome *outcome, const struct task *task, struct reply *reply)
{
	if (order_class_changes(task->command->order))
		return;
	reply->cas = outcome->result->cas;
	reply->ttl = outcome->result->ttl;
}

/* --- one operation --- */

struct op_task *op_task_of(struct op *op)
{
	return (struct op_task *)((char *)op - offsetof(struct op_task, op));
}

struct op_task *op_task_new(struct host *host, const struct request *request, void *owner,
	enum op_kind kind, op_done *done, size_t more)
{
	struct op_task *t = task_new(host, request, owner, sizeof(*t) + more + request->key.n);
	const struct collection_rule *rule = request->args
		? request->args->rule
		: rules_collection(host->env.rules, request->key);
	char *at = t->more + more;

	t->op = (struct op){
		.kind = kind,
		.key = task_keys(&t->task, task_keep(&at, request->key), 1),
		.ttl = task_ttl(request, rule->ttl),
		.done = done,
		.whole = true,
	};
	task_owns(&t->task, &t->op);
	return t;
}

void op_task_submit(struct op_task *t)
{
	lanes_submit(t->task.host->lanes, &t->op);
}

void op_task_told(struct op *op, const struct outcome *outcome)
{
	static const struct outcome busy = { .status = OUTCOME_BUSY };
	struct task *task = &op_task_of(op)->task;
	bool again = op->kind == OP_COMPACT && op->rounds > 0;

	lookup_outcome(task, outcome->status);
	/*
	 * If a repeated compaction finds no set, a later request of the same client may have
	 * deleted it meanwhile.
	 */
	if (outcome->status == OUTCOME_DONE)
		task_say_done(task);
	else
		outcome_end(again && outcome->status == OUTCOME_MISSING ? &busy : outcome, task);
}
