/*
 * memcached's own commands on a key whose rule has `plain_verbs`, for clients that have no
 * other commands. A collection is read and written as an item: each member, followed by the
 * rule's delimiter. On a type of events, incr counts an event, set stores one, and get reads
 * the count of the current bucket.
 */
#ifndef COMMAND_PLAIN_H
#define COMMAND_PLAIN_H

#include "command/start.h"

/*
 * Start a storage command, arithmetic, delete or touch on a key whose target is
 * TARGET_COLLECTION or TARGET_EVENTS.
 */
command_start plain_start, event_plain_start;

/*
 * Carry out a GET or GAT on such a key. The result is that of an item with the same content, or
 * that of the counter, with the value 0 if it is missing. The waiter is as in env.call.
 */
void plain_read(const struct task *task, const struct call *call, struct waiter *waiter);
void event_plain_read(const struct task *task, const struct call *call, struct waiter *waiter);

#endif
