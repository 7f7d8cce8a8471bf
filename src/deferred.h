/* Those who want to go on once others had their turn, and not before a time. */
#ifndef DEFERRED_H
#define DEFERRED_H

#include <event2/event_struct.h>

#include "net/loop.h"
#include "protocol/call.h"

struct deferred {
	struct loop *loop;
	struct event event; /* at the time of the first */
	struct deferred_call *list;
	size_t count, capacity;
};

void deferred_init(struct deferred *deferred, struct loop *loop);
/* None may be waiting. */
void deferred_fini(struct deferred *deferred);

/* Has the waiter told, with a result that says nothing, `ms` milliseconds from now, or at once but behind all that is ready. */
void deferred_add(struct deferred *deferred, struct waiter *waiter, unsigned ms);

/* Tells all that wait, whatever the time; some may have come again when it returns. */
void deferred_run_all(struct deferred *deferred);

#endif
