/*
 * Replies with many elements, in the form for their receiver (see protocol/elements.h). Large
 * texts are converted in slices of the client that reads them:
 *
 *     conversion_start -> elements_convert -> pause -> elements_convert -> done
 */
#ifndef COMMAND_CONVERSION_H
#define COMMAND_CONVERSION_H

#include "command/task.h"
#include "protocol/elements.h"

/* `reply` is borrowed for the call: CONTENT_BYTES, or an ERROR. */
typedef void conversion_done(void *arg, const struct reply *reply);

/*
 * Converts a reply with CONTENT_ELEMENTS as the first members of `how` demand, and calls `done`
 * once, before this function returns unless the text is large. `reply` is borrowed for the
 * call, but its key until `done` is called. The task must not be done before. If its client
 * disconnects, the conversion ends early, with any text.
 */
void conversion_start(const struct task *task, const struct reply *reply, struct elements how,
	conversion_done *done, void *arg);

/* Calls task_say with this reply, after a conversion in slices if it has many elements. */
void task_say_elements(struct task *task, const struct reply *reply);

#endif
