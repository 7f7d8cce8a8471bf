/* What get shares with requests of which some keys stand for other requests. */
#ifndef COMMAND_GET_H
#define COMMAND_GET_H

#include "command/host.h"

/* Carries out the GET or GAT of one key of a client: of an item, or of what a rule makes of its key. The waiter is as in env.call. */
void get_call(struct host *host, const struct call *call, const void *owner, struct waiter *waiter);

#endif
