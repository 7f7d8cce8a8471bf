/*
 * memcached's own commands on a type of events, for clients that have no others. If a rule says `plain_verbs`, incr counts events, set
 * stores one, and get reads the count of the present bucket. A key with the separator in it is that of a counter or of an event, and
 * an ordinary item.
 */
#ifndef COMMAND_EVENT_ITEM_H
#define COMMAND_EVENT_ITEM_H

#include "command/task.h"

/* event_item_covers, if any rule says plain_verbs. */
bool event_item_finds(const struct rules *rules, struct slice key);

/* Whether the key is a type whose rule says plain_verbs. */
static inline bool event_item_covers(const struct rules *rules, struct slice key)
{
	return rules->plain_events && event_item_finds(rules, key);
}

/* The command that a storage command, arithmetic, delete or touch on such a key stands for. NULL: it is refused. */
const struct command *event_item_command(const struct command *command);

/* Starts such a command. */
void event_item_start(struct host *host, const struct request *request, void *owner);

/* Carries out a GET or GAT on such a key: of its counter, whose value is 0 if it is missing. The waiter is as in env.call. */
void event_item_read(struct host *host, const struct call *call, struct waiter *waiter);

#endif
