/* Tasks that are one operation in the lane of a key, and replies for the outcomes of operations. */
#ifndef COMMAND_OP_TASK_H
#define COMMAND_OP_TASK_H

#include "collection/op.h"
#include "collection/set_request.h"
#include "command/task.h"

/* --- outcomes --- */

/*
 * Converts an outcome other than DONE to the result of a call: a miss, or a failure with the
 * error line. The result borrows from `outcome`.
 */
struct result outcome_result(const struct outcome *outcome);

/*
 * Appends the error line, without its end, of an outcome that is neither DONE nor MISSING.
 * task_note_outcome stores it as task_note does.
 */
void outcome_add_error(struct buf *out, const struct outcome *outcome);
void task_note_outcome(struct task *task, const struct outcome *outcome);

/* Completes the task whose operation is not DONE: replies NOT_FOUND or an error line. */
void outcome_end(const struct outcome *outcome, struct task *task);

/* Calls outcome_end and returns true if the outcome is not DONE. */
static inline bool outcome_ends(const struct outcome *outcome, struct task *task)
{
	if (outcome->status == OUTCOME_DONE)
		return false;
	outcome_end(outcome, task);
	return true;
}

/*
 * If the task only reads: adds to the reply the properties of the base from the outcome of a
 * READ or LIST, which must be DONE.
 */
void outcome_describe(const struct outcome *outcome, const struct task *task, struct reply *reply);

/* --- one operation --- */

struct op_task {
	struct task task;
	struct op op;
	_Alignas(uint64_t) char more[]; /* The caller's bytes, followed by the key. */
};

typedef void op_done(struct op *op, const struct outcome *outcome);

/*
 * Returns the time to live for an item that this request creates: its own exptime, or else
 * `ttl`, that of the rule.
 */
static inline int64_t task_ttl(const struct request *request, int64_t ttl)
{
	return request->exptime ? request->exptime : ttl;
}

struct op_task *op_task_of(struct op *op);

/*
 * Creates the task of an operation on the key of the request, with `more` bytes for the caller.
 * If the operation creates the collection, its time to live is that of the request or of its
 * rule. The caller sets the other members of the operation, and submits it.
 */
struct op_task *op_task_new(struct host *host, const struct request *request, void *owner,
	enum op_kind kind, op_done *done, size_t more);
void op_task_submit(struct op_task *t);

/* Replies the word of the command, such as STORED, when the operation of such a task is done. */
op_done op_task_told;

#endif
