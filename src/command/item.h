/* Reads of items by the key that a client uses, which a rule may map to something else. */
#ifndef COMMAND_ITEM_H
#define COMMAND_ITEM_H

#include "command/host.h"
#include "protocol/request.h"

/*
 * Carries out a GET or GAT for a client, of a key with this target, which must not be
 * TARGET_COMMAND. The waiter is as in env.call.
 */
void item_read(const struct task *task, enum target target, const struct call *call, struct waiter *waiter);

/*
 * Must be called with the result of item_read for a GAT: updates the time to live of the other
 * items of a set or list, too.
 */
void item_touched(struct host *host, enum target target, struct slice key, int64_t exptime, const struct result *r);

#endif
