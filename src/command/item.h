/* Reads of items by the key that a client uses, which a rule may map to something else. */
#ifndef COMMAND_ITEM_H
#define COMMAND_ITEM_H

#include "command/host.h"
#include "protocol/request.h"

/*
 * Carries out a GET or GAT for a client, of a key with this target, which must not be
 * TARGET_COMMAND. The waiter is as in env.call.
 */
void item_read(const struct task *task, enum target target, const struct call *call,
	struct waiter *waiter);

/*
 * Must be called with the result of item_read for a GAT. If the item is a set or list with
 * other items, updates their time to live too, delivers the result to the waiter once more
 * after that, and returns true.
 */
bool item_touches(const struct task *task, enum target target, int64_t exptime,
	struct waiter *waiter, const struct result *r) __attribute__((warn_unused_result));

#endif
