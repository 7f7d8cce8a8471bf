/* Those who want to go on once others had their turn, and not before a time. */
#ifndef TURNS_H
#define TURNS_H

#include <event2/event_struct.h>

#include "net/loop.h"
#include "protocol/call.h"

struct turns {
	struct loop *loop;
	struct event event; /* at the time of the first */
	struct turn *list;
	size_t count, capacity;
};

void turns_init(struct turns *turns, struct loop *loop);
/* None may be waiting. */
void turns_fini(struct turns *turns);

/* Has the waiter told, with a result that says nothing, `ms` milliseconds from now, or at once but behind all that is ready. */
void turns_add(struct turns *turns, struct waiter *waiter, unsigned ms);

/* Tells all that wait, whatever the time; some may have come again when it returns. */
void turns_end(struct turns *turns);

#endif
