/* Callbacks to run after ready I/O, or at a given time. */
#ifndef DEFERRED_H
#define DEFERRED_H

#include <event2/event_struct.h>

#include "net/loop.h"
#include "protocol/call.h"

struct deferred {
	struct loop *loop;
	struct event event; /* a timer for the earliest */
	struct deferred_call *list;
	size_t count, capacity;
	uint64_t first; /* when the earliest is due */
};

void deferred_init(struct deferred *deferred, struct loop *loop);
/* No callback may be waiting. */
void deferred_fini(struct deferred *deferred);

/* Calls the waiter, with an empty result, after `ms` milliseconds; if `ms` is 0, after all ready I/O. */
void deferred_add(struct deferred *deferred, struct waiter *waiter, unsigned ms);

/* Calls all waiters now. They may add new ones. */
void deferred_run_all(struct deferred *deferred);

#endif
