/* What became of an operation, as a client is told. */
#ifndef COMMAND_OUTCOME_H
#define COMMAND_OUTCOME_H

#include "collection/op.h"
#include "command/task.h"

/* An outcome other than DONE as the result of a plain call: a miss, or a failure with the line that the client gets. */
struct result outcome_result(const struct outcome *outcome);

/* Appends the error line of an outcome that is neither DONE nor MISSING. */
void outcome_reply_failure(struct buf *out, const struct outcome *outcome);

/*
 * Replies NOT_FOUND, or the error line, and ends the task, if the outcome is not DONE; true when it did.
 */
bool outcome_ends(const struct outcome *outcome, struct task *task);

#endif
