/* Reads of items, as a client names them: a rule may make something else of a key. */
#ifndef COMMAND_ITEM_READ_H
#define COMMAND_ITEM_READ_H

#include "command/host.h"

/* Carries out a GET or GAT for a client. The waiter is as in env.call. */
void item_read(struct host *host, const struct call *call, const void *owner, struct waiter *waiter);

#endif
