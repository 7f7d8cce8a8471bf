#include "command/outcome.h"

#include "protocol/reply.h"

struct result outcome_result(const struct outcome *outcome)
{
	static const char *const lines[] = {
		[OUTCOME_CORRUPT] = "CLIENT_ERROR value is not a collection",
		[OUTCOME_NEWER] = "SERVER_ERROR stored by a newer version of setlistd",
		[OUTCOME_IS_SET] = "CLIENT_ERROR value is a set, not a list",
		[OUTCOME_TOO_LARGE] = "SERVER_ERROR object too large for cache",
		[OUTCOME_BUSY] = "SERVER_ERROR busy",
		[OUTCOME_NO_CAS] = "SERVER_ERROR the server gives no cas ids (memcached -C)",
		[OUTCOME_RANGE] = "CLIENT_ERROR index out of range",
	};
	const char *line;

	if (outcome->status == OUTCOME_MISSING)
		return (struct result){ .status = RESULT_MISS };
	if (outcome->status == OUTCOME_FAILED)
		return *outcome->result;
	line = lines[outcome->status];
	return (struct result){ .status = RESULT_REFUSED, .line = slice_of(line, strlen(line)) };
}

void outcome_reply_failure(struct buf *out, const struct outcome *outcome)
{
	const struct result r = outcome_result(outcome);

	reply_failure(out, &r);
}

bool outcome_ends(const struct outcome *outcome, struct task *task)
{
	if (outcome->status == OUTCOME_DONE)
		return false;
	if (outcome->status == OUTCOME_MISSING)
		reply_text(task_reply(task), "NOT_FOUND");
	else
		outcome_reply_failure(task_reply(task), outcome);
	task_done(task);
	return true;
}

void outcome_tell_cas(const struct outcome *outcome, struct task *task)
{
	if (task->nest && outcome->status == OUTCOME_DONE && !order_class_changes(task->command->order))
		task->nest->cas = outcome->result->cas;
}
