/* Reading one item as `get` and `gat` do, for tasks that write a reply of their own. */
#ifndef COMMAND_GET_H
#define COMMAND_GET_H

#include "command/task.h"

/* Carries out a GET or GAT of one key, whose rule may say plain_verbs. `owner` is that of the task. The waiter is as in env.call. */
void get_call(struct host *host, const struct call *call, const void *owner, struct waiter *waiter);

/* To be called with the result of get_call: a GAT sets the time to live of the other items of a set or list, too. */
void get_answered(struct host *host, const struct call *call, const struct result *r);

#endif
