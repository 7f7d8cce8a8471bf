/*
 * memcached's own verbs on a collection, for clients that know no others: where a rule says `plain_verbs`, a collection is
 * read and written as an item in which each member is followed by the rule's delimiter.
 */
#ifndef COMMAND_COLLECTION_ITEM_H
#define COMMAND_COLLECTION_ITEM_H

#include "command/task.h"

/* Whether the key is that of such a collection. */
bool collection_item_covers(const struct host *host, struct slice key);

/* Starts a storage command, arithmetic, delete or touch on such a key. */
void collection_item_start(struct host *host, const struct request *request, void *owner);

/* Carries out a GET or GAT call on such a key, with a result as an item would give it. The waiter is as env.call says. */
void collection_item_read(struct host *host, const struct call *call, const void *owner, struct waiter *waiter);

#endif
