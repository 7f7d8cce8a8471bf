/* What the set commands share. */
#ifndef COMMAND_SET_H
#define COMMAND_SET_H

#include "collection/op.h"
#include "command/task.h"

/* Appends the error line of an outcome that is neither done nor missing. */
void set_reply_failure(struct buf *out, const struct outcome *outcome);

#endif
