/* Outcomes of operations as replies to clients. */
#ifndef COMMAND_OUTCOME_H
#define COMMAND_OUTCOME_H

#include "collection/op.h"
#include "command/task.h"

/* An outcome other than DONE as the result of a call: a miss, or a failure with the error line. Borrows from `outcome`. */
struct result outcome_result(const struct outcome *outcome);

/* Appends the error line of an outcome that is neither DONE nor MISSING. */
void outcome_reply_failure(struct buf *out, const struct outcome *outcome);

/* If the outcome is not DONE: replies NOT_FOUND or the error line, completes the task, and gives true. */
bool outcome_ends(const struct outcome *outcome, struct task *task);

/* If the task is inside of another one and reads alone: tells nest->cas what the outcome of its READ or LIST says about the base. */
void outcome_tell_cas(const struct outcome *outcome, struct task *task);

#endif
