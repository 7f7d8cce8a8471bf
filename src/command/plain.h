/*
 * memcached's item commands on a collection, for clients that have no others. If a rule says `plain_verbs`, its collections are
 * read and written as items: each member, followed by the rule's delimiter.
 */
#ifndef COMMAND_PLAIN_H
#define COMMAND_PLAIN_H

#include "command/task.h"

/* Starts a storage command, arithmetic, delete or touch on a key that is TARGET_COLLECTION. */
void plain_start(struct host *host, const struct request *request, void *owner);

/* Carries out a GET or GAT on such a key, with the result that the item would have. The waiter is as in env.call. */
void plain_read(struct host *host, const struct call *call, const void *owner, struct waiter *waiter);

#endif
