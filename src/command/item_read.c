#include "command/item_read.h"

#include "collection/lane/lanes.h"
#include "command/collection_item.h"
#include "command/event_item.h"
#include "command/keys.h"

void item_read(struct host *host, const struct call *call, const void *owner, struct waiter *waiter)
{
	if (collection_item_covers(host, call->key) && call->key.n <= COLLECTION_KEY_MAX)
		collection_item_read(host, call, owner, waiter);
	else if (keys_event(host->env.rules, call->key))
		event_item_read(host, call, waiter);
	else
		lanes_call(host->lanes, call, waiter);
}
