/*
 * memcached's own commands on a type of events, for clients that have no others. If a rule says `plain_verbs`, incr counts events, set
 * stores one, and get reads the count of the present bucket. A key with the separator in it is that of a counter or of an event, and
 * an ordinary item.
 */
#ifndef COMMAND_EVENT_ITEM_H
#define COMMAND_EVENT_ITEM_H

#include "command/task.h"

/* Starts a storage command, arithmetic, delete or touch on a key for which keys_event() holds. */
void event_item_start(struct host *host, const struct request *request, void *owner);

/* Carries out a GET or GAT on such a key: of its counter, whose value is 0 if it is missing. The waiter is as in env.call. */
void event_item_read(struct host *host, const struct call *call, struct waiter *waiter);

#endif
