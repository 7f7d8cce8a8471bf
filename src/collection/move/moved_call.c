#include "collection/move/moved_call.h"

#include <stdlib.h>

#include "util/alloc.h"

struct moved_call *moved_call_keep(struct moves *moves, struct mover_world *world,
	const struct call *call, struct waiter *asker)
{
	struct moved_call *c = xmalloc(sizeof(*c) + call->key.n + call->value.n + call->line.n);
	char *p = c->bytes;

	*c = (struct moved_call){ .moves = moves,
		.world = world,
		.call = *call,
		.asker = asker,
		.number = ++world->calls };
	c->call.key.p = p;
	p = slice_write(p, call->key);
	c->call.value.p = p;
	p = slice_write(p, call->value);
	c->call.line.p = p;
	slice_write(p, call->line);
	return c;
}

void moved_call_send(struct moved_call *c, const struct call *call, bool former,
	void (*done)(struct waiter *waiter, const struct result *r))
{
	c->waiter = (struct waiter){ done, c->call.key };
	c->world->busy++;
	mover_send(c->world, call, &c->waiter, mover_place(c->world, call->key, former));
}

struct moved_call *moved_call_received(struct waiter *waiter)
{
	struct moved_call *c =
		(struct moved_call *)((char *)waiter - offsetof(struct moved_call, waiter));

	c->world->busy--;
	return c;
}

void moved_call_end(struct moved_call *c, const struct result *r)
{
	struct waiter *asker = c->asker;
	struct failure failure = c->failure;

	if (r == &c->failure.result)
		r = &failure.result;
	free(c);
	if (asker)
		asker->done(asker, r);
	failure_free(&failure);
}

void moved_call_refuse(struct moved_call *c, const struct result *why)
{
	struct result r = *why;

	if (r.status != RESULT_REFUSED)
		r.status = RESULT_UNAVAILABLE;
	moved_call_end(c, &r);
}

void moved_calls_refuse(struct moved_calls *calls, const struct result *why)
{
	struct moved_call *c;

	while ((c = STAILQ_FIRST(calls))) {
		STAILQ_REMOVE_HEAD(calls, link);
		moved_call_refuse(c, why);
	}
}
